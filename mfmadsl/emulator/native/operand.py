"""Sources and targets of vector instructions in native code: sixteen lanes at a time."""

from __future__ import annotations

from llvmlite import ir

from mfmadsl.emulator.native.code import CHUNKS, I64, WIDTH, Chunk
from mfmadsl.emulator.native.form import CodeForm, LaneForm, SourceForm, TargetForm
from mfmadsl.emulator.native.number import VectorNumber


def read_sources(chunk: Chunk, form: CodeForm) -> list[VectorNumber]:
    """All sources of a form, whose values come first among those of the step."""
    return [
        read_source(chunk, source, chunk.code.value(place))
        for place, source in enumerate(form.sources)
    ]


def read_source(chunk: Chunk, source: SourceForm, value: ir.Value) -> VectorNumber:
    """A source as a number of its type."""
    kind = source.kind
    if source.bank == "c":
        return chunk.splat(value, kind).as_(kind)
    bits = int(kind[1:])
    if source.bank == "s":
        found = chunk.uniform(value, kind if bits == 64 else "u32")
    elif bits == 64:
        low = chunk.register(source.bank, value).to("u64")
        high = chunk.register(source.bank, chunk.builder.add(value, I64(1))).to("u64")
        found = low | high << 32
    else:
        found = chunk.register(source.bank, value)
        if source.lanes is not None:
            found = _moved(chunk, source.lanes, found)
    if source.width and source.width < 32:
        found = found >> source.low & (1 << source.width) - 1
        if source.signed:
            sign = 1 << source.width - 1
            found = (found ^ sign) - sign
    if bits == 16:
        found = found.to("u16")
    found = found.as_(kind)
    if source.absolute:
        found = found.absolute()
    return found.negated() if source.negate else found


def within_row(lanes: LaneForm) -> bool:
    """Whether lanes read from their own sixteen only, in all of them alike."""
    first = lanes.source[:WIDTH]
    return all(
        lanes.source[row * WIDTH + lane] == row * WIDTH + first[lane] < (row + 1) * WIDTH
        and lanes.exists[row * WIDTH + lane] == lanes.exists[lane]
        for row in range(CHUNKS)
        for lane in range(WIDTH)
        if lanes.exists[lane]
    ) and all(lanes.exists[lane] == lanes.exists[lane % WIDTH] for lane in range(CHUNKS * WIDTH))


def _readable(chunk: Chunk, lanes: LaneForm) -> VectorNumber:
    """Lanes whose source is there, and active."""
    moved = chunk.exec_mask.shuffled([lane % WIDTH for lane in lanes.source[:WIDTH]])
    return moved & _constant_mask(chunk, lanes.exists[:WIDTH])


def _moved(chunk: Chunk, lanes: LaneForm, words: VectorNumber) -> VectorNumber:
    moved = words.shuffled([lane % WIDTH for lane in lanes.source[:WIDTH]])
    return _readable(chunk, lanes).choose(moved, 0)


def _constant_mask(chunk: Chunk, lanes: tuple[bool, ...]) -> VectorNumber:
    vector = ir.VectorType(ir.IntType(1), WIDTH)
    return VectorNumber(chunk.builder, ir.Constant(vector, [int(lane) for lane in lanes]), "b1")


def _written(chunk: Chunk, lanes: LaneForm) -> VectorNumber:
    """Lanes that take the result, of those that are active."""
    by_row = ir.Constant(
        ir.ArrayType(ir.IntType(16), CHUNKS),
        [
            sum(lanes.writes[row * WIDTH + lane] << lane for lane in range(WIDTH))
            for row in range(CHUNKS)
        ],
    )
    builder = chunk.builder
    bits = builder.extract_value(by_row, 0)
    for row in range(1, CHUNKS):
        here = builder.icmp_unsigned("==", chunk.number, I64(row))
        bits = builder.select(here, builder.extract_value(by_row, row), bits)
    vector = ir.VectorType(ir.IntType(1), WIDTH)
    mask = VectorNumber(builder, builder.bitcast(bits, vector), "b1") & chunk.exec_mask
    return mask if lanes.zero_fill else mask & _readable(chunk, lanes)


def write_target(chunk: Chunk, target: TargetForm, value: ir.Value, result: VectorNumber) -> None:
    """Put a result of any type where it goes, in the active lanes."""
    mask = chunk.exec_mask if target.lanes is None else _written(chunk, target.lanes)
    row = chunk.code.register_row(target.bank, value)
    bits = result.pattern()
    if bits.bits == 64:
        chunk.put(row, bits.to("u32"), mask)
        after = chunk.code.register_row(target.bank, chunk.builder.add(value, I64(1)))
        chunk.put(after, (bits >> 32).to("u32"), mask)
        return
    word = bits.to("u32")
    if target.width:
        field = (1 << target.width) - 1
        word = (word & field) << target.low
        if target.preserve:
            word = word | chunk.loaded(row) & ~(field << target.low)
    chunk.put(row, word, mask)

"""Instructions by which lanes exchange values, in native code."""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from mfmadsl.emulator.instructions.modifier import base_name
from mfmadsl.emulator.instructions.source import SourceOperand
from mfmadsl.emulator.instructions.swizzle import swizzle_pattern, swizzled_lanes
from mfmadsl.emulator.machine.mode import Machine
from mfmadsl.emulator.machine.wave import LANES
from mfmadsl.emulator.native.access import lane_if_active, put_word, word_of
from mfmadsl.emulator.native.code import CHUNKS, I32, I64, WIDTH, Chunk, NativeCode, chunks
from mfmadsl.emulator.native.form import CodeForm, NativeStep, SourceForm, source_form
from mfmadsl.emulator.native.number import VectorNumber
from mfmadsl.emulator.native.operand import read_source
from mfmadsl.emulator.text.assembly import Instruction
from mfmadsl.emulator.text.operand import EXEC, Literal, Operand, Register, as_register

_SWAPS = {"v_swap_b32": 0, "v_permlane16_swap_b32": 16, "v_permlane32_swap_b32": 32}


def describe_exchange(instruction: Instruction, machine: Machine) -> NativeStep | None:
    """An exchange between lanes as a step."""
    del machine
    name, operands = base_name(instruction.name), instruction.operands
    if name == "v_readfirstlane_b32":
        target, source = as_register(operands[0]), as_register(operands[1])
        return NativeStep(
            CodeForm("first-lane", ""), (target.index, source.index), target.index >= EXEC
        )
    if name in ("v_readlane_b32", "v_writelane_b32"):
        return _one_lane(name, operands)
    if name in _SWAPS:
        first, second = (as_register(operand).index for operand in operands)
        return NativeStep(CodeForm("swap", "", options=(_SWAPS[name],)), (first, second))
    if name in ("v_mbcnt_lo_u32_b32", "v_mbcnt_hi_u32_b32"):
        return _counted(name, operands)
    if name == "ds_bpermute_b32":
        target, address, data = map(as_register, operands)
        values = (target.index, address.index, data.index, instruction.number("offset"))
        return NativeStep(CodeForm("permute", "", options=(target.bank, data.bank)), values)
    if name == "ds_swizzle_b32":
        target, data = map(as_register, operands)
        lanes = swizzled_lanes(swizzle_pattern(instruction.modifiers.get("offset", "0")))
        options = (target.bank, data.bank, tuple(lanes.tolist()))
        return NativeStep(CodeForm("swizzle", "", options=options), (target.index, data.index))
    return None


def _one_lane(name: str, operands: tuple[Operand, ...]) -> NativeStep | None:
    first, second, third = operands
    target = as_register(first)
    found = [_scalar_form(each) for each in (second, third)]
    sources = [each for each in found if each is not None]
    if len(sources) < 2:
        return None
    forms, values = zip(*sources, strict=True)
    writer = "read-lane" if name == "v_readlane_b32" else "write-lane"
    changes_exec = writer == "read-lane" and target.index >= EXEC
    return NativeStep(CodeForm(writer, "", forms), (*values, target.index), changes_exec)


def _scalar_form(operand: Operand) -> tuple[SourceForm, int] | None:
    if not isinstance(operand, Register | Literal):
        return None
    return source_form(SourceOperand(operand, "u32"))


def _counted(name: str, operands: tuple[Operand, ...]) -> NativeStep | None:
    register, *others = operands
    found = [_scalar_form(each) for each in others]
    sources = [each for each in found if each is not None]
    if len(sources) < 2:
        return None
    forms, values = zip(*sources, strict=True)
    form = CodeForm("mbcnt", "", forms, None, ("hi" in name,))
    return NativeStep(form, (*values, as_register(register).index))


def _word(code: NativeCode, source: SourceForm, value: ir.Value, wave: ir.Value) -> ir.Value:
    """A scalar source in a wave."""
    if source.bank == "c":
        return code.builder.trunc(value, I32)
    return code.scalar(value, wave)


def _lane_of(code: NativeCode, row: ir.Value, wave: ir.Value, lane: ir.Value) -> ir.Value:
    """The address of a lane's word."""
    builder = code.builder
    place = builder.add(builder.mul(wave, I64(LANES)), lane)
    return builder.add(row, builder.mul(place, I64(4)))


def write_first_lane(code: NativeCode, form: CodeForm) -> None:
    """v_readfirstlane_b32: of lane 0 where none is active."""
    del form
    builder = code.builder
    row = code.register_row("v", code.value(1))
    with code.waves() as wave:
        active = code.scalar_pair(I64(EXEC), wave)
        first = VectorNumber(builder, _vector_of(builder, active), "u64").intrinsic(
            "cttz", flags=[False]
        )
        lane = builder.and_(builder.extract_element(first.value, I32(0)), I64(LANES - 1))
        word = code.load(_lane_of(code, row, wave, lane), I32, 4)
        code.put_scalar(code.value(0), wave, word)


def _vector_of(builder: ir.IRBuilder, value: ir.Value) -> ir.Value:
    empty = ir.Constant(ir.VectorType(value.type, 1), ir.Undefined)
    return builder.insert_element(empty, value, I32(0))


def write_read_lane(code: NativeCode, form: CodeForm) -> None:
    """v_readlane_b32."""
    builder = code.builder
    row = code.register_row("v", code.value(0))
    with code.waves() as wave:
        number = builder.and_(_word(code, form.sources[1], code.value(1), wave), I32(LANES - 1))
        place = _lane_of(code, row, wave, builder.zext(number, I64))
        code.put_scalar(code.value(2), wave, code.load(place, I32, 4))


def write_write_lane(code: NativeCode, form: CodeForm) -> None:
    """v_writelane_b32: one lane changes, whatever EXEC is."""
    builder = code.builder
    row = code.register_row("v", code.value(2))
    with code.waves() as wave:
        word, lane = (
            _word(code, source, code.value(place), wave)
            for place, source in enumerate(form.sources)
        )
        number = builder.and_(lane, I32(LANES - 1))
        code.store(word, _lane_of(code, row, wave, builder.zext(number, I64)), 4)


def write_mbcnt(code: NativeCode, form: CodeForm) -> None:
    """v_mbcnt: bits of lanes before this one, and a number."""
    (is_high,) = form.options
    with chunks(code) as chunk:
        mask, addend = (
            read_source(chunk, source, code.value(place))
            for place, source in enumerate(form.sources)
        )
        lane = _lane_numbers(chunk)
        if is_high:
            lane = (lane < 32).choose(32, lane) - 32
        below = lane.minimum(32).to("u64")
        taken = ((below.constant(1) << below) - 1).to("u32")
        counted = (mask & taken).intrinsic("ctpop")
        chunk.put(code.register_row("v", code.value(2)), counted + addend, chunk.exec_mask)


def _lane_numbers(chunk: Chunk) -> VectorNumber:
    builder = chunk.builder
    own = ir.Constant(ir.VectorType(I32, WIDTH), list(range(WIDTH)))
    first = builder.mul(builder.trunc(chunk.number, I32), I32(WIDTH))
    return VectorNumber(builder, own, "u32") + chunk.splat(builder.zext(first, I64), "u32")


def _whole_register(code: NativeCode, row: ir.Value, wave: ir.Value) -> VectorNumber:
    """All lanes of a wave's register."""
    address = _lane_of(code, row, wave, I64(0))
    return VectorNumber(code.builder, code.load(address, ir.VectorType(I32, LANES), 4), "u32")


def _whole_mask(code: NativeCode, wave: ir.Value) -> VectorNumber:
    active = code.scalar_pair(I64(EXEC), wave)
    vector = ir.VectorType(ir.IntType(1), LANES)
    return VectorNumber(code.builder, code.builder.bitcast(active, vector), "b1")


def _put_whole(
    code: NativeCode, row: ir.Value, wave: ir.Value, words: VectorNumber, mask: VectorNumber
) -> None:
    for number in range(CHUNKS):
        lanes = list(range(number * WIDTH, (number + 1) * WIDTH))
        Chunk(code, wave, I64(number)).put(row, words.shuffled(lanes), mask.shuffled(lanes))


def write_swap(code: NativeCode, form: CodeForm) -> None:
    """v_swap_b32, and swaps of odd rows of the first with even ones of the second."""
    (rows,) = form.options
    first, second = (code.register_row("v", code.value(place)) for place in (0, 1))
    with code.waves() as wave:
        a, b = (_whole_register(code, row, wave) for row in (first, second))
        active = _whole_mask(code, wave)
        if not rows:
            results = (b, a)
        else:
            partner = [lane ^ rows for lane in range(LANES)]
            odd = VectorNumber(
                code.builder,
                ir.Constant(
                    ir.VectorType(ir.IntType(1), LANES),
                    [lane // rows % 2 for lane in range(LANES)],
                ),
                "b1",
            )
            results = (odd.choose(b.shuffled(partner), a), odd.choose(b, a.shuffled(partner)))
        for row, words in zip((first, second), results, strict=True):
            _put_whole(code, row, wave, words, active)


def write_swizzle(code: NativeCode, form: CodeForm) -> None:
    """ds_swizzle_b32: a lane that is switched off gives 0."""
    target_bank, bank, lanes = form.options
    target = code.register_row(target_bank, code.value(0))
    source = code.register_row(bank, code.value(1))
    with code.waves() as wave:
        active = _whole_mask(code, wave)
        shown = active.choose(_whole_register(code, source, wave), 0)
        _put_whole(code, target, wave, shown.shuffled(lanes), active)


def write_permute(code: NativeCode, form: CodeForm) -> None:
    """ds_bpermute_b32: lanes read the lanes that addresses name; one that is off gives 0."""
    target_bank, bank = form.options
    builder = code.builder
    target = code.register_row(target_bank, code.value(0))
    address, source = code.register_row("v", code.value(1)), code.register_row(bank, code.value(2))
    place = builder.alloca(ir.VectorType(I32, LANES))
    shown = builder.ptrtoint(place, I64)
    displacement = builder.trunc(code.value(3), I32)
    with code.waves() as wave:
        active = _whole_mask(code, wave)
        builder.store(active.choose(_whole_register(code, source, wave), 0).value, place)
        bits = code.scalar_pair(I64(EXEC), wave)
        with code.loop(I64(LANES)) as number, lane_if_active(code, bits, wave, number) as lane:
            named = builder.add(word_of(code, address, lane), displacement)
            offset = builder.zext(builder.and_(named, I32(4 * LANES - 4)), I64)
            put_word(code, target, lane, code.load(builder.add(shown, offset), I32, 4))


Write = Callable[[NativeCode, CodeForm], None]
EXCHANGES: dict[str, Write] = {
    "first-lane": write_first_lane,
    "read-lane": write_read_lane,
    "write-lane": write_write_lane,
    "mbcnt": write_mbcnt,
    "swap": write_swap,
    "swizzle": write_swizzle,
    "permute": write_permute,
}

"""Where the lanes of an access go, for those who look at it before it is executed.

The offsets, or -1 of a lane that goes nowhere, are written down if all lanes may go there; or else
the interpreter has to execute the instruction.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from llvmlite import ir

from mfmadsl.emulator.machine.wave import LANES
from mfmadsl.emulator.native.access import (
    Lane,
    Segments,
    lane_if_active,
    refuse_if_watched,
    repeated,
)
from mfmadsl.emulator.native.check import any_of, entry
from mfmadsl.emulator.native.code import I32, I64, WIDTH, Chunk, NativeCode, chunks
from mfmadsl.emulator.native.form import CodeForm
from mfmadsl.emulator.native.global_memory import PlaceInBuffer, PlaceInMemory
from mfmadsl.emulator.text.operand import EXEC

NOWHERE = -1
_OFFSETS = ir.VectorType(I64, WIDTH)


def write_lds_places(code: NativeCode, form: CodeForm) -> None:
    """Of the LDS: the values are the address register, an offset, and a width and which of the
    last bits of the address have to be 0."""
    (is_store,) = form.options
    builder = code.builder
    if is_store:
        refuse_if_watched(code)
    row = code.register_row("v", code.value(0))
    limit = builder.sub(code.field("lds_size"), code.value(2))
    place = repeated(code, builder.trunc(code.value(1), I32), WIDTH)
    odd = repeated(code, code.value(3), WIDTH)
    with chunks(code) as chunk:
        words = builder.add(chunk.loaded(row).value, place)
        offsets = builder.zext(words, _OFFSETS)
        outside = builder.icmp_signed(">", offsets, repeated(code, limit, WIDTH))
        cut = builder.icmp_unsigned("!=", builder.and_(offsets, odd), _OFFSETS(None))
        bad = builder.and_(builder.or_(outside, cut), chunk.exec_mask.value)
        code.refuse_if(any_of(code, bad))
        group = entry(code, "workgroup", chunk.wave)
        base = builder.mul(group, code.field("lds_stride"))
        _write_down(code, chunk, builder.add(offsets, repeated(code, base, WIDTH)))


def _write_down(code: NativeCode, chunk: Chunk, offsets: ir.Value) -> None:
    """Write down where the active lanes of a chunk go."""
    builder = code.builder
    nowhere = ir.Constant(_OFFSETS, [NOWHERE] * WIDTH)
    found = builder.select(chunk.exec_mask.value, offsets, nowhere)
    lane = builder.add(builder.mul(chunk.wave, I64(LANES)), builder.mul(chunk.number, I64(WIDTH)))
    code.store(found, builder.add(code.field("places"), builder.mul(lane, I64(8))), 8)


def _refuse_odd(code: NativeCode, address: ir.Value, bits: ir.Value) -> None:
    rest = code.builder.and_(address, bits)
    code.refuse_if(code.builder.icmp_unsigned("!=", rest, I64(0)))


def write_global_places(code: NativeCode, form: CodeForm) -> None:
    """Of global memory by addresses: the values are those of the access, a width and such bits."""
    is_store, has_base = form.options
    builder = code.builder
    if is_store:
        refuse_if_watched(code)
    place = PlaceInMemory(code, has_base, 0)
    segments = Segments(code, code.value(3), is_store)
    first_address = repeated(code, code.field("first_address"), WIDTH)
    odd = repeated(code, code.value(4), WIDTH)
    with chunks(code) as chunk:
        addresses = place.of_chunk(chunk)
        active = chunk.exec_mask.value
        cut = builder.icmp_unsigned("!=", builder.and_(addresses, odd), _OFFSETS(None))
        code.refuse_if(any_of(code, builder.and_(cut, active)))
        with builder.if_then(any_of(code, builder.and_(segments.are_elsewhere(addresses), active))):
            for lane in range(WIDTH):
                with builder.if_then(builder.extract_element(active, I32(lane))):
                    segments.check(builder.extract_element(addresses, I32(lane)))
        _write_down(code, chunk, builder.sub(addresses, first_address))


@contextmanager
def _placed(code: NativeCode) -> Iterator[tuple[Lane, ir.Value]]:
    """All active lanes, with the address of what is written down of them: so far, nowhere."""
    builder = code.builder
    with code.waves() as wave:
        active = code.scalar_pair(I64(EXEC), wave)
        first = builder.add(code.field("places"), builder.mul(wave, I64(8 * LANES)))
        with code.loop(I64(LANES)) as number:
            slot = builder.add(first, builder.mul(number, I64(8)))
            code.store(I64(NOWHERE), slot, 8)
            with lane_if_active(code, active, wave, number) as lane:
                yield lane, slot


def write_buffer_places(code: NativeCode, form: CodeForm) -> None:
    """Through a descriptor: the values are those of the access, a width, such bits, and the size
    of the parts whose bounds are checked each for itself."""
    is_store, parts, is_constant = form.options
    builder = code.builder
    if is_store:
        refuse_if_watched(code)
    buffer = PlaceInBuffer(code, parts, is_constant, code.value(4), 0)
    segments = Segments(code, code.value(4), is_store)
    buffer.refuse_strange()
    with _placed(code) as (lane, slot):
        found = buffer.find(lane)
        code.refuse_if(builder.not_(builder.or_(found.inside, found.outside)))
        with builder.if_then(found.inside):
            segments.check(found.address)
            _refuse_odd(code, found.address, code.value(5))
            code.store(builder.sub(found.address, code.field("first_address")), slot, 8)
        if not parts[0]:  # outside, but inside by LLVM's rule, which leaves the scalar offset out
            end = builder.add(builder.sub(found.offset, found.scalar), code.value(6))
            disputed = builder.icmp_signed("<=", end, found.bound)
            code.refuse_if(builder.and_(found.outside, disputed))

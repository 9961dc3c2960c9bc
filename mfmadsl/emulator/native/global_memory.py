"""Loads and stores of global memory in native code: by addresses, or through a descriptor."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from llvmlite import ir

from mfmadsl.emulator.instructions.buffer_place import BUFFER_FLAGS
from mfmadsl.emulator.machine.launch import SCRATCH_DESCRIPTOR
from mfmadsl.emulator.machine.mode import Machine
from mfmadsl.emulator.machine.width import WIDTHS, Width
from mfmadsl.emulator.native.access import (
    Lane,
    Segments,
    active_lanes,
    host_address,
    load_words,
    put_words,
    refuse_if_watched,
    refuse_unaligned,
    repeated,
    rows_of,
    store_words,
    word_of,
)
from mfmadsl.emulator.native.code import I32, I64, WIDTH, Chunk, NativeCode
from mfmadsl.emulator.native.form import CodeForm, NativeStep
from mfmadsl.emulator.text.assembly import Instruction
from mfmadsl.emulator.text.operand import AssemblySymbol, Literal, Register, as_register

_GLOBAL = re.compile(r"global_(load|store)_(\w+)")
_BUFFER = re.compile(r"buffer_(load|store)_(\w+)")


def _constant(value: int) -> int:
    value %= 1 << 64
    return value - (1 << 64) * (value >> 63)


def describe_global(instruction: Instruction, machine: Machine) -> NativeStep | None:
    """A load or store by addresses as a step."""
    del machine
    match = _GLOBAL.fullmatch(instruction.name)
    width = WIDTHS.get(match[2]) if match else None
    if match is None or width is None:
        return None
    is_load = match[1] == "load"
    first, second, base = instruction.operands
    address, moved = (second, first) if is_load else (first, second)
    data, lanes = as_register(moved), as_register(address)
    has_base = isinstance(base, Register)
    moves = is_load and moves_address(data, width, lanes)
    options = (is_load, width, data.bank, has_base, moves)
    values = (data.index, lanes.index, _constant(instruction.signed_number("offset")))
    return NativeStep(
        CodeForm("global", "", options=options),
        (*values, base.index) if isinstance(base, Register) else values,
    )


def moves_address(data: Register, width: Width, address: Register) -> bool:
    """Whether a load changes registers of its own address."""
    return (
        data.bank == "v" and data.index < address.index + address.count
        and address.index < data.index + width.registers
    )  # fmt: skip


class PlaceInMemory:
    """Where lanes go by a 64-bit address, or by an offset from a scalar pair. The values from
    `first` on are the registers of lanes, a constant, and the pair."""

    def __init__(self, code: NativeCode, has_base: bool, first: int) -> None:
        self._code, self._has_base, self._first = code, has_base, first
        self._rows = rows_of(code, "v", code.value(first), 1 if has_base else 2)

    def base(self, wave: ir.Value) -> ir.Value:
        """What all lanes of a wave add."""
        code, constant = self._code, self._code.value(self._first + 1)
        if not self._has_base:
            return constant
        return code.builder.add(code.scalar_pair(code.value(self._first + 2), wave), constant)

    def of_chunk(self, chunk: Chunk) -> ir.Value:
        """The addresses of lanes, 64 bits each."""
        code, builder = self._code, self._code.builder
        wide = ir.VectorType(I64, WIDTH)
        words = [builder.zext(chunk.loaded(row).value, wide) for row in self._rows]
        base = repeated(code, self.base(chunk.wave), WIDTH)
        if self._has_base:
            return builder.add(base, words[0])
        high = builder.shl(words[1], ir.Constant(wide, [32] * WIDTH))
        return builder.add(builder.or_(words[0], high), base)

    def address(self, lane: Lane, base: ir.Value) -> ir.Value:
        """The address of a lane."""
        code, builder = self._code, self._code.builder
        words = [builder.zext(word_of(code, row, lane), I64) for row in self._rows]
        if self._has_base:
            return builder.add(base, words[0])
        whole = builder.or_(words[0], builder.shl(words[1], I64(32)))
        return builder.add(whole, base)

    def lanes(self, code: NativeCode) -> Iterator[tuple[Lane, ir.Value]]:
        """All lanes, with their addresses on this machine."""
        with active_lanes(code) as lane:
            yield lane, host_address(code, self.address(lane, self.base(lane.wave)))


def write_global(code: NativeCode, form: CodeForm) -> None:
    """The code of a load or store by addresses."""
    is_load, width, bank, has_base, moves = form.options
    place = PlaceInMemory(code, has_base, 1)
    rows = rows_of(code, bank, code.value(0), width.registers)
    segments = Segments(code, I64(width.size), not is_load)
    if not is_load:
        refuse_if_watched(code)
    with active_lanes(code) as lane:
        address = place.address(lane, place.base(lane.wave))
        segments.check(address)
        if not is_load:
            refuse_unaligned(code, address, width)
        elif not moves:  # what was loaded before a fault, is loaded again
            words = load_words(code, host_address(code, address), width)
            put_words(code, rows, lane, words, width)
    if is_load and not moves:
        return
    if is_load:
        with active_lanes(code) as lane:
            at = host_address(code, place.address(lane, place.base(lane.wave)))
            put_words(code, rows, lane, load_words(code, at, width), width)
    else:
        store_words(code, rows, width, place.lanes)


def describe_buffer(instruction: Instruction, machine: Machine) -> NativeStep | None:
    """A load or store through a descriptor as a step."""
    del machine
    match = _BUFFER.fullmatch(instruction.name)
    width = WIDTHS.get(match[2]) if match else None
    modifiers = set(instruction.modifiers)
    if match is None or width is None or "lds" in modifiers or modifiers - BUFFER_FLAGS:
        return None
    moved, vector, descriptor, base = instruction.operands
    data = as_register(moved)
    parts = ("idxen" in modifiers, "offen" in modifiers)
    if isinstance(base, AssemblySymbol):
        return None
    is_constant = isinstance(base, Literal)
    offset = base.bits(32, floating=False) if isinstance(base, Literal) else base.index
    is_load = match[1] == "load"
    moves = is_load and isinstance(vector, Register) and moves_address(data, width, vector)
    options = (is_load, width, data.bank, parts, is_constant, moves)
    values = (
        data.index,
        vector.index if isinstance(vector, Register) else 0,
        as_register(descriptor).index,
        instruction.number("offset", bits=12),
        offset,
    )
    return NativeStep(CodeForm("buffer", "", options=options), values)


@dataclass(frozen=True)
class LaneInBuffer:
    """A lane's address, whether all of it is inside of the buffer, and whether nothing is; and the
    offset that this is told by, what of it is the same in all lanes, and where the buffer ends."""

    address: ir.Value
    inside: ir.Value
    outside: ir.Value
    offset: ir.Value
    scalar: ir.Value
    bound: ir.Value


class PlaceInBuffer:
    """Where lanes go through a descriptor, and whether that is inside of it. The values from
    `first` on are the registers of lanes, the descriptor, a constant, and an offset."""

    def __init__(
        self, code: NativeCode, parts: tuple[bool, bool], is_constant: bool, size: ir.Value,
        first: int,
    ) -> None:  # fmt: skip
        self._code, self._parts, self._is_constant = code, parts, is_constant
        self._size, self._first = size, first
        self._rows = rows_of(code, "v", code.value(first), sum(parts))

    def _word(self, number: int, wave: ir.Value) -> ir.Value:
        code = self._code
        return code.scalar(code.builder.add(code.value(self._first + 1), I64(number)), wave)

    def refuse_strange(self) -> None:
        """Leave swizzled buffers, and scratch memory, to the interpreter."""
        code, builder = self._code, self._code.builder
        with code.waves() as wave:
            code.refuse_if(builder.icmp_signed("<", self._word(1, wave), I32(0)))
            scratch = I32(SCRATCH_DESCRIPTOR[3])
            code.refuse_if(builder.icmp_unsigned("==", self._word(3, wave), scratch))

    def find(self, lane: Lane) -> LaneInBuffer:
        """Where a lane goes."""
        code, builder, first = self._code, self._code.builder, self._first
        low, high, size = (self._word(number, lane.wave) for number in range(3))
        scalar = code.value(first + 3) if self._is_constant else (
            builder.zext(code.scalar(code.value(first + 3), lane.wave), I64))  # fmt: skip
        offset = builder.add(code.value(first + 2), scalar)
        stride = builder.zext(builder.and_(builder.lshr(high, I32(16)), I32(0x3FFF)), I64)
        words = [builder.zext(word_of(code, row, lane), I64) for row in self._rows]
        bound = builder.zext(size, I64)
        has_index, has_offset = self._parts
        if has_index:
            offset = builder.add(offset, builder.mul(words[0], stride))
            none = builder.icmp_unsigned("==", stride, I64(0))
            bound = builder.mul(bound, builder.select(none, I64(1), stride))
        if has_offset:
            offset = builder.add(offset, words[-1])
        base = builder.or_(
            builder.zext(low, I64),
            builder.shl(builder.zext(builder.and_(high, I32(0xFFFF)), I64), I64(32)),
        )
        inside = builder.icmp_signed("<=", builder.add(offset, self._size), bound)
        outside = builder.icmp_signed(">=", offset, bound)
        return LaneInBuffer(builder.add(base, offset), inside, outside, offset, scalar, bound)

    def lanes(self, code: NativeCode) -> Iterator[tuple[Lane, ir.Value]]:
        """The lanes that are inside, with their addresses on this machine."""
        with active_lanes(code) as lane:
            found = self.find(lane)
            with code.builder.if_then(found.inside):
                yield lane, host_address(code, found.address)


def write_buffer(code: NativeCode, form: CodeForm) -> None:
    """The code of a load or store through a descriptor."""
    is_load, width, bank, parts, is_constant, moves = form.options
    builder = code.builder
    buffer = PlaceInBuffer(code, parts, is_constant, I64(width.size), 1)
    rows = rows_of(code, bank, code.value(0), width.registers)
    segments = Segments(code, I64(width.size), not is_load)
    if not is_load:
        refuse_if_watched(code)
    buffer.refuse_strange()
    with active_lanes(code) as lane:
        found = buffer.find(lane)
        code.refuse_if(builder.not_(builder.or_(found.inside, found.outside)))
        if is_load and not moves:  # what was loaded before a fault, is loaded again
            _load_or_clear(code, rows, lane, width, found, segments)
        else:
            with builder.if_then(found.inside):
                segments.check(found.address)
                if not is_load:
                    refuse_unaligned(code, found.address, width)
    if not is_load:
        store_words(code, rows, width, buffer.lanes)
    elif moves:
        with active_lanes(code) as lane:
            _load_or_clear(code, rows, lane, width, buffer.find(lane), None)


def _load_or_clear(
    code: NativeCode, rows: list[ir.Value], lane: Lane, width: Width, found: LaneInBuffer,
    segments: Segments | None,
) -> None:  # fmt: skip
    """Load what is inside of a buffer; other lanes get zeros."""
    with code.builder.if_else(found.inside) as (yes, no):
        with yes:
            if segments is not None:
                segments.check(found.address)
            words = load_words(code, host_address(code, found.address), width)
            put_words(code, rows, lane, words, width)
        with no:
            put_words(code, rows, lane, [I32(0)] * width.registers, width)

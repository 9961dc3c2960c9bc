"""Loads and stores of global memory in native code: by addresses, or through a descriptor."""

from __future__ import annotations

import re
from collections.abc import Iterator

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
    rows_of,
    store_words,
    word_of,
)
from mfmadsl.emulator.native.code import I32, I64, NativeCode
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


class _Place:
    """Where lanes go by a 64-bit address, or by an offset from a scalar pair."""

    def __init__(self, code: NativeCode, has_base: bool) -> None:
        self._code, self._has_base = code, has_base
        self._rows = rows_of(code, "v", code.value(1), 1 if has_base else 2)

    def address(self, lane: Lane) -> ir.Value:
        """The address of a lane."""
        code, builder = self._code, self._code.builder
        words = [builder.zext(word_of(code, row, lane), I64) for row in self._rows]
        if self._has_base:
            base = code.scalar_pair(code.value(3), lane.wave)
            return builder.add(builder.add(base, code.value(2)), words[0])
        whole = builder.or_(words[0], builder.shl(words[1], I64(32)))
        return builder.add(whole, code.value(2))

    def lanes(self, code: NativeCode) -> Iterator[tuple[Lane, ir.Value]]:
        """All lanes, with their addresses on this machine."""
        with active_lanes(code) as lane:
            yield lane, host_address(code, self.address(lane))


def write_global(code: NativeCode, form: CodeForm) -> None:
    """The code of a load or store by addresses."""
    is_load, width, bank, has_base, moves = form.options
    place = _Place(code, has_base)
    rows = rows_of(code, bank, code.value(0), width.registers)
    segments = Segments(code, width.size, not is_load)
    if not is_load:
        refuse_if_watched(code)
    with active_lanes(code) as lane:
        address = place.address(lane)
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
            at = host_address(code, place.address(lane))
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


class _Buffer:
    """Where lanes go through a descriptor, and whether that is inside of it."""

    def __init__(self, code: NativeCode, form: CodeForm) -> None:
        _, self._width, _, self._parts, self._is_constant, _ = form.options
        self._code = code
        self._rows = rows_of(code, "v", code.value(1), sum(self._parts))

    def _word(self, number: int, wave: ir.Value) -> ir.Value:
        code = self._code
        return code.scalar(code.builder.add(code.value(2), I64(number)), wave)

    def refuse_strange(self) -> None:
        """Leave swizzled buffers, and scratch memory, to the interpreter."""
        code, builder = self._code, self._code.builder
        with code.waves() as wave:
            code.refuse_if(builder.icmp_signed("<", self._word(1, wave), I32(0)))
            scratch = I32(SCRATCH_DESCRIPTOR[3])
            code.refuse_if(builder.icmp_unsigned("==", self._word(3, wave), scratch))

    def find(self, lane: Lane) -> tuple[ir.Value, ir.Value, ir.Value]:
        """A lane's address, whether all of it is inside of the buffer, and whether nothing is."""
        code, builder = self._code, self._code.builder
        low, high, size = (self._word(number, lane.wave) for number in range(3))
        offset = code.value(3)
        scalar = code.value(4) if self._is_constant else (
            builder.zext(code.scalar(code.value(4), lane.wave), I64))  # fmt: skip
        offset = builder.add(offset, scalar)
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
        end = builder.add(offset, I64(self._width.size))
        inside = builder.icmp_signed("<=", end, bound)
        return builder.add(base, offset), inside, builder.icmp_signed(">=", offset, bound)

    def lanes(self, code: NativeCode) -> Iterator[tuple[Lane, ir.Value]]:
        """The lanes that are inside, with their addresses on this machine."""
        with active_lanes(code) as lane:
            address, inside, _ = self.find(lane)
            with code.builder.if_then(inside):
                yield lane, host_address(code, address)


def write_buffer(code: NativeCode, form: CodeForm) -> None:
    """The code of a load or store through a descriptor."""
    is_load, width, bank, _, _, moves = form.options
    builder = code.builder
    buffer = _Buffer(code, form)
    rows = rows_of(code, bank, code.value(0), width.registers)
    segments = Segments(code, width.size, not is_load)
    if not is_load:
        refuse_if_watched(code)
    buffer.refuse_strange()
    with active_lanes(code) as lane:
        address, inside, outside = buffer.find(lane)
        code.refuse_if(builder.not_(builder.or_(inside, outside)))
        if is_load and not moves:  # what was loaded before a fault, is loaded again
            _load_or_clear(code, rows, lane, width, address, inside, segments)
        else:
            with builder.if_then(inside):
                segments.check(address)
                if not is_load:
                    refuse_unaligned(code, address, width)
    if not is_load:
        store_words(code, rows, width, buffer.lanes)
        return
    if not moves:
        return
    with active_lanes(code) as lane:
        address, inside, _ = buffer.find(lane)
        _load_or_clear(code, rows, lane, width, address, inside, None)


def _load_or_clear(
    code: NativeCode, rows: list[ir.Value], lane: Lane, width: Width, address: ir.Value,
    inside: ir.Value, segments: Segments | None,
) -> None:  # fmt: skip
    """Load what is inside of a buffer; other lanes get zeros."""
    with code.builder.if_else(inside) as (yes, no):
        with yes:
            if segments is not None:
                segments.check(address)
            words = load_words(code, host_address(code, address), width)
            put_words(code, rows, lane, words, width)
        with no:
            put_words(code, rows, lane, [I32(0)] * width.registers, width)

"""Loads and stores of the LDS in native code."""

from __future__ import annotations

import re
from collections.abc import Iterator

from llvmlite import ir

from mfmadsl.emulator.machine.mode import Machine
from mfmadsl.emulator.machine.width import WIDTHS, Width
from mfmadsl.emulator.native.access import (
    Lane,
    active_lanes,
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
from mfmadsl.emulator.text.operand import as_register

_MOVE = re.compile(r"ds_(read|write)(2st64|2|)_(\w+)")


def describe_lds(instruction: Instruction, machine: Machine) -> NativeStep | None:
    """A load or store as a step: its address, its registers, and its offsets."""
    del machine
    match = _MOVE.fullmatch(instruction.name)
    width = WIDTHS.get(match[3]) if match else None
    if match is None or width is None:
        return None
    is_load, scale = match[1] == "read", {"2st64": 64, "2": 1, "": 0}[match[2]]
    operands = [as_register(operand) for operand in instruction.operands]
    address, data = (operands[1], operands[:1]) if is_load else (operands[0], operands[1:])
    places = [instruction.number("offset")]
    starts = [register.index for register in data]
    if scale:
        step = width.size * scale
        places = [instruction.number(name, bits=8) * step for name in ("offset0", "offset1")]
        starts = [starts[0], starts[0] + width.registers] if is_load else starts
    banks = tuple(register.bank for register in data)
    moves_address = is_load and any(
        bank == "v" and 0 <= address.index - start < width.registers
        for bank, start in zip(banks * len(places), starts, strict=True)
    )
    banks = banks * len(places) if is_load else banks
    options = (is_load, width, len(places), banks, moves_address)
    values = (address.index, *(x for pair in zip(starts, places, strict=True) for x in pair))
    return NativeStep(CodeForm("lds", "", options=options), values)


class _Access:
    """One of the two accesses of an instruction, or the only one."""

    def __init__(self, code: NativeCode, number: int, bank: str, width: Width) -> None:
        self._code, self._width = code, width
        self._address = code.register_row("v", code.value(0))
        self.rows = rows_of(code, bank, code.value(1 + 2 * number), width.registers)
        self._place = code.builder.trunc(code.value(2 + 2 * number), I32)

    def offset(self, lane: Lane) -> ir.Value:
        """The address that a lane accesses in the LDS of its workgroup."""
        builder = self._code.builder
        word = word_of(self._code, self._address, lane)
        return builder.zext(builder.add(word, self._place), I64)

    def at(self, lane: Lane, offset: ir.Value) -> ir.Value:
        """Where that lies on this machine."""
        code, builder = self._code, self._code.builder
        place = builder.add(code.field("workgroup"), builder.mul(lane.wave, I64(8)))
        group = builder.mul(code.load(place, I64, 8), code.field("lds_stride"))
        return builder.add(builder.add(code.field("lds"), group), offset)

    def lanes(self, code: NativeCode) -> Iterator[tuple[Lane, ir.Value]]:
        """All lanes, with their addresses on this machine."""
        with active_lanes(code) as lane:
            yield lane, self.at(lane, self.offset(lane))


def write_lds(code: NativeCode, form: CodeForm) -> None:
    """The code of a load or store."""
    is_load, width, count, banks, moves_address = form.options
    builder = code.builder
    accesses = [_Access(code, number, banks[number], width) for number in range(count)]
    if not is_load:
        refuse_if_watched(code)
    limit = builder.sub(code.field("lds_size"), I64(width.size))
    if is_load and not moves_address:  # what was loaded before a fault, is loaded again
        with active_lanes(code) as lane:
            _check(code, accesses, lane, limit)
            _load(code, accesses, lane, width)
        return
    with active_lanes(code) as lane:
        for offset in _check(code, accesses, lane, limit):
            if not is_load:
                refuse_unaligned(code, offset, width)
    if is_load:
        with active_lanes(code) as lane:
            _load(code, accesses, lane, width)
    else:
        for access in accesses:
            store_words(code, access.rows, width, access.lanes)


def _check(
    code: NativeCode, accesses: list[_Access], lane: Lane, limit: ir.Value
) -> list[ir.Value]:
    """Refuse what does not lie in the LDS; gives where it lies."""
    offsets = [access.offset(lane) for access in accesses]
    for offset in offsets:
        code.refuse_if(code.builder.icmp_signed(">", offset, limit))
    return offsets


def _load(code: NativeCode, accesses: list[_Access], lane: Lane, width: Width) -> None:
    """All is loaded before a register changes, which may be that of the address."""
    loaded = [load_words(code, access.at(lane, access.offset(lane)), width) for access in accesses]
    for access, words in zip(accesses, loaded, strict=True):
        put_words(code, access.rows, lane, words, width)

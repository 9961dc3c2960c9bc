"""Loads and stores of lanes: global memory and LDS (CDNA3 ISA, chapters 9 to 11)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mfmadsl.emulator.assembly import Instruction
from mfmadsl.emulator.error import EmulationError
from mfmadsl.emulator.memory import ByteStore
from mfmadsl.emulator.operand import Operand, Register, Symbol
from mfmadsl.emulator.wave import LANES, Array, Mask, Waves

Execute = Callable[[Waves], None]

_GLOBAL = re.compile(r"global_(load|store)_(\w+)")
_LDS = re.compile(r"ds_(read|write)(2st64|2|)_(\w+)")
_SCRATCH = re.compile(r"scratch_(load|store)_(\w+)")
_BUFFER = re.compile(r"buffer_(load|store)_(\w+)")
_IGNORED = {"offset", "offset0", "offset1", "sc0", "sc1", "nt", "glc", "slc", "offen"}

SCRATCH_DESCRIPTOR = (0, 0x8000_0000, 0xFFFF_FFFF, 0x0080_0000)
"""What s[0:3] hold in kernels that reach their scratch memory by buffer instructions: base 0,
swizzled, of any size, and with the thread's number added (CDNA3 ISA, section 9.1.5)."""


@dataclass(frozen=True)
class Width:
    """How much one lane moves: whole words, or a byte or half with its place in the register."""

    size: int
    signed: bool = False
    half: str = ""  # "lo" or "hi": only that half of the register changes

    @property
    def words(self) -> int:
        return self.size // 4


_WIDTHS = {
    **{f"dword{s}": Width(4 * n) for s, n in (("", 1), ("x2", 2), ("x3", 3), ("x4", 4))},
    **{f"b{8 * n}": Width(n) for n in (1, 2, 4, 8, 12, 16)},
    **{
        name: Width(size, signed=name[0] == "s" or name[0] == "i")
        for size, names in (
            (1, ("ubyte", "sbyte", "byte", "u8", "i8")),
            (2, ("ushort", "sshort", "short", "u16", "i16")),
        )
        for name in names
    },
    "short_d16": Width(2, half="lo"),
    "short_d16_hi": Width(2, half="hi"),
    "ubyte_d16": Width(1, half="lo"),
    "ubyte_d16_hi": Width(1, half="hi"),
    "u16_d16": Width(2, half="lo"),
    "u16_d16_hi": Width(2, half="hi"),
    "u8_d16": Width(1, half="lo"),
    "u8_d16_hi": Width(1, half="hi"),
    "b16_d16_hi": Width(2, half="hi"),
    "b8_d16_hi": Width(1, half="hi"),
    "byte_d16_hi": Width(1, half="hi"),
}
_WIDTHS |= {"short": Width(2), "byte": Width(1)}  # stores: no sign to extend


def compile_access(instruction: Instruction) -> Execute | None:
    """What a load or store does, or None if it is not one of these."""
    if set(instruction.modifiers) - _IGNORED:
        return None
    if match := _GLOBAL.fullmatch(instruction.name):
        return _global(instruction, match[1] == "load", _WIDTHS.get(match[2]))
    if match := _LDS.fullmatch(instruction.name):
        scale = {"2st64": 64, "2": 1, "": 0}[match[2]]
        return _lds(instruction, match[1] == "read", scale, _WIDTHS.get(match[3]))
    if match := _SCRATCH.fullmatch(instruction.name):
        return _scratch(instruction, match[1] == "load", _WIDTHS.get(match[2]))
    if match := _BUFFER.fullmatch(instruction.name):
        return _buffer(instruction, match[1] == "load", _WIDTHS.get(match[2]))
    return None


def _global(instruction: Instruction, load: bool, width: Width | None) -> Execute | None:
    if width is None:
        return None
    first, second, base = instruction.operands
    address, data = (second, first) if load else (first, second)
    assert isinstance(data, Register)
    displacement = np.uint64(instruction.offset() & 0xFFFF_FFFF_FFFF_FFFF)
    if isinstance(base, Symbol):

        def addresses(waves: Waves) -> Array:
            return waves.read_vector(address, "u64") + displacement
    else:

        def addresses(waves: Waves) -> Array:
            scalar = waves.read_vector(base, "u64") + displacement
            return scalar + waves.read_vector(address, "u32")

    def execute(waves: Waves) -> None:
        mask = waves.exec_mask()
        lanes = _active(addresses(waves), waves, mask)
        offsets = waves.memory.offsets(lanes, width.size)
        if load:
            _load(waves, waves.memory, offsets, data, width, mask)
        else:
            _store(waves, waves.memory, offsets, data, width, mask)

    return execute


def _lds(instruction: Instruction, load: bool, scale: int, width: Width | None) -> Execute | None:
    if width is None:
        return None
    first, *rest = instruction.operands
    address: Operand = rest[0] if load else first
    data = [first] if load else rest
    if scale:
        step = width.size * scale
        places = [instruction.offset("offset0") * step, instruction.offset("offset1") * step]
        if load:
            data = _halves(first, width.words)
    else:
        places = [instruction.offset()]

    def execute(waves: Waves) -> None:
        mask = waves.exec_mask()
        lanes = _active(waves.read_vector(address, "u32"), waves, mask)
        groups = _active(waves.workgroup[:, None], waves, mask)
        # Both offsets are read before either is written: the target may hold the address.
        offsets = [
            waves.lds.offsets(lanes + np.uint32(place), groups, width.size) for place in places
        ]
        for offset, register in zip(offsets, data, strict=True):
            assert isinstance(register, Register)
            if load:
                _load(waves, waves.lds, offset, register, width, mask)
            else:
                _store(waves, waves.lds, offset, register, width, mask)

    return execute


def _scratch(instruction: Instruction, load: bool, width: Width | None) -> Execute | None:
    """Each lane's own memory, at a vector offset, or else a scalar one, and a constant."""
    if width is None:
        return None
    first, second, base = instruction.operands
    address, data = (second, first) if load else (first, second)
    parts = [part for part in (address, base) if not isinstance(part, Symbol)]
    displacement = instruction.offset()

    def execute(waves: Waves) -> None:
        offset: Array = np.full((1, 1), displacement, dtype=np.uint32)
        for part in parts:
            offset = offset + waves.read_vector(part, "u32")
        _move_scratch(waves, offset, data, load, width)

    return execute


def _buffer(instruction: Instruction, load: bool, width: Width | None) -> Execute | None:
    """Buffer instructions, as far as kernels for gfx908 and gfx90a use them for scratch memory."""
    if width is None:
        return None
    data, address, descriptor, base = instruction.operands
    displacement = instruction.offset()

    def execute(waves: Waves) -> None:
        assert isinstance(descriptor, Register)
        last = waves.scalar[descriptor.index + 3]
        if (last != SCRATCH_DESCRIPTOR[3]).any():
            raise EmulationError("the buffer is not the scratch memory, and no other is emulated")
        # The scalar offset is not swizzled: it counts the bytes of all lanes together.
        offset = waves.read_vector(base, "u32") // np.uint32(LANES) + np.uint32(displacement)
        if not isinstance(address, Symbol):
            offset = offset + waves.read_vector(address, "u32")
        _move_scratch(waves, offset, data, load, width)

    return execute


def _move_scratch(waves: Waves, offset: Array, data: Operand, load: bool, width: Width) -> None:
    assert isinstance(data, Register)
    mask = waves.exec_mask()
    owners = waves.index[:, None] * LANES + np.arange(LANES)
    offsets = waves.scratch.offsets(
        _active(offset, waves, mask), _active(owners, waves, mask), width.size
    )
    if load:
        _load(waves, waves.scratch, offsets, data, width, mask)
    else:
        _store(waves, waves.scratch, offsets, data, width, mask)


def _halves(register: Operand, words: int) -> list[Operand]:
    assert isinstance(register, Register)
    return [Register(register.bank, register.index + i * words, words) for i in range(2)]


def _active(values: Array, waves: Waves, mask: Mask | None) -> Array:
    """The values of the lanes that take part, (count, 64) if all do, else flat."""
    full = np.broadcast_to(values, (waves.count, LANES))
    return full if mask is None else full[mask]


def _load(
    waves: Waves,
    store: ByteStore,
    offsets: Array,
    target: Register,
    width: Width,
    mask: Mask | None,
) -> None:
    file = waves.vector if target.bank == "v" else waves.accumulation
    if width.words:
        loaded = store.load_words(offsets, width.words)
    else:
        value = store.load_narrow(offsets, width.size)
        if width.signed:
            sign = np.uint32(1 << (8 * width.size - 1))
            value = (value ^ sign) - sign
        if width.half:
            row = file[target.index]
            old = row if mask is None else row[mask]
            value = (
                old & np.uint32(0xFFFF) | value << np.uint32(16)
                if width.half == "hi"
                else old & np.uint32(0xFFFF0000) | value
            )
        loaded = value[None]
    for i, word in enumerate(loaded):
        row = file[target.index + i]
        if mask is None:
            row[...] = word
        else:
            row[mask] = word


def _store(
    waves: Waves,
    store: ByteStore,
    offsets: Array,
    source: Register,
    width: Width,
    mask: Mask | None,
) -> None:
    file = waves.vector if source.bank == "v" else waves.accumulation
    words = file[source.index : source.index + max(1, width.words)]
    values = words if mask is None else words[:, mask]
    if width.words:
        store.store_words(offsets, values)
        return
    value = values[0] >> np.uint32(16) if width.half == "hi" else values[0]
    store.store_narrow(offsets, value, width.size)

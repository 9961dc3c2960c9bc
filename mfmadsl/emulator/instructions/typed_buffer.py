"""Loads and stores of typed buffers, whose elements have a format (CDNA3 ISA, chapter 9: MUBUF's
format instructions, which ask the descriptor for it, and MTBUF, which say it)."""

from __future__ import annotations

import re

import numpy as np

from mfmadsl.emulator.error import EmulationError, OperandError
from mfmadsl.emulator.instructions.buffer_place import BUFFER_FLAGS, BufferPlace
from mfmadsl.emulator.instructions.format import ElementFormat, element_format, written_format
from mfmadsl.emulator.machine.bits import Array, beside
from mfmadsl.emulator.machine.operation import OperandRead, Operation
from mfmadsl.emulator.machine.transfer import reach_global
from mfmadsl.emulator.machine.wave import LANES, Waves
from mfmadsl.emulator.machine.width import Width
from mfmadsl.emulator.text.assembly import Instruction
from mfmadsl.emulator.text.operand import Register, check_registers

_NAME = re.compile(r"t?buffer_(load|store)_format_(d16_)?(hi_)?(x|xy|xyz|xyzw)")
_ONE = (1, np.float32(1).view(np.uint32))


def compile_typed_buffer(instruction: Instruction) -> Operation | None:
    """What a load or store of a typed buffer does, or None if it is something else."""
    found = _NAME.fullmatch(instruction.name)
    allowed = BUFFER_FLAGS | ({"format"} if instruction.name[0] == "t" else set())
    if found is None or set(instruction.modifiers) - allowed:
        return None
    stated = None
    if instruction.name[0] == "t":
        stated = written_format(instruction.modifiers.get("format", "1"))
        if stated is None:
            raise OperandError("it is no format that is known")
    moved, *operands = instruction.taking(4)
    count, halves = len(found[4]), found[2] is not None
    half = "hi" if found[3] else "lo" if halves and count == 1 else ""
    data = check_registers(moved, -(-count // 2) if halves else count, "va")
    access = _Access(BufferPlace(instruction, operands), data, count, halves, half, stated)
    reads = access.place.reads()
    if found[1] == "store":
        return Operation(access.store, "vmem", (*reads, OperandRead(data)))
    kept = (OperandRead(data, 0xFFFF if half == "hi" else 0xFFFF0000, moved=True),) if half else ()
    return Operation(access.load, "vmem", reads + kept, (data,))


class _Access:
    """One instruction: `count` components in registers, as halves of them or as words."""

    def __init__(
        self, place: BufferPlace, data: Register, count: int, halves: bool, half: str,
        stated: tuple[int, int] | None,
    ) -> None:  # fmt: skip
        self.place, self._data, self._count = place, data, count
        self._halves, self._half, self._stated = halves, half, stated

    def _format(self, waves: Waves) -> tuple[ElementFormat, list[int]]:
        """The format, and which component or constant each register gets.

        Raises EmulationError where waves have different ones.
        """
        last = waves.scalar[self.place.descriptor.index + 3]
        if (last != last[0]).any():
            raise EmulationError("waves have buffers of different formats")
        word = int(last[0])
        numbers = self._stated or (word >> 15 & 15, word >> 12 & 7)
        return element_format(*numbers), [word >> 3 * i & 7 for i in range(4)]

    def _inside(self, waves: Waves, size: int) -> tuple[Array, Array]:
        addresses, offset, bound = self.place.find(waves)
        self.place.compare_rules(waves, offset, bound, Width(size))
        lanes = waves.lanes_of(waves.exec_mask())
        return addresses, lanes & (offset + size <= bound)

    def load(self, waves: Waves) -> None:
        """Elements to registers; zeros for those beyond the end."""
        element, selected = self._format(waves)
        addresses, inside = self._inside(waves, element.size)
        words = np.zeros((4, waves.count, LANES), np.uint32)
        offsets, mask = reach_global(waves, addresses, inside, element.size)
        reached = waves.lanes_of(mask)
        if waves.watch is not None:
            waves.watch.loads(waves, waves.memory, offsets, self._data, Width(element.size), mask)
        for byte in range(element.size):
            value = waves.memory.load_narrow(offsets + byte, 1).reshape(-1)
            words[byte // 4, reached] |= value << np.uint32(8 * (byte % 4))
        components = element.numbers(words)
        one = np.uint32(_ONE[not element.is_integer])
        zero = np.zeros((waves.count, LANES), np.uint32)
        sources = [zero, zero + one, None, None, *components]
        for missing in range(len(components), 4):
            sources.append(zero + one if missing == 3 else zero)
        values = []
        for chosen in selected[: self._count]:
            source = sources[chosen]
            if source is None:
                raise EmulationError(f"the descriptor selects {chosen}, which is no component")
            values.append(np.where(reached, source, 0).astype(np.uint32))
        self._put(waves, values, element)

    def _put(self, waves: Waves, values: list[Array], element: ElementFormat) -> None:
        if not self._halves:
            for i, value in enumerate(values):
                waves.write_vector(self._register(i), value)
            return
        narrow = [_narrowed(value, element) for value in values]
        for i in range(0, len(narrow), 2):
            register = self._register(i // 2)
            if i + 1 < len(narrow):
                value = narrow[i] | narrow[i + 1] << np.uint32(16)
            else:
                value = beside(waves.read_vector(register, "u32"), narrow[i], self._half or "lo")
            waves.write_vector(register, value)

    def store(self, waves: Waves) -> None:
        """Registers to elements, as far as those lie in the buffer."""
        element, selected = self._format(waves)
        if len(element.widths) != self._count or selected[: self._count] != [
            4 + i for i in range(self._count)
        ]:
            raise EmulationError(
                f"stores {self._count} components to a format of {len(element.widths)} that "
                f"selects {selected}: only all of them, in order, are emulated"
            )
        addresses, inside = self._inside(waves, element.size)
        offsets, mask = reach_global(waves, addresses, inside, element.size)
        reached = waves.lanes_of(mask)
        if waves.watch is not None:
            width = Width(4 * self._data.count)
            waves.watch.stores(waves, waves.memory, offsets, self._data, width, mask)
        components = [np.where(reached, v, 0) for v in self._components(waves, element)]
        words = element.elements(components)[:, reached]
        flat = offsets.reshape(-1)
        for byte in range(element.size):
            value = words[byte // 4] >> np.uint32(8 * (byte % 4))
            waves.memory.store_narrow(flat + byte, value, 1)

    def _components(self, waves: Waves, element: ElementFormat) -> list[Array]:
        shape = (waves.count, LANES)
        if not self._halves:
            words = (waves.read_vector(self._register(i), "u32") for i in range(self._count))
            return [np.broadcast_to(word, shape) for word in words]
        found = []
        for i in range(self._count):
            word = np.broadcast_to(waves.read_vector(self._register(i // 2), "u32"), shape)
            high = i % 2 == 1 or self._half == "hi"
            half = (word >> np.uint32(16 * high)).astype(np.uint16)
            found.append(_widened(half, element))
        return found

    def _register(self, index: int) -> Register:
        return Register(self._data.bank, self._data.index + index, 1)


def _narrowed(value: Array, element: ElementFormat) -> Array:
    if element.is_integer:
        return value & np.uint32(0xFFFF)
    return value.view(np.float32).astype(np.float16).view(np.uint16).astype(np.uint32)


def _widened(half: Array, element: ElementFormat) -> Array:
    if not element.is_integer:
        return half.view(np.float16).astype(np.float32).view(np.uint32)
    if element.kind == "UINT":
        return half.astype(np.uint32)
    return half.view(np.int16).astype(np.int32).view(np.uint32)

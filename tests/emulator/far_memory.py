"""Some workgroups of a kernel, with arguments far larger than what those touch of them.

The emulator copies what it is given. Here the memory is made of zeros, which cost nothing as long
as nobody touches them, and a test fills in what its workgroups read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mfmadsl.backend import Kernel
from mfmadsl.emulator.machine.launch import LoadedProgram, dispatch_packet, hidden_arguments
from mfmadsl.emulator.machine.memory import GlobalMemory, Segment, zeros
from mfmadsl.emulator.run import launch_of, run_loaded
from mfmadsl.emulator.text.metadata import passed
from mfmadsl.model.numpy_type import numpy_type

_FIRST, _APART = 0x7F00_0000_0000, 4096
Array = npt.NDArray[Any]


class FarMemory:
    """The arguments of a kernel of one launch, all of them 0, as arrays that may be filled."""

    def __init__(self, kernel: Kernel) -> None:
        self._launch = launch_of(kernel, None, None, None)
        kinds = [numpy_type(argument.dtype) for argument in kernel.arguments]
        shapes = [tuple(map(int, map(str, argument.shape))) for argument in kernel.arguments]
        taken = self._launch.program.arguments
        sizes = [
            ("kernel arguments", max(a.offset + a.size for a in taken) + 15 & ~15),
            ("dispatch packet", 64),
            *(
                (argument.name, int(np.prod(shape, dtype=np.int64)) * kind.itemsize)
                for argument, shape, kind in zip(kernel.arguments, shapes, kinds, strict=True)
            ),
        ]
        segments, offset = [], _APART
        for name, size in sizes:
            segments.append(Segment(name, _FIRST + offset, size))
            offset += -(-size // _APART) * _APART + _APART
        memory = _Written(zeros(offset), _FIRST, segments)
        block, packet, *own = segments
        memory.content(packet)[:] = dispatch_packet(self._launch)
        pointers = [np.array([each.address], np.uint64).view(np.uint8) for each in own]
        for argument, value in [
            *zip(passed(taken), pointers, strict=True), *hidden_arguments(self._launch, memory),
        ]:  # fmt: skip
            place = argument.offset
            memory.content(block)[place : place + argument.size] = value
        self.arrays: list[Array] = [
            memory.content(segment).view(kind).reshape(shape)
            for segment, kind, shape in zip(own, kinds, shapes, strict=True)
        ]
        self._memory, self._loaded, self._result = (
            memory,
            LoadedProgram(memory, block, packet),
            own[-1],
        )

    def run(self, groups: Sequence[int]) -> Array:
        """Run these workgroups, counted from the last one where negative; which rows of the last
        argument they have written."""
        self._memory.places.clear()
        count = self._launch.groups
        run_loaded(self._launch, self._loaded, groups=np.array([g % count for g in groups]))
        result = self.arrays[-1]
        first = self._memory.offset_of(self._result)
        row = result.shape[-1] * result.itemsize
        return np.unique((np.concatenate(self._memory.places) - first) // row)


class _Written(GlobalMemory):
    """Memory that knows where it was written to."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.places: list[Array] = []

    def store_words(self, offsets: Array, values: Array) -> None:
        self.places.append(np.unique(offsets))
        super().store_words(offsets, values)

    def store_narrow(self, offsets: Array, values: Array, width: int) -> None:
        self.places.append(np.unique(offsets))
        super().store_narrow(offsets, values, width)

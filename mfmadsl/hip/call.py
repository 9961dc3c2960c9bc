"""Launches as a GPU takes them: code objects, and argument segments but for the pointers."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mfmadsl.backend.gpu.kernel import Kernel, KernelLaunch
from mfmadsl.backend.gpu.linker import linked
from mfmadsl.emulator.text.metadata import passed, read_metadata
from mfmadsl.hip.binding import Hip
from mfmadsl.hip.timing import Ready


@dataclass(frozen=True)
class Call:
    """A launch that knows nothing of where arrays lie.

    `arguments` say at which byte of the kernel argument segment lies what: the bytes of a number,
    or the address of an array, by its place among the arrays of all calls.
    """

    code_object: bytes
    symbol: str
    grid: Sequence[int]
    block: Sequence[int]
    arguments: tuple[tuple[int, bytes | int], ...]

    def ready(self, stack: ExitStack, runtime: Hip, pointers: Sequence[int]) -> Ready:
        """The launch, with its kernel loaded while the stack is open; `pointers` are the arrays'.

        Raises HipError.
        """
        function = stack.enter_context(runtime.function(self.code_object, self.symbol))
        return Ready(function, self.grid, self.block, self._segment(pointers))

    def _segment(self, pointers: Sequence[int]) -> bytes:
        segment = bytearray()
        for offset, value in self.arguments:
            content = value if isinstance(value, bytes) else pointers[value].to_bytes(8, "little")
            segment.extend(bytes(max(0, offset + len(content) - len(segment))))
            segment[offset : offset + len(content)] = content
        return bytes(segment)


def calls_of(
    kernel: Kernel, launches: Sequence[KernelLaunch]
) -> tuple[list[Call], list[npt.NDArray[Any]]]:
    """The calls of a kernel's launches, and the arrays that they take, each once.

    Raises LinkError where there is no linker.
    """
    calls = []
    arrays: dict[int, npt.NDArray[Any]] = {}
    kernels = {each.symbol: each for each in kernel.chain()}
    for launch in launches:
        each = kernels[launch.symbol]
        taken = passed(read_metadata(each.assembly, each.symbol).arguments)
        arguments: list[tuple[int, bytes | int]] = []
        for argument, value in zip(taken, launch.args, strict=True):
            if isinstance(value, np.ndarray):
                arrays.setdefault(id(value), value)
                arguments.append((argument.offset, list(arrays).index(id(value))))
            else:
                arguments.append((argument.offset, value.tobytes()))
        code = linked(each.code_object)
        calls.append(Call(code, each.symbol, launch.grid, launch.block, tuple(arguments)))
    return calls, list(arrays.values())

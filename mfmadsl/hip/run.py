"""`run`: a kernel on a GPU, as `emulate` runs it without one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt

from mfmadsl.argument import check_integer, check_list, check_type, described
from mfmadsl.backend.kernel import Kernel
from mfmadsl.backend.linker import LinkError
from mfmadsl.emulator.text.metadata import KernelArgument, read_metadata
from mfmadsl.error import ArgumentError
from mfmadsl.hip.array import DeviceArray, device_array
from mfmadsl.hip.binding import Hip, hip
from mfmadsl.hip.timing import Ready, seconds_of


@dataclass(frozen=True)
class Ran:
    """A run on a GPU: which one it was, and seconds of each timed repetition of all launches, which
    on an emulated GPU may be the emulator's own: `tells_time` says so."""

    device: str
    arch: str
    seconds: tuple[float, ...] = ()
    tells_time: bool = True

    @property
    def median_seconds(self) -> float:
        return median(self.seconds)


def run(kernel: Kernel, args: Sequence[Any], *, repeat: int = 0) -> Ran:
    """Run a kernel on the GPU of this machine; arrays are changed in place.

    `kernel` is what `build` returned. `args` are NumPy arrays, which are copied to the GPU and
    back, or arrays that lie in its memory already: tensors of PyTorch, CuPy, TVM and whatever else
    has `__dlpack__` or `__cuda_array_interface__`. With `repeat` the launches are repeated so often
    after that and timed by the GPU's own events; so often does the kernel then change its results.

    Raises HipError where HIP is not there or refuses, ArgumentError and ArgumentTypeError for what
    the kernel does not take or a GPU of another chip, and LinkError where there is no linker.
    """
    check_type("kernel", kernel, Kernel, "what `build` returns")
    check_list("args", args, "a list of the kernel's arguments")
    if check_integer("repeat", repeat) < 0:
        raise ArgumentError(f"repeat: is a number from 0 on, not {described(repeat)}")
    runtime = hip()
    device = runtime.device()
    if device.arch != kernel.arch:
        raise ArgumentError(
            f"the kernel is for {kernel.arch}, but the GPU, {device.name}, is a {device.arch}: "
            f"build it with arch={device.arch!r}"
        )
    with ExitStack() as stack:
        ready, copies = _loaded(stack, runtime, kernel, args)
        for each in ready:
            each.start(runtime)
        runtime.synchronize()
        for array, pointer, name in copies:
            _bring_back(runtime, array, pointer, name)
        seconds = seconds_of(stack, runtime, ready, repeat) if repeat else ()
    return Ran(device.name, device.arch, seconds, device.tells_time)


def _loaded(
    stack: ExitStack, runtime: Hip, kernel: Kernel, args: Sequence[Any]
) -> tuple[list[Ready], list[tuple[npt.NDArray[Any], int, str]]]:
    """Launches that are ready, and the arrays to be brought back from where they lie."""
    names = [a.name for a in kernel.arguments]
    there = [device_array(value, name) for value, name in zip(args, names, strict=False)]
    stand_ins = [*map(_stand_in, args, there), *args[len(there) :]]
    launches = kernel.launches(stand_ins)
    pointers = {
        id(stand_in): found.pointer
        for stand_in, found in zip(stand_ins, there, strict=True)
        if found is not None
    }
    copies = []
    for launch in launches:
        for value in launch.args:
            if isinstance(value, np.ndarray) and id(value) not in pointers:
                pointer = stack.enter_context(runtime.allocated(value.nbytes))
                pointers[id(value)] = pointer
                if any(value is each for each in args):
                    dense = np.ascontiguousarray(value)
                    runtime.to_device(pointer, dense.ctypes.data, dense.nbytes)
                    copies.append((value, pointer, _name_of(value, kernel, args)))
    ready = []
    for each, launch in zip(kernel.chain(), launches, strict=True):
        code = each.code_object
        if code is None:
            raise LinkError("no linker found for a code object: install lld, or the pip package "
                            "ziglang")  # fmt: skip
        function = stack.enter_context(runtime.function(code, each.symbol))
        taken = [
            a
            for a in read_metadata(each.assembly, each.symbol).arguments
            if not a.kind.startswith("hidden_")
        ]
        segment = _segment(taken, launch.args, pointers)
        ready.append(Ready(function, launch.grid, launch.block, segment))
    return ready, copies


def _stand_in(value: Any, there: DeviceArray | None) -> Any:
    """What has the type and shape of an argument: itself, or an array that takes no memory."""
    return value if there is None else np.broadcast_to(np.empty((), there.dtype), there.shape)


def _segment(
    taken: Sequence[KernelArgument], values: Sequence[Any], pointers: Mapping[int, int]
) -> bytes:
    """The kernel argument segment, laid out as the metadata says."""
    segment = bytearray(max((a.offset + a.size for a in taken), default=0))
    for argument, value in zip(taken, values, strict=True):
        content = (
            pointers[id(value)].to_bytes(8, "little")
            if isinstance(value, np.ndarray)
            else value.tobytes()
        )
        segment[argument.offset : argument.offset + argument.size] = content
    return bytes(segment)


def _name_of(value: Any, kernel: Kernel, args: Sequence[Any]) -> str:
    named = zip(kernel.arguments, args, strict=True)
    return next(argument.name for argument, each in named if each is value)


def _bring_back(runtime: Hip, array: npt.NDArray[Any], pointer: int, name: str) -> None:
    """Change an array as the kernel has. Raises ArgumentError if it has changed a read-only one."""
    direct = array.flags.c_contiguous and array.flags.writeable
    dense = array if direct else np.empty(array.shape, array.dtype)
    runtime.to_host(dense.ctypes.data, pointer, dense.nbytes)
    if not array.flags.writeable:
        if dense.tobytes() != array.tobytes():
            raise ArgumentError(
                f"argument {name} is read-only, but the kernel writes to it: pass a copy"
            )
    elif not direct:
        array[...] = dense

"""`run`: a kernel on a GPU, as `emulate` runs it without one."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt

from mfmadsl.argument import check_integer, check_list, check_type, described
from mfmadsl.backend.gpu.kernel import Kernel
from mfmadsl.error import ArgumentError
from mfmadsl.hip.array import DeviceArray, device_array
from mfmadsl.hip.binding import Hip, hip
from mfmadsl.hip.call import calls_of
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
        """The median of all runs."""
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
    calls, arrays = calls_of(kernel, launches)
    zeros = {id(launch.args[place]) for launch in launches for place in launch.zeros}
    places = {id(stand_in): place for place, stand_in in enumerate(stand_ins)}
    pointers, copies = [], []
    for array in arrays:
        place = places.get(id(array))  # None: it holds what one launch leaves to the next
        if place is not None and (found := there[place]) is not None:
            pointers.append(found.pointer)
            continue
        pointer = stack.enter_context(runtime.allocated(array.nbytes))
        pointers.append(pointer)
        if place is None and id(array) in zeros:
            runtime.to_device(pointer, array.ctypes.data, array.nbytes)
        if place is not None:
            dense = np.ascontiguousarray(array)
            runtime.to_device(pointer, dense.ctypes.data, dense.nbytes)
            copies.append((array, pointer, names[place]))
    return [call.ready(stack, runtime, pointers) for call in calls], copies


def _stand_in(value: Any, there: DeviceArray | None) -> Any:
    """What has the type and shape of an argument: itself, or an array that takes no memory."""
    return value if there is None else np.broadcast_to(np.empty((), there.dtype), there.shape)


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

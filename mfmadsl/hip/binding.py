"""HIP's runtime by ctypes: as much of it as loads, launches and times kernels.

Numbers and structures are those of HIP's public header (hip/hip_runtime_api.h). No package is
needed beside the runtime itself, `libamdhip64.so`, which ROCm brings.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

from mfmadsl.environment.hip import hip_libraries
from mfmadsl.error import ArgumentError
from mfmadsl.runtime.error import HipError

_TO_DEVICE, _TO_HOST = 1, 2
_BUFFER, _BUFFER_SIZE, _END = 1, 2, 3  # HIP_LAUNCH_PARAM_...
_ARCH_OFFSET = 1160  # of gcnArchName in hipDeviceProp_tR0600
_PROPERTIES = 1472  # bytes of hipDeviceProp_tR0600


@dataclass(frozen=True)
class Device:
    """What a GPU is: its name, and its chip without features, such as gfx942."""

    name: str
    arch: str

    @property
    def tells_time(self) -> bool:
        """Whether its events tell a chip's time, or that of a model, and not an emulator's own."""
        return not self.name.endswith("(emulated)")

    def check_times(self) -> None:
        """Raise ArgumentError for an emulated GPU that tells its own time."""
        if not self.tells_time:
            raise ArgumentError(
                f"{self.name}: its time is the emulator's own: start it with `mfmadsl device "
                "--profile FILE`, which has it tell the model's"
            )


class Hip:
    """The runtime. Raises HipError where a call fails."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        library.hipGetErrorName.restype = ctypes.c_char_p
        library.hipGetErrorString.restype = ctypes.c_char_p

    def _call(self, name: str, *arguments: Any) -> None:
        error = getattr(self._library, name)(*arguments)
        if error:
            told = self._library.hipGetErrorName(error).decode()
            meaning = self._library.hipGetErrorString(error).decode()
            raise HipError(f"{name}: {told}: {meaning}")

    def device(self) -> Device:
        """The current GPU."""
        number = ctypes.c_int()
        self._call("hipGetDevice", ctypes.byref(number))
        properties = ctypes.create_string_buffer(_PROPERTIES)
        self._call("hipGetDevicePropertiesR0600", properties, number)
        name = ctypes.string_at(properties).decode()
        arch = ctypes.string_at(ctypes.addressof(properties) + _ARCH_OFFSET).decode()
        return Device(name, arch.partition(":")[0])

    @contextmanager
    def allocated(self, size: int) -> Iterator[int]:
        """The address of so many bytes of the GPU's memory."""
        pointer = ctypes.c_void_p()
        self._call("hipMalloc", ctypes.byref(pointer), ctypes.c_size_t(max(size, 1)))
        try:
            yield pointer.value or 0
        finally:
            self._call("hipFree", pointer)

    def to_device(self, pointer: int, host: int, size: int) -> None:
        """Copy bytes of the host to the device."""
        self._copy(pointer, host, size, _TO_DEVICE)

    def to_host(self, host: int, pointer: int, size: int) -> None:
        """Copy bytes of the device to the host."""
        self._copy(host, pointer, size, _TO_HOST)

    def _copy(self, to: int, source: int, size: int, kind: int) -> None:
        if size:
            to_, source_ = ctypes.c_void_p(to), ctypes.c_void_p(source)
            self._call("hipMemcpy", to_, source_, ctypes.c_size_t(size), kind)

    @contextmanager
    def function(self, code_object: bytes, symbol: str) -> Iterator[ctypes.c_void_p]:
        """A kernel of a code object, while its module is loaded."""
        module, found = ctypes.c_void_p(), ctypes.c_void_p()
        self._call("hipModuleLoadData", ctypes.byref(module), code_object)
        try:
            self._call("hipModuleGetFunction", ctypes.byref(found), module, symbol.encode())
            yield found
        finally:
            self._call("hipModuleUnload", module)

    def launch(
        self,
        function: ctypes.c_void_p,
        grid: Sequence[int],
        block: Sequence[int],
        lds_bytes: int,
        arguments: bytes,
    ) -> None:
        """Start a kernel; `arguments` are its kernel argument segment, but for the hidden ones."""
        block_bytes = ctypes.create_string_buffer(arguments, len(arguments))
        size = ctypes.c_size_t(len(arguments))
        extra = (ctypes.c_void_p * 5)(
            _BUFFER, ctypes.addressof(block_bytes), _BUFFER_SIZE, ctypes.addressof(size), _END
        )
        self._call("hipModuleLaunchKernel", function, *grid, *block, lds_bytes, None, None, extra)

    def synchronize(self) -> None:
        """Wait for all that was started; what went wrong on the GPU is told here."""
        self._call("hipDeviceSynchronize")

    @contextmanager
    def event(self) -> Iterator[ctypes.c_void_p]:
        """An event, destroyed at the end."""
        made = ctypes.c_void_p()
        self._call("hipEventCreate", ctypes.byref(made))
        try:
            yield made
        finally:
            self._call("hipEventDestroy", made)

    def record(self, event: ctypes.c_void_p) -> None:
        """Record an event in the default stream."""
        self._call("hipEventRecord", event, None)

    def seconds(self, first: ctypes.c_void_p, last: ctypes.c_void_p) -> float:
        """Between two events, the last of which is waited for."""
        milliseconds = ctypes.c_float()
        self._call("hipEventSynchronize", last)
        self._call("hipEventElapsedTime", ctypes.byref(milliseconds), first, last)
        return milliseconds.value / 1e3


@cache
def hip() -> Hip:
    """HIP's runtime, with a GPU. Raises HipError where there is none."""
    names = hip_libraries()
    for name in names:
        try:
            found = Hip(ctypes.CDLL(name))
        except OSError:
            continue
        found.device()
        return found
    raise HipError(
        f"{names[0]} is not found: install ROCm on a machine with an AMD GPU, or start the "
        "program with an emulated one: `mfmadsl device -- PROGRAM`"
    )

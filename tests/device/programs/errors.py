"""Calls of HIP that fail, each with the error that it should be told: prints those that are not.

    mfmadsl device -- python errors.py CODE_OBJECT KERNEL

The kernel takes a pointer and a 32-bit number.
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from typing import Any

hip = ctypes.CDLL("libamdhip64.so")
hip.hipGetErrorName.restype = ctypes.c_char_p
hip.hipGetErrorString.restype = ctypes.c_char_p

IMAGE, KERNEL = Path(sys.argv[1]).read_bytes(), sys.argv[2].encode()
NOTHING = ctypes.c_void_p()
FAR = ctypes.c_void_p(0x1234)
SMALL = 64

wrong: list[str] = []


def expect(name: str, call: str, *arguments: Any) -> None:
    """A call that ends in an error of HIP's, which the next question for the last error tells."""
    number = getattr(hip, call)(*arguments)
    found = hip.hipGetErrorName(number).decode()
    last = hip.hipGetErrorName(hip.hipGetLastError()).decode()
    if found != name or name not in (last, "hipSuccess"):
        wrong.append(f"{call}{arguments}: {found} and then {last}, not {name}")


def pointer() -> ctypes.c_void_p:
    return ctypes.c_void_p()


def number() -> Any:
    return ctypes.byref(ctypes.c_int())


def offset(address: ctypes.c_void_p, by: int) -> ctypes.c_void_p:
    return ctypes.c_void_p((address.value or 0) + by)


def devices() -> None:
    expect("hipErrorInvalidValue", "hipInit", 1)
    expect("hipErrorInvalidValue", "hipGetDeviceCount", NOTHING)
    expect("hipErrorInvalidValue", "hipGetDevice", NOTHING)
    expect("hipErrorInvalidValue", "hipDriverGetVersion", NOTHING)
    expect("hipErrorInvalidDevice", "hipSetDevice", 1)
    expect("hipErrorInvalidDevice", "hipSetDevice", -1)
    expect("hipErrorInvalidDevice", "hipDeviceGet", number(), 1)
    expect("hipErrorInvalidValue", "hipDeviceGetAttribute", NOTHING, 87, 0)
    expect("hipErrorInvalidDevice", "hipDeviceGetAttribute", number(), 87, 2)
    expect("hipErrorInvalidValue", "hipDeviceGetAttribute", number(), 4321, 0)
    expect("hipErrorInvalidValue", "hipDeviceGetName", NOTHING, 10, 0)
    expect("hipErrorInvalidValue", "hipDeviceGetName", ctypes.create_string_buffer(9), 0, 0)
    expect("hipErrorInvalidDevice", "hipDeviceTotalMem", ctypes.byref(ctypes.c_size_t()), 3)
    expect("hipErrorInvalidValue", "hipDeviceComputeCapability", NOTHING, NOTHING, 0)
    expect("hipErrorInvalidValue", "hipDeviceGetPCIBusId", ctypes.create_string_buffer(9), 4, 0)
    expect("hipErrorInvalidDevice", "hipDeviceGetByPCIBusId", number(), b"0000:12:00.0")
    expect("hipErrorInvalidDevice", "hipDeviceCanAccessPeer", number(), 0, 1)
    expect("hipErrorInvalidDevice", "hipDeviceEnablePeerAccess", 1, 0)
    expect("hipErrorInvalidDevice", "hipDeviceDisablePeerAccess", 1)
    expect("hipErrorInvalidValue", "hipGetDevicePropertiesR0600", NOTHING, 0)
    expect("hipErrorNotSupported", "hipGetDeviceProperties", NOTHING, 0)
    expect("hipErrorInvalidContext", "hipCtxSetCurrent", FAR)


def memory() -> None:
    here = pointer()
    host = ctypes.create_string_buffer(2 * SMALL)
    expect("hipErrorInvalidValue", "hipMalloc", NOTHING, SMALL)
    expect("hipErrorOutOfMemory", "hipMalloc", ctypes.byref(pointer()), ctypes.c_size_t(1 << 60))
    expect("hipSuccess", "hipMalloc", ctypes.byref(here), SMALL)
    expect("hipErrorInvalidValue", "hipFree", FAR)
    expect("hipErrorInvalidValue", "hipFree", offset(here, 8))
    expect("hipErrorInvalidValue", "hipHostFree", here)
    expect("hipErrorInvalidMemcpyDirection", "hipMemcpy", here, host, SMALL, 9)
    expect("hipErrorInvalidValue", "hipMemcpy", NOTHING, host, SMALL, 1)
    expect("hipErrorInvalidValue", "hipMemcpy", here, NOTHING, SMALL, 1)
    expect("hipErrorInvalidValue", "hipMemcpy", here, host, SMALL + 1, 1)
    expect("hipErrorInvalidValue", "hipMemcpy", host, offset(here, 1), SMALL, 2)
    expect("hipErrorInvalidValue", "hipMemcpy", host, host, SMALL, 1)
    expect("hipErrorInvalidValue", "hipMemcpyDtoD", here, offset(here, SMALL), 4)
    expect("hipErrorInvalidHandle", "hipMemcpyAsync", here, host, SMALL, 1, FAR)
    expect("hipErrorInvalidDevice", "hipMemcpyPeer", here, 1, here, 0, 4)
    expect("hipErrorInvalidPitchValue", "hipMemcpy2D", here, 8, host, 8, 16, 2, 1)
    expect("hipErrorInvalidValue", "hipMemcpy2D", here, 16, host, 16, 16, 5, 1)
    expect("hipErrorInvalidValue", "hipMemset", here, 0, SMALL + 1)
    expect("hipErrorInvalidValue", "hipMemset", host, 0, SMALL)
    expect("hipErrorInvalidValue", "hipMemsetD32", here, 0, SMALL // 4 + 1)
    expect("hipErrorInvalidPitchValue", "hipMemset2D", here, 8, 0, 16, 2)
    expect("hipErrorInvalidValue", "hipMemGetInfo", NOTHING, NOTHING)
    expect("hipErrorInvalidValue", "hipMallocPitch", ctypes.byref(pointer()), NOTHING, 8, 8)
    expect("hipErrorNotFound", "hipMemGetAddressRange", NOTHING, NOTHING, FAR)
    expect("hipErrorInvalidValue", "hipPointerGetAttributes", NOTHING, here)
    expect("hipErrorInvalidValue", "hipHostGetDevicePointer", ctypes.byref(pointer()), here, 0)
    expect("hipErrorInvalidValue", "hipHostRegister", here, SMALL, 0)
    expect("hipErrorNotSupported", "hipIpcGetMemHandle", host, here)
    expect("hipErrorHostMemoryNotRegistered", "hipHostUnregister", host)
    expect("hipErrorInvalidHandle", "hipMallocAsync", ctypes.byref(pointer()), SMALL, FAR)
    expect("hipSuccess", "hipFree", here)
    expect("hipErrorInvalidValue", "hipFree", here)
    expect("hipErrorInvalidValue", "hipMemset", here, 0, 1)


def streams_and_events() -> None:
    stream, first, last, plain = pointer(), pointer(), pointer(), pointer()
    expect("hipErrorInvalidValue", "hipStreamCreate", NOTHING)
    expect("hipErrorInvalidValue", "hipStreamCreateWithFlags", ctypes.byref(pointer()), 7)
    expect("hipSuccess", "hipStreamCreate", ctypes.byref(stream))
    for event in (first, last):
        expect("hipSuccess", "hipEventCreate", ctypes.byref(event))
    expect("hipSuccess", "hipEventCreateWithFlags", ctypes.byref(plain), 2)
    expect("hipErrorInvalidValue", "hipEventCreate", NOTHING)
    expect("hipErrorInvalidHandle", "hipEventRecord", FAR, NOTHING)
    expect("hipErrorInvalidHandle", "hipEventRecord", first, FAR)
    expect("hipErrorInvalidHandle", "hipEventQuery", NOTHING)
    expect("hipErrorInvalidHandle", "hipEventSynchronize", FAR)
    milliseconds = ctypes.byref(ctypes.c_float())
    expect("hipErrorInvalidHandle", "hipEventElapsedTime", milliseconds, first, last)
    expect("hipErrorInvalidValue", "hipEventElapsedTime", NOTHING, first, last)
    for event in (first, plain):
        expect("hipSuccess", "hipEventRecord", event, stream)
    expect("hipErrorInvalidHandle", "hipEventElapsedTime", milliseconds, first, plain)
    expect("hipErrorInvalidHandle", "hipStreamWaitEvent", stream, FAR, 0)
    expect("hipErrorInvalidValue", "hipStreamAddCallback", stream, NOTHING, NOTHING, 0)
    expect("hipErrorInvalidValue", "hipLaunchHostFunc", stream, NOTHING, NOTHING)
    expect("hipErrorInvalidValue", "hipStreamGetFlags", stream, NOTHING)
    expect("hipSuccess", "hipStreamDestroy", stream)
    for call in ("hipStreamDestroy", "hipStreamSynchronize", "hipStreamQuery"):
        expect("hipErrorInvalidHandle", call, stream)
    for event in (first, last, plain):
        expect("hipSuccess", "hipEventDestroy", event)
        expect("hipErrorInvalidHandle", "hipEventDestroy", event)


def launch(function: ctypes.c_void_p, grid: int, block: int, **how: Any) -> tuple[Any, ...]:
    """The arguments of hipModuleLaunchKernel."""
    lds, stream = how.get("lds", 0), how.get("stream", NOTHING)
    values, extra = how.get("values", NOTHING), how.get("extra", NOTHING)
    return (function, grid, 1, 1, block, 1, 1, lds, stream, values, extra)


def modules() -> None:
    module, function = pointer(), pointer()
    expect("hipErrorInvalidValue", "hipModuleLoadData", NOTHING, IMAGE)
    expect("hipErrorInvalidValue", "hipModuleLoadData", ctypes.byref(module), NOTHING)
    expect("hipErrorInvalidImage", "hipModuleLoadData", ctypes.byref(module), b"no code object")
    expect("hipErrorFileNotFound", "hipModuleLoad", ctypes.byref(module), b"/no/such.hsaco")
    expect("hipErrorInvalidImage", "hipModuleLoad", ctypes.byref(module), sys.argv[0].encode())
    expect("hipSuccess", "hipModuleLoadData", ctypes.byref(module), IMAGE)
    expect("hipErrorNotFound", "hipModuleGetFunction", ctypes.byref(function), module, b"other")
    expect("hipErrorInvalidHandle", "hipModuleGetFunction", ctypes.byref(function), FAR, KERNEL)
    expect("hipErrorInvalidValue", "hipModuleGetFunction", NOTHING, module, KERNEL)
    found = ctypes.byref(pointer()), ctypes.byref(ctypes.c_size_t())
    expect("hipErrorNotFound", "hipModuleGetGlobal", *found, module, b"variable")
    expect("hipSuccess", "hipModuleGetFunction", ctypes.byref(function), module, KERNEL)
    expect("hipErrorInvalidDeviceFunction", "hipFuncGetAttribute", number(), 0, FAR)
    expect("hipErrorInvalidValue", "hipFuncGetAttribute", number(), 99, function)

    start = "hipModuleLaunchKernel"
    expect("hipErrorInvalidDeviceFunction", start, *launch(FAR, 1, 64))
    expect("hipErrorInvalidConfiguration", start, *launch(function, 0, 64))
    expect("hipErrorInvalidConfiguration", start, *launch(function, 1, 0))
    expect("hipErrorInvalidConfiguration", start, *launch(function, 1, 2048))
    expect("hipErrorLaunchOutOfResources", start, *launch(function, 1, 64, lds=1 << 20))
    expect("hipErrorInvalidHandle", start, *launch(function, 1, 64, stream=FAR))
    expect("hipErrorInvalidValue", start, *launch(function, 1, 64))
    one = (ctypes.c_void_p * 2)()
    expect("hipErrorInvalidValue", start, *launch(function, 1, 64, values=one))
    short = ctypes.c_size_t(4)
    listed = (ctypes.c_void_p * 5)(1, ctypes.addressof(one), 2, ctypes.addressof(short), 3)
    expect("hipErrorInvalidValue", start, *launch(function, 1, 64, extra=listed))
    expect("hipSuccess", "hipModuleUnload", module)
    expect("hipErrorInvalidHandle", "hipModuleUnload", module)
    expect("hipErrorInvalidDeviceFunction", start, *launch(function, 1, 64))


for part in (devices, memory, streams_and_events, modules):
    part()
print("\n".join(wrong) or "every call told its error")
sys.exit(bool(wrong))

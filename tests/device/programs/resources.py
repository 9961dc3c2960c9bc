"""Pools, virtual memory, arrays, contexts, occupancy, wishes, values that streams write, registered
memory and several devices: prints what is wrong.

    mfmadsl device --devices 2 -- python -m tests.device.programs.resources SCALED

SCALED is the code object of a kernel with y[i] = a * x[i] + i for i < n. The calls are
hip-python's, whose structures are those of HIP's own headers.
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from typing import Any

import numpy as np
from hip import hip

from tests.device.programs.calls import E, call, check, fails, tell

COUNT = 64
BYTES = 4 * COUNT
KIND = hip.hipMemcpyKind
PINNED = hip.hipMemAllocationType.hipMemAllocationTypePinned
ON_DEVICE = hip.hipMemLocationType.hipMemLocationTypeDevice
numbers = np.arange(COUNT, dtype=np.float32)
image = Path(sys.argv[1]).read_bytes()
library = ctypes.CDLL("libamdhip64.so")


def launch(x: Any, y: Any, a: float, stream: Any = None) -> None:
    function = call(hip.hipModuleGetFunction(module, b"scaled"))
    arguments = (x, y, ctypes.c_float(a), ctypes.c_int(COUNT))
    call(
        hip.hipModuleLaunchKernel(
            function,
            1,
            1,
            1,
            COUNT,
            1,
            1,
            sharedMemBytes=0,
            stream=stream,
            kernelParams=None,
            extra=arguments,
        )
    )


def read(pointer: Any) -> Any:
    found = np.zeros(COUNT, np.float32)
    call(hip.hipMemcpy(found, pointer, BYTES, KIND.hipMemcpyDeviceToHost))
    return found


class Location(ctypes.Structure):
    _fields_ = (("kind", ctypes.c_int), ("number", ctypes.c_int))


class PoolProps(ctypes.Structure):
    """hipMemPoolProps, whose parts hip-python does not write."""

    _fields_ = (
        ("kind", ctypes.c_int), ("handles", ctypes.c_int), ("location", Location),
        ("security", ctypes.c_void_p), ("most", ctypes.c_size_t), ("reserved", ctypes.c_char * 56),
    )  # fmt: skip


def pools() -> None:
    attributes = hip.hipMemPoolAttr

    def used(pool: Any) -> int:
        value = ctypes.c_uint64()
        name = attributes.hipMemPoolAttrUsedMemCurrent
        call(hip.hipMemPoolGetAttribute(pool, name, ctypes.addressof(value)))
        return value.value

    wanted = PoolProps(PINNED, 0, Location(ON_DEVICE, 0), None, 2 * BYTES)
    pool = call(hip.hipMemPoolCreate(ctypes.addressof(wanted)))
    stream = call(hip.hipStreamCreate())
    before = used(pool)
    one = call(hip.hipMallocFromPoolAsync(BYTES, pool, stream))
    check("a pool counts", used(pool) - before == BYTES)
    fails(E.hipErrorOutOfMemory, hip.hipMallocFromPoolAsync(2 * BYTES, pool, stream))
    call(hip.hipDeviceSetMemPool(0, pool))
    other = call(hip.hipMallocAsync(BYTES, stream))
    check("the device's pool", used(pool) - before == 2 * BYTES)
    for each in (one, other):
        call(hip.hipFreeAsync(each, stream))
    check("it gets all back", used(pool) == before)
    call(hip.hipMemPoolTrimTo(pool, 0))
    call(hip.hipMemPoolDestroy(pool))
    fails(E.hipErrorInvalidValue, hip.hipMemPoolDestroy(pool))
    call(hip.hipFree(call(hip.hipMallocAsync(BYTES, stream))))


class Props(ctypes.Structure):
    """hipMemAllocationProp."""

    _fields_ = (
        ("kind", ctypes.c_int), ("handles", ctypes.c_int), ("location", Location),
        ("metadata", ctypes.c_void_p), ("flags", ctypes.c_char * 8),
    )  # fmt: skip


class Access(ctypes.Structure):
    _fields_ = (("location", Location), ("flags", ctypes.c_int))


def ask(name: str, *arguments: Any) -> Any:
    return E(getattr(library, name)(*arguments))


def virtual_memory() -> None:
    """Two pieces side by side are one; a piece keeps its content from place to place."""
    props, size = Props(1, 0, Location(1, 0)), ctypes.c_size_t()
    call(ask("hipMemGetAllocationGranularity", ctypes.byref(size), ctypes.byref(props), 0))
    granule = size.value
    start = ctypes.c_void_p()
    whole = ctypes.c_size_t(4 * granule)
    call(ask("hipMemAddressReserve", ctypes.byref(start), whole, ctypes.c_size_t(0), None, 0))
    first = start.value or 0
    pieces = [ctypes.c_void_p() for _ in range(2)]
    one = ctypes.c_size_t(granule)

    def at(place: int) -> ctypes.c_void_p:
        return ctypes.c_void_p(first + place * granule)

    def place(piece: ctypes.c_void_p, where: int) -> Any:
        return ask("hipMemMap", at(where), one, ctypes.c_size_t(0), piece, ctypes.c_ulonglong(0))

    access = Access(Location(1, 0), 3)

    def allow(where: int, count: int) -> Any:
        size = ctypes.c_size_t(count * granule)
        return ask("hipMemSetAccess", at(where), size, ctypes.byref(access), ctypes.c_size_t(1))

    for number, piece in enumerate(pieces):
        call(ask("hipMemCreate", ctypes.byref(piece), one, ctypes.byref(props), 0))
        call(place(piece, number))
    fails(E.hipErrorNotSupported, place(pieces[0], 3))  # in two places at once
    fails(E.hipErrorInvalidValue, place(ctypes.c_void_p(), 3))
    fails(E.hipErrorInvalidValue, hip.hipMemset(first, 0, 4))
    call(allow(0, 2))
    x, y = first + granule - BYTES, first + granule
    both = np.concatenate([numbers, np.zeros_like(numbers)])
    call(hip.hipMemcpy(x, both, 2 * BYTES, KIND.hipMemcpyHostToDevice))
    launch(x, y, 2.0)
    want = 2 * numbers + np.arange(COUNT, dtype=np.float32)
    check("across pieces", (read(y) == want).all())
    fails(E.hipErrorInvalidValue, hip.hipMemset(first, 0, 2 * granule + 4))
    call(ask("hipMemUnmap", at(1), one))
    fails(E.hipErrorInvalidValue, hip.hipMemset(y, 0, 4))
    call(place(pieces[1], 2))
    call(allow(2, 1))
    check("it has moved", (read(first + 2 * granule) == want).all())
    fails(E.hipErrorInvalidValue, ask("hipMemAddressFree", start, whole))
    for where in (0, 2):
        call(ask("hipMemUnmap", at(where), one))
    for piece in pieces:
        call(ask("hipMemRelease", piece))
    fails(E.hipErrorInvalidValue, ask("hipMemRelease", pieces[0]))
    call(ask("hipMemAddressFree", start, whole))


def put(structure: Any, **values: Any) -> None:
    """Into a structure within another one."""
    for name, value in values.items():
        setattr(structure, name, value)


def arrays() -> None:
    """A block of an array of float pairs, in and out; and slices of pitched memory."""
    pairs = hip.hipChannelFormatDesc(
        x=32, y=32, f=hip.hipChannelFormatKind.hipChannelFormatKindFloat
    )
    array = call(hip.hipMallocArray(pairs, 8, 6, 0))
    values = np.arange(8 * 6 * 2, dtype=np.float32).reshape(6, 16)
    call(hip.hipMemcpy2DToArray(array, 0, 0, values, 64, 64, 6, KIND.hipMemcpyHostToDevice))
    part = np.zeros((2, 4), np.float32)
    call(hip.hipMemcpy2DFromArray(part, 16, array, 24, 3, 16, 2, KIND.hipMemcpyDeviceToHost))
    check("a block of an array", (part == values[3:5, 6:10]).all())
    fails(
        E.hipErrorInvalidValue,
        hip.hipMemcpy2DFromArray(part, 16, array, 56, 3, 16, 2, KIND.hipMemcpyDeviceToHost),
    )
    call(hip.hipFreeArray(array))
    fails(E.hipErrorInvalidHandle, hip.hipFreeArray(array))
    extent = hip.hipExtent(width=20, height=3, depth=2)
    place = hip.hipPitchedPtr()
    call(hip.hipMalloc3D(place, extent))
    call(hip.hipMemset3D(place, 5, extent))
    cube = np.arange(120, dtype=np.uint8).reshape(2, 3, 20)
    inner = hip.hipMemcpy3DParms(kind=KIND.hipMemcpyHostToDevice)
    put(inner.srcPtr, ptr=cube.ctypes.data, pitch=20, xsize=20, ysize=3)
    put(inner.srcPos, x=2, y=0, z=1)
    put(inner.dstPtr, ptr=place.ptr, pitch=place.pitch, xsize=place.xsize, ysize=place.ysize)
    put(inner.dstPos, x=4, y=1, z=1)
    put(inner.extent, width=10, height=2, depth=1)
    call(hip.hipMemcpy3D(inner))
    found = np.zeros_like(cube)
    out = hip.hipMemcpy3DParms(kind=KIND.hipMemcpyDeviceToHost)
    put(out.srcPtr, ptr=place.ptr, pitch=place.pitch, xsize=place.xsize, ysize=place.ysize)
    put(out.dstPtr, ptr=found.ctypes.data, pitch=20, xsize=20, ysize=3)
    put(out.extent, width=20, height=3, depth=2)
    call(hip.hipMemcpy3D(out))
    want = np.full_like(cube, 5)
    want[1, 1:3, 4:14] = cube[1, 0:2, 2:12]
    check("a block of slices", (found == want).all())


def contexts() -> None:
    made = call(hip.hipCtxCreate(0, 1))
    check("a context has its device", call(hip.hipCtxGetDevice()) == 1)
    check("and is current", int(call(hip.hipCtxGetCurrent())) == int(made))
    popped = call(hip.hipCtxPopCurrent())
    check("a stack", int(popped) == int(made) and call(hip.hipGetDevice()) == 0)
    call(hip.hipCtxPushCurrent(made))
    call(hip.hipCtxDestroy(made))
    fails(E.hipErrorInvalidContext, hip.hipCtxPushCurrent(made))
    call(hip.hipSetDevice(0))


def resident() -> None:
    """By the kernel's few registers waves are the limit: 8 a SIMD, of four."""
    function = call(hip.hipModuleGetFunction(module, b"scaled"))

    def held(threads: int, lds: int) -> Any:
        count = hip.hipModuleOccupancyMaxActiveBlocksPerMultiprocessor
        return call(count(function, threads, lds))

    check("waves", [held(n, 0) for n in (64, 128, 256)] == [32, 16, 8])
    check("LDS", [held(64, n) for n in (65536, 16384, 16000)] == [1, 4, 4])
    check("too large", held(512, 0) == 0)
    grid, block = call(hip.hipModuleOccupancyMaxPotentialBlockSize(function, 0, 0))
    check("the largest", (grid, block) == (8 * 304, 256))


def wishes() -> None:
    x = call(hip.hipMalloc(BYTES))
    advice, attribute = hip.hipMemoryAdvise, hip.hipMemRangeAttribute
    told = ctypes.c_int()

    def ask_of(name: Any) -> int:
        call(hip.hipMemRangeGetAttribute(ctypes.addressof(told), 4, name, x, BYTES))
        return told.value

    call(hip.hipMemAdvise(x, BYTES, advice.hipMemAdviseSetReadMostly, 0))
    call(hip.hipMemPrefetchAsync(x, BYTES, 1, None))
    check("read mostly", ask_of(attribute.hipMemRangeAttributeReadMostly) == 1)
    check("prefetched", ask_of(attribute.hipMemRangeAttributeLastPrefetchLocation) == 1)
    call(hip.hipFree(x))
    x = call(hip.hipMalloc(BYTES))
    check("of new memory nothing", ask_of(attribute.hipMemRangeAttributeReadMostly) == 0)
    call(hip.hipStreamWriteValue32(None, x, 12, 0))
    call(hip.hipStreamWaitValue32(None, x, 12, 1, 0xFFFFFFFF))
    fails(E.hipErrorNotReady, hip.hipStreamWaitValue32(None, x, 13, 0, 0xFFFFFFFF))


def registered() -> None:
    host = np.zeros(COUNT, np.float32)
    call(hip.hipHostRegister(host, BYTES, 0))
    fails(E.hipErrorHostMemoryAlreadyRegistered, hip.hipHostRegister(host, 4, 0))
    x = call(hip.hipMalloc(BYTES))
    call(hip.hipMemcpy(x, numbers, BYTES, KIND.hipMemcpyHostToDevice))
    call(hip.hipMemcpy(host, x, BYTES, KIND.hipMemcpyDeviceToDevice))
    check("registered", (host == numbers).all())
    call(hip.hipHostUnregister(host))
    fails(E.hipErrorHostMemoryNotRegistered, hip.hipHostUnregister(host))


def devices() -> None:
    """Memory of one is another's only where that was allowed, but copies reach both."""
    check("two", call(hip.hipGetDeviceCount()) == 2)
    x = call(hip.hipMalloc(BYTES))
    call(hip.hipMemcpy(x, numbers, BYTES, KIND.hipMemcpyHostToDevice))
    call(hip.hipSetDevice(1))
    y, z = (call(hip.hipMalloc(BYTES)) for _ in range(2))
    attributes = hip.hipPointerAttribute_t()
    call(hip.hipPointerGetAttributes(attributes, y))
    check("on the other", attributes.device == 1)
    call(hip.hipMemcpyPeer(y, 1, x, 0, BYTES))
    check("a copy", (read(y) == numbers).all())
    check("a peer", call(hip.hipDeviceCanAccessPeer(1, 0)) == 1)
    fails(E.hipErrorPeerAccessNotEnabled, hip.hipDeviceDisablePeerAccess(0))
    call(hip.hipDeviceEnablePeerAccess(0, 0))
    fails(E.hipErrorPeerAccessAlreadyEnabled, hip.hipDeviceEnablePeerAccess(0, 0))
    launch(x, z, 3.0)
    call(hip.hipDeviceSynchronize())
    check("a peer's memory", (read(z) == 4 * numbers).all())
    call(hip.hipDeviceDisablePeerAccess(0))
    launch(x, z, 5.0)
    fails(E.hipErrorLaunchFailure, hip.hipDeviceSynchronize())
    call(hip.hipSetDevice(0))
    call(hip.hipDeviceSynchronize())  # the other one goes on
    call(hip.hipMemset(z, 0, 4))
    call(hip.hipSetDevice(1))
    call(hip.hipDeviceReset())
    check("that of the first device is kept", (read(x) == numbers).all())
    fails(E.hipErrorInvalidValue, hip.hipFree(y))
    call(hip.hipSetDevice(0))
    call(hip.hipFree(x))


module = call(hip.hipModuleLoadData(image))
for part in (
    pools, virtual_memory, arrays, contexts, resident, wishes, registered, devices,
):  # fmt: skip
    part()
tell("resources")

"""Rows, fills, sizes and resets of memory, and the ways to launch, each compared with what it
should leave: prints what is wrong.

    mfmadsl device -- python memory.py NUMBERED DESCRIBED

NUMBERED is the code object of a kernel that numbers the elements of its array, DESCRIBED of one
that tells its launch and adds up a structure that is passed by value.
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

hip = ctypes.CDLL("libamdhip64.so")
TO_DEVICE, TO_HOST = 1, 2
wrong: list[str] = []


class Dim3(ctypes.Structure):
    _fields_ = (("x", ctypes.c_uint32), ("y", ctypes.c_uint32), ("z", ctypes.c_uint32))


class Wrapper(ctypes.Structure):
    """What hipcc leaves in a program for each code object."""

    _fields_ = (
        ("magic", ctypes.c_uint32),
        ("version", ctypes.c_uint32),
        ("image", ctypes.c_char_p),
        ("unused", ctypes.c_void_p),
    )


def expect(what: str, found: Any, wanted: Any) -> None:
    if found != wanted:
        wrong.append(f"{what}: {found}, not {wanted}")


def size(number: int) -> ctypes.c_size_t:
    return ctypes.c_size_t(number)


def allocated(count: int) -> ctypes.c_void_p:
    pointer = ctypes.c_void_p()
    expect("hipMalloc", hip.hipMalloc(ctypes.byref(pointer), size(count)), 0)
    expect("hipMemset", hip.hipMemset(pointer, 0xEE, size(count)), 0)
    return pointer


def content(pointer: ctypes.c_void_p, count: int, dtype: str) -> npt.NDArray[Any]:
    array = np.zeros(count, dtype)
    host = ctypes.c_void_p(array.ctypes.data)
    expect("hipMemcpy", hip.hipMemcpy(host, pointer, size(array.nbytes), TO_HOST), 0)
    return array


def rows() -> None:
    """Rows of 5 bytes: 8 from start to start on the host, 16 on the device."""
    there, host = allocated(64), np.arange(32, dtype=np.uint8)
    source = ctypes.c_void_p(host.ctypes.data)
    error = hip.hipMemcpy2D(there, size(16), source, size(8), size(5), size(4), TO_DEVICE)
    expect("hipMemcpy2D", error, 0)
    wanted = np.full((4, 16), 0xEE, np.uint8)
    wanted[:, :5] = host.reshape(4, 8)[:, :5]
    expect("rows", content(there, 64, "u1").tolist(), wanted.ravel().tolist())
    expect("hipMemset2D", hip.hipMemset2D(there, size(16), 7, size(3), size(4)), 0)
    wanted[:, :3] = 7
    expect("filled rows", content(there, 64, "u1").tolist(), wanted.ravel().tolist())
    expect("a row too many", hip.hipMemset2D(there, size(16), 9, size(3), size(5)), 1)
    expect("rows after that", content(there, 64, "u1").tolist(), wanted.ravel().tolist())


def fills() -> None:
    there = allocated(64)
    expect("hipMemsetD16", hip.hipMemsetD16(there, 0x1234, size(5)), 0)
    expect("halves", content(there, 8, "u2").tolist(), [0x1234] * 5 + [0xEEEE] * 3)
    expect("hipMemsetD32", hip.hipMemsetD32(there, 0x12345678, size(3)), 0)
    expect("words", content(there, 4, "u4").tolist(), [0x12345678] * 3 + [0xEEEEEEEE])


def free_bytes() -> int:
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    expect("hipMemGetInfo", hip.hipMemGetInfo(ctypes.byref(free), ctypes.byref(total)), 0)
    return free.value


def what_there_is() -> None:
    before = free_bytes()
    there = allocated(1000)
    expect("taken", before - free_bytes(), 1000)
    inside, base, found = ctypes.c_void_p((there.value or 0) + 9), ctypes.c_void_p(), size(0)
    hip.hipMemGetAddressRange(ctypes.byref(base), ctypes.byref(found), inside)
    expect("the range", (base.value, found.value), (there.value, 1000))
    expect("hipFree", hip.hipFree(there), 0)
    expect("given back", free_bytes(), before)
    host, flags = ctypes.c_void_p(), ctypes.c_uint()
    hip.hipHostMalloc(ctypes.byref(host), size(10), 2)
    expect("hipHostGetFlags", hip.hipHostGetFlags(ctypes.byref(flags), host), 0)
    expect("flags", flags.value, 2)


def in_a_child() -> None:
    child = os.fork()
    if not child:
        os._exit(hip.hipDeviceSynchronize())
    expect("a child of fork", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 3)


def kernel(path: str, name: bytes) -> ctypes.c_void_p:
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    hip.hipModuleLoadData(ctypes.byref(module), Path(path).read_bytes())
    expect("load", hip.hipModuleGetFunction(ctypes.byref(function), module, name), 0)
    return function


def values(*arguments: Any) -> Any:
    return (ctypes.c_void_p * len(arguments))(*map(ctypes.addressof, arguments))


def launches() -> None:
    """By threads, as hipcc's programs do, and with what a kernel is told of its launch."""
    numbered = kernel(sys.argv[1], b"numbered")
    there = allocated(4 * 256)
    how = (numbered, 192, 1, 1, 64, 1, 1, size(0), None, values(there), None, None, None, 0)
    expect("hipExtModuleLaunchKernel", hip.hipExtModuleLaunchKernel(*how), 0)
    expect("threads", content(there, 256, "i4").tolist(), [*range(192), *[-0x11111112] * 64])
    expect("no whole blocks", hip.hipExtModuleLaunchKernel(numbered, 100, *how[2:]), 801)

    image = Path(sys.argv[1]).read_bytes()
    wrapper = Wrapper(0x48495046, 1, image, None)
    stub = ctypes.c_char()  # whose address stands for the kernel
    names = ("RegisterFatBinary", "RegisterFunction", "UnregisterFatBinary")
    register, register_function, unregister = (hip[f"__hip{name}"] for name in names)
    push, pop = (hip[f"__hip{name}CallConfiguration"] for name in ("Push", "Pop"))
    register.restype = ctypes.c_void_p
    program = ctypes.c_void_p(register(ctypes.byref(wrapper)))
    rest = (-1, None, None, None, None, None)
    register_function(program, ctypes.byref(stub), b"numbered", b"numbered", *rest)
    push(Dim3(2, 1, 1), Dim3(64, 1, 1), size(0), None)
    grid, block, lds, stream = Dim3(), Dim3(), size(9), ctypes.c_void_p()
    pop(*map(ctypes.byref, (grid, block, lds, stream)))
    expect("what was pushed", (grid.x, block.x, lds.value), (2, 64, 0))
    there = allocated(4 * 256)
    by_stub = (grid, block, values(there), size(0), None)
    expect("hipLaunchKernel", hip.hipLaunchKernel(ctypes.byref(stub), *by_stub), 0)
    expect("by its stub", content(there, 256, "i4").tolist(), [*range(128), *[-0x11111112] * 128])
    other = ctypes.c_char()
    expect("another stub", hip.hipLaunchKernel(ctypes.byref(other), *by_stub), 98)
    unregister(program)
    expect("unregistered", hip.hipLaunchKernel(ctypes.byref(stub), *by_stub), 98)

    described = kernel(sys.argv[2], b"described")
    there, numbers = allocated(4 * 8), (ctypes.c_int32 * 6)(1, 20, 300, 4000, 50000, 600000)
    blocks = (described, 3, 4, 5, 64, 1, 2, 0, None, values(there, numbers), None)
    expect("hipModuleLaunchKernel", hip.hipModuleLaunchKernel(*blocks), 0)
    found = content(there, 8, "i4").tolist()
    expect("what it is told", found, [3, 4, 5, 64, 1, 2, 654321, -0x11111112])


def reset() -> None:
    there = allocated(64)
    expect("hipDeviceReset", hip.hipDeviceReset(), 0)
    expect("memory after a reset", hip.hipMemset(there, 0, size(1)), 1)


for part in (rows, fills, what_there_is, in_a_child, launches, reset):
    part()
print("\n".join(wrong) or "all right")
sys.exit(bool(wrong))

"""Variables of a module, by their names and as those of a program that hipcc has compiled: prints
what is wrong.

    mfmadsl device -- python -m tests.device.programs.variables VARIABLES

VARIABLES is the code object of a kernel with x[i] = table[i % 4] + counter[0], which counts lanes
in counter[1] by a pointer in another variable.
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from typing import Any

import numpy as np
from hip import hip

from tests.device.programs.calls import E, call, check, tell

COUNT = 64
TABLE = np.array([10, 20, 30, 40], np.int32)
KIND = hip.hipMemcpyKind
image = Path(sys.argv[1]).read_bytes()
library = ctypes.CDLL("libamdhip64.so")
getattr(library, "__hipRegisterFatBinary").restype = ctypes.c_void_p


def launched(function: Any) -> Any:
    x, found = call(hip.hipMalloc(4 * COUNT)), np.zeros(COUNT, np.int32)
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
            stream=None,
            kernelParams=None,
            extra=(x,),
        )
    )
    call(hip.hipMemcpy(found, x, found.nbytes, KIND.hipMemcpyDeviceToHost))
    call(hip.hipFree(x))
    return found


def by_names() -> None:
    """Two modules of one image have variables of their own."""
    modules = [call(hip.hipModuleLoadData(image)) for _ in range(2)]
    places = [call(hip.hipModuleGetGlobal(module, b"counter")) for module in modules]
    check("sizes", [size for _, size in places] == [8, 8])
    changed = np.array([100, 0], np.int32)
    call(hip.hipMemcpy(places[1][0], changed, 8, KIND.hipMemcpyHostToDevice))
    for module, added in zip(modules, (7, 100), strict=True):
        function = call(hip.hipModuleGetFunction(module, b"variables"))
        found = launched(function)
        check(f"added {added}", (found == TABLE[np.arange(COUNT) % 4] + added).all())
    launched(function)
    for (place, _), count in zip(places, (COUNT, 2 * COUNT), strict=True):
        counted = np.zeros(2, np.int32)
        call(hip.hipMemcpy(counted, place, 8, KIND.hipMemcpyDeviceToHost))
        check(f"counted {counted}", counted[1] == count)
    check("no other", hip.hipModuleGetGlobal(modules[0], b"nothing")[0] == E.hipErrorNotFound)
    used = call(hip.hipMemGetInfo())
    for module in modules:
        call(hip.hipModuleUnload(module))
    check("it gives memory back", call(hip.hipMemGetInfo())[0] > used[0])


class Wrapper(ctypes.Structure):
    _fields_ = (
        ("magic", ctypes.c_uint32), ("version", ctypes.c_uint32), ("image", ctypes.c_char_p),
        ("unused", ctypes.c_void_p),
    )  # fmt: skip


def by_shadows() -> None:
    """As programs of hipcc do: a variable of the host stands for that of the device."""
    held = ctypes.create_string_buffer(image, len(image))
    wrapper = Wrapper(0x48495046, 1, ctypes.cast(held, ctypes.c_char_p), None)
    register = getattr(library, "__hipRegisterVar")
    program = getattr(library, "__hipRegisterFatBinary")(ctypes.byref(wrapper))
    shadow = (ctypes.c_int32 * 2)()
    register(ctypes.c_void_p(program), ctypes.byref(shadow), b"counter", b"counter", 0,
             ctypes.c_size_t(8), 0, 0)  # fmt: skip
    symbol = ctypes.addressof(shadow)
    found = np.zeros(2, np.int32)
    call(hip.hipMemcpyFromSymbol(found, symbol, 8, 0, KIND.hipMemcpyDeviceToHost))
    check("from a symbol", found.tolist() == [7, 0])
    second = np.array([33], np.int32)
    call(hip.hipMemcpyToSymbol(symbol, second, 4, 4, KIND.hipMemcpyHostToDevice))
    call(hip.hipMemcpyFromSymbol(found, symbol, 8, 0, KIND.hipMemcpyDeviceToHost))
    check("to a symbol", found.tolist() == [7, 33])
    check("its size", call(hip.hipGetSymbolSize(symbol)) == 8)
    beyond = hip.hipMemcpyToSymbol(symbol, second, 4, 8, KIND.hipMemcpyHostToDevice)
    check("beyond its end", beyond[0] == E.hipErrorInvalidValue)
    check("no symbol", hip.hipGetSymbolSize(symbol + 64)[0] == E.hipErrorInvalidSymbol)


by_names()
by_shadows()
tell("variables")

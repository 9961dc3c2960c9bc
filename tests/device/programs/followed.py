"""A kernel follows pointers that lie in memory, to allocations that are no argument of it.

mfmadsl device -- python followed.py CODE_OBJECT
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

hip = ctypes.CDLL("libamdhip64.so")

LANES = 64
module, function, table = (ctypes.c_void_p() for _ in range(3))
hip.hipModuleLoadData(ctypes.byref(module), Path(sys.argv[1]).read_bytes())
hip.hipModuleGetFunction(ctypes.byref(function), module, b"followed")
cells = [ctypes.c_void_p() for _ in range(LANES)]
for place, cell in enumerate(cells):
    hip.hipMalloc(ctypes.byref(cell), 4)
    hip.hipMemsetD32(cell, 100 * place, 1)
addresses = (ctypes.c_void_p * LANES)(*[cell.value for cell in cells])
hip.hipMalloc(ctypes.byref(table), ctypes.sizeof(addresses))
hip.hipMemcpy(table, addresses, ctypes.sizeof(addresses), 1)
values = (ctypes.c_void_p * 1)(ctypes.addressof(table))
hip.hipModuleLaunchKernel(function, 1, 1, 1, LANES, 1, 1, 0, None, values, None)
found = []
for cell in cells:
    value = ctypes.c_int32()
    hip.hipMemcpy(ctypes.byref(value), cell, 4, 2)
    found.append(value.value)
wrong = hip.hipDeviceSynchronize() or found != [100 * place + 1 for place in range(LANES)]
print("wrong" if wrong else "right")
sys.exit(bool(wrong))

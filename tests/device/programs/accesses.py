"""Launches a kernel on a pointer that is given in bytes from the start of an allocation, and tells
how the calls ended.

    mfmadsl device -- python accesses.py CODE_OBJECT KERNEL ALLOCATED OFFSET [LDS]
"""

from __future__ import annotations

import ctypes
import json
import sys
from pathlib import Path

hip = ctypes.CDLL("libamdhip64.so")
hip.hipGetErrorName.restype = ctypes.c_char_p

image, name = Path(sys.argv[1]).read_bytes(), sys.argv[2].encode()
allocated, offset, lds = (int(x) for x in [*sys.argv[3:], "0"][:3])

module, function, memory = (ctypes.c_void_p() for _ in range(3))
hip.hipModuleLoadData(ctypes.byref(module), image)
hip.hipModuleGetFunction(ctypes.byref(function), module, name)
hip.hipMalloc(ctypes.byref(memory), allocated)
pointer = ctypes.c_void_p((memory.value or 0) + offset)
values = (ctypes.c_void_p * 1)(ctypes.addressof(pointer))
start = (function, 1, 1, 1, 128, 1, 1, lds, None, values, None)
ended = {
    "launch": hip.hipModuleLaunchKernel(*start),
    "synchronize": hip.hipDeviceSynchronize(),
    "again": hip.hipModuleLaunchKernel(*start),
}
content = (ctypes.c_int32 * (allocated // 4))()
hip.hipMemcpy(content, memory, allocated, 2)
print(
    json.dumps(
        {**{k: hip.hipGetErrorName(v).decode() for k, v in ended.items()}, "memory": list(content)}
    )
)

"""Several threads, each with a stream and memory of its own, launch at once by hip-python, and each
finds its own numbers.

    mfmadsl device -- python threads.py CODE_OBJECT
"""

from __future__ import annotations

import ctypes
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from hip import hip

THREADS, TURNS, N = 4, 5, 200
TO_DEVICE = hip.hipMemcpyKind.hipMemcpyHostToDevice
TO_HOST = hip.hipMemcpyKind.hipMemcpyDeviceToHost


def checked(result: Any) -> Any:
    error, *values = result if isinstance(result, tuple) else (result,)
    if error != hip.hipError_t.hipSuccess:
        raise RuntimeError(str(error))
    return values[0] if values else None


module = checked(hip.hipModuleLoadData(Path(sys.argv[1]).read_bytes()))
scaled = checked(hip.hipModuleGetFunction(module, b"scaled"))


def right(thread: int) -> bool:
    x = np.arange(N, dtype=np.float32) * (thread + 1)
    y = np.zeros(N, np.float32)
    stream = checked(hip.hipStreamCreate())
    device_x, device_y = (checked(hip.hipMalloc(x.nbytes)) for _ in range(2))
    all_right = True
    for turn in range(TURNS):
        factor = turn + thread / 4
        checked(hip.hipMemcpyAsync(device_x, x, x.nbytes, TO_DEVICE, stream))
        arguments = (device_x, device_y, ctypes.c_float(factor), ctypes.c_int32(N))
        checked(
            hip.hipModuleLaunchKernel(
                scaled, -(-N // 64), 1, 1, 64, 1, 1,
                sharedMemBytes=0, stream=stream, kernelParams=None, extra=arguments,
            )
        )  # fmt: skip
        checked(hip.hipMemcpyAsync(y, device_y, y.nbytes, TO_HOST, stream))
        checked(hip.hipStreamSynchronize(stream))
        wanted = np.float32(factor) * x + np.arange(N, dtype=np.float32)
        all_right = all_right and bool((y == wanted).all())
    for pointer in (device_x, device_y):
        checked(hip.hipFree(pointer))
    checked(hip.hipStreamDestroy(stream))
    return all_right


with ThreadPoolExecutor(THREADS) as pool:
    found = list(pool.map(right, range(THREADS)))
print(found)
sys.exit(not all(found))

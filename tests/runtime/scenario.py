"""A use of `tvm.rocm` on the stand-in, what it needs, and how the calls of HIP are kept."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import tvm
import tvm_ffi

from mfmadsl import MfmadslError
from tests.runtime.module_bytes import module_bytes

GRID = ("blockIdx.x", "threadIdx.x")
EVERY_TYPE = [
    ("int", 8), ("handle", 64), ("uint", 16), ("float", 32), ("int", 64), ("bool", 8),
    ("float", 64), ("int", 32), ("uint", 32),
]  # fmt: skip
KERNELS = [
    ("every_type", EVERY_TYPE, (*GRID, "tirx.use_dyn_shared_memory")),
    ("copy", [("handle", 64), ("handle", 64)], ("blockIdx.z", "threadIdx.y", "blockIdx.y")),
    ("tile", [("handle", 64)], GRID),
    ("missing", [], GRID),
    ("half", [("float", 16)], GRID),
    ("together", [], ("blockIdx.x", "tirx.use_cooperative_launch")),
]

SCENARIOS: list[Callable[[], Any]] = []


def scenario(function: Callable[[], Any]) -> Callable[[], Any]:
    SCENARIOS.append(function)
    return function


def stand_in() -> ctypes.CDLL:
    library = ctypes.CDLL("libamdhip64.so")
    library.stand_in_calls.restype = ctypes.c_char_p
    return library


def module(code: bytes = b"\x7fELF, but no more") -> Any:
    load = tvm_ffi.get_global_func("ffi.Module.load_from_bytes.hip")
    return load(module_bytes(KERNELS, code))


def array(device: int = 0, n: int = 4) -> Any:
    return tvm.runtime.tensor(np.arange(n, dtype="float32"), tvm.rocm(device))


def ran(function: Callable[[], Any]) -> dict[str, Any]:
    library = stand_in()
    library.stand_in_fail(b"", 0)
    library.stand_in_devices(2)
    library.stand_in_forget()
    value, error = None, None
    try:
        value = function()
    except MfmadslError as raised:
        error = f"{type(raised).__name__}: {raised}"
    return {"calls": library.stand_in_calls().decode().splitlines(), "error": error, "value": value}

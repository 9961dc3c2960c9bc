"""Arrays that lie in a GPU's memory already, of whatever library made them."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import ml_dtypes  # the types that NumPy lacks: bfloat16 and the eight-bit floats
import numpy as np

from mfmadsl.error import ArgumentError, ArgumentTypeError

_ROCM = (10, 11)  # kDLROCM and kDLROCMHost of DLPack
_KINDS = {0: ("int", 8), 1: ("uint", 8), 2: ("float", 16)}  # DLDataTypeCode, and least bits
_WIDEST = 64
_EIGHT_BITS = {  # DLDataTypeCode of DLPack 1.1
    8: ml_dtypes.float8_e4m3, 10: ml_dtypes.float8_e4m3fn, 11: ml_dtypes.float8_e4m3fnuz,
    12: ml_dtypes.float8_e5m2, 13: ml_dtypes.float8_e5m2fnuz,
}  # fmt: skip


@dataclass(frozen=True)
class DeviceArray:
    """A dense row-major array in a GPU's memory; `owner` keeps it alive."""

    pointer: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    owner: object


def device_array(value: Any, name: str) -> DeviceArray | None:
    """A tensor of PyTorch, CuPy, TVM or the like, as it lies there; None for what lies elsewhere.

    Raises ArgumentError for one that is not dense and row-major, and ArgumentTypeError for elements
    that no kernel knows.
    """
    if isinstance(value, np.ndarray | np.generic):
        return None
    if hasattr(value, "__dlpack_device__"):
        kind, _ = value.__dlpack_device__()
        return _of_dlpack(value, name) if int(kind) in _ROCM else None
    if (described := getattr(value, "__cuda_array_interface__", None)) is not None:
        return _of_interface(value, described, name)
    return None


def _of_interface(value: Any, described: dict[str, Any], name: str) -> DeviceArray:
    dtype = np.dtype(described["typestr"])
    shape = tuple(described["shape"])
    _check_dense(shape, described.get("strides"), dtype.itemsize, name)
    return DeviceArray(described["data"][0], dtype, shape, value)


class _Tensor(ctypes.Structure):
    """DLTensor of dlpack.h, which begins a DLManagedTensor."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("rank", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
    )


def _of_dlpack(value: Any, name: str) -> DeviceArray:
    capsule = value.__dlpack__()
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    tensor = _Tensor.from_address(pointer(capsule, b"dltensor"))
    dtype = _dtype(tensor.code, tensor.bits, tensor.lanes, name)
    shape = tuple(tensor.shape[: tensor.rank])
    strides = (
        [s * dtype.itemsize for s in tensor.strides[: tensor.rank]] if tensor.strides else None
    )
    _check_dense(shape, strides or None, dtype.itemsize, name)
    # The capsule is not consumed: it frees its tensor when it goes, after the launch.
    return DeviceArray((tensor.data or 0) + tensor.offset, dtype, shape, (value, capsule))


def _dtype(code: int, bits: int, lanes: int, name: str) -> np.dtype[Any]:
    element: Any = None
    if lanes == 1 and code in _EIGHT_BITS and bits == 8:
        element = _EIGHT_BITS[code]
    elif lanes == 1 and code == 4 and bits == 16:
        element = ml_dtypes.bfloat16
    elif lanes == 1 and code in _KINDS:
        kind, least = _KINDS[code]
        known = bits in range(least, _WIDEST + 1) and not bits & (bits - 1)
        element = f"{kind}{bits}" if known else None
    if element is not None:
        dtype: np.dtype[Any] = np.dtype(element)
        return dtype
    raise ArgumentTypeError(
        f"argument {name} has elements of DLPack's type {code} with {bits} bits and {lanes} lanes, "
        "which no kernel knows"
    )


def _check_dense(shape: tuple[int, ...], strides: Any, size: int, name: str) -> None:
    if strides is None or 0 in shape:
        return
    wanted = size
    for extent, stride in zip(reversed(shape), reversed(tuple(strides)), strict=True):
        if extent != 1 and stride != wanted:
            raise ArgumentError(
                f"argument {name} is not dense and row-major: its strides are {tuple(strides)} "
                f"bytes; pass a contiguous copy"
            )
        wanted *= extent

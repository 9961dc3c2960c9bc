"""Arrays on a GPU as another package would hand them over, by DLPack: with any strides."""

from __future__ import annotations

import ctypes
from typing import Any

import tvm_ffi

_KEPT: list[Any] = []  # what lives as long as the process


class DLTensor(ctypes.Structure):
    """DLPack's tensor, with what its owner keeps behind it."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("type", ctypes.c_uint8 * 4),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    )


def strided(data: Any, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
    """An array as another package would hand it over."""
    extents = ctypes.c_int64 * len(shape)
    tensor = DLTensor(
        data=data.data_ptr(),
        device=(ctypes.c_int32 * 2)(10, 0),  # kDLROCM
        ndim=len(shape),
        type=(ctypes.c_uint8 * 4)(2, 32, 1, 0),  # float32
        shape=extents(*shape),
        strides=extents(*strides),
    )
    capsule = ctypes.pythonapi.PyCapsule_New
    capsule.restype, capsule.argtypes = ctypes.py_object, [ctypes.c_void_p] * 3
    _KEPT.extend((data, tensor, name := ctypes.create_string_buffer(b"dltensor")))
    return tvm_ffi.from_dlpack(
        Exchanged(capsule(ctypes.addressof(tensor), ctypes.addressof(name), None))
    )


class Exchanged:
    """What has a tensor for others."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 10, 0

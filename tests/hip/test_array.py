"""Arrays that lie on a GPU: which are taken as they lie there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mfmadsl.error import ArgumentError, ArgumentTypeError
from mfmadsl.hip.array import _dtype, device_array


class OnGpu:
    """Whatever says by CUDA's array interface where it lies."""

    def __init__(self, shape: tuple[int, ...], strides: tuple[int, ...] | None) -> None:
        self.__cuda_array_interface__: dict[str, Any] = {
            "data": (4096, False), "shape": shape, "strides": strides, "typestr": "<f4",
        }  # fmt: skip


@pytest.mark.parametrize(
    ("shape", "strides"),
    [
        ((3, 5), None),
        ((3, 5), (20, 4)),
        ((1, 5), (400, 4)),  # of one row no other one begins anywhere
        ((3, 1), (4, 400)),
        ((0, 5), (400, 4)),
        ((), ()),
    ],
)
def test_a_dense_array_is_taken_where_it_lies(
    shape: tuple[int, ...], strides: tuple[int, ...] | None
) -> None:
    found = device_array(OnGpu(shape, strides), "A")
    assert found is not None
    assert (found.pointer, found.dtype.name, found.shape) == (4096, "float32", shape)


@pytest.mark.parametrize(
    ("shape", "strides"), [((3, 5), (24, 4)), ((3, 5), (4, 12)), ((5,), (8,)), ((5,), (-4,))]
)
def test_another_is_refused(shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
    with pytest.raises(ArgumentError, match="argument A is not dense and row-major"):
        device_array(OnGpu(shape, strides), "A")


def test_what_lies_elsewhere_is_none() -> None:
    for value in (np.zeros(3), np.float32(1), [1, 2], None):
        assert device_array(value, "A") is None


@pytest.mark.parametrize(("code", "bits"), [(2, 8), (2, 4), (2, 24), (0, 4), (1, 1), (2, 128)])
def test_elements_that_numpy_does_not_have_are_refused(code: int, bits: int) -> None:
    with pytest.raises(ArgumentTypeError, match=f"DLPack's type {code} with {bits} bits"):
        _dtype(code, bits, 1, "A")

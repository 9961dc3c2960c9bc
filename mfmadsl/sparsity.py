"""Matrices of which two of each four neighbouring elements are stored, as V_SMFMAC_* take them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mfmadsl.argument import check_type
from mfmadsl.error import ArgumentError

Array = npt.NDArray[Any]

GROUP, KEPT = 4, 2
"""Of so many neighbours so many are stored."""

_BITS = 2
_PER_BYTE = 8 // _BITS
_WORD = 4  # bytes
_SHIFTS = np.arange(0, 8, _BITS, dtype=np.uint8)
_NO_NUMBERS = "cmMOSU"  # complex, times, objects and texts, by NumPy's letters


class Compressed(NamedTuple):
    """`values` are [..., K / 2]; `places` as many, each the place of its value among the four."""

    values: Array
    places: npt.NDArray[np.uint8]

    @property
    def packed(self) -> npt.NDArray[np.uint8]:
        """The places as bytes, [..., K / 8]: two bits each, from the lowest up.

        This is what INDEX is in the module of a sparse instruction. Raises ArgumentError if K is no
        multiple of 8.
        """
        *lead, stored = self.places.shape
        if stored % _PER_BYTE:
            raise ArgumentError(f"K is {2 * stored}, but an index of whole bytes is of eight each")
        parts = self.places.reshape(*lead, stored // _PER_BYTE, _PER_BYTE)
        return np.asarray(np.bitwise_or.reduce(parts << _SHIFTS, axis=-1), np.uint8)

    @property
    def words(self) -> npt.NDArray[np.uint8]:
        """The bytes of `packed`, [..., M, K / 8], with the four of 32 k of all rows together.

        They are [..., K / 32, M, 4], as `sparse_matmul` takes them in the order "words". Raises
        ArgumentError if K is no multiple of 32, or there are no rows.
        """
        *lead, stored = self.places.shape
        if not lead or stored % (_PER_BYTE * _WORD):
            raise ArgumentError(
                f"places are of {self.places.shape}, but words are of rows of"
                f" {2 * _PER_BYTE * _WORD} k each"
            )
        octets = self.packed
        parts = octets.reshape(*octets.shape[:-1], -1, _WORD)
        return np.ascontiguousarray(parts.swapaxes(-2, -3))


def compress(array: Array, mask: npt.NDArray[np.bool_] | None = None) -> Compressed:
    """Two of each four elements along the last axis, in their order, and their places.

    `mask` is True where an element is kept, at most twice in four; what it leaves out is zero in
    the result. Without it the two of the largest magnitude are kept, of equals the earlier, and NaN
    before all numbers.

    Raises ArgumentError if the axis is no multiple of four, the mask is of another shape or keeps
    more, or elements are no real numbers, and ArgumentTypeError for what is no array.
    """
    check_type("array", array, np.ndarray, "an array of NumPy's")
    if array.dtype.kind in _NO_NUMBERS:
        raise ArgumentError(f"array: is of numbers that have a size, not of {array.dtype}")
    if array.ndim == 0 or array.shape[-1] % GROUP:
        raise ArgumentError(f"array: its last axis is a multiple of {GROUP}, not {array.shape}")
    *lead, k = array.shape
    groups = array.reshape(*lead, k // GROUP, GROUP)
    if mask is None:
        size = np.abs(groups.astype(np.float64))
        order = np.lexsort((-size, ~np.isnan(size)), axis=-1)
        kept = np.ones_like(groups, dtype=bool)
    else:
        kept = _checked(mask, array.shape).reshape(groups.shape)
        order = np.argsort(~kept, axis=-1, kind="stable")
    places = np.sort(order[..., :KEPT], axis=-1)
    values = np.take_along_axis(np.where(kept, groups, np.zeros_like(groups)), places, axis=-1)
    shape = *lead, k // GROUP * KEPT
    return Compressed(values.reshape(shape), places.astype(np.uint8).reshape(shape))


def decompress(values: Array, index: npt.NDArray[np.uint8]) -> Array:
    """All elements along the last axis, zeros where none is stored.

    `index` is either form: the `places` of `compress`, as many as the values, or its `packed`, the
    bytes of them. Raises ArgumentError for an index of another shape, for a place that is none, and
    for two values at one place, and ArgumentTypeError for what is no array.
    """
    check_type("values", values, np.ndarray, "an array of NumPy's")
    check_type("index", index, np.ndarray, "an array of NumPy's")
    if index.dtype != np.uint8:
        raise ArgumentError(f"index: is of uint8, not of {index.dtype}")
    if values.ndim == 0 or values.shape[-1] % KEPT:
        raise ArgumentError(f"values: their last axis is a multiple of {KEPT}, not {values.shape}")
    *lead, stored = values.shape
    if index.shape == (*lead, stored // _PER_BYTE) and not stored % _PER_BYTE and stored:
        index = np.asarray((index[..., None] >> _SHIFTS) & (GROUP - 1)).reshape(values.shape)
    elif index.shape != values.shape:
        raise ArgumentError(
            f"index: has the shape {index.shape}, but values of {values.shape} have one of"
            f" {values.shape}, or bytes of a quarter of it"
        )
    places = index.reshape(*lead, stored // KEPT, KEPT)
    for wrong, said in (
        (places >= GROUP, f"is a place among {GROUP}, from 0 to {GROUP - 1}"),
        (places[..., :1] == places[..., 1:], "has two values at one place"),
    ):
        if wrong.any():
            at = tuple(int(i) for i in np.argwhere(wrong.any(axis=-1))[0])
            raise ArgumentError(f"index: {said}, but has {places[at].tolist()} for group {at}")
    whole = np.zeros((*lead, stored // KEPT, GROUP), values.dtype)
    np.put_along_axis(whole, places.astype(np.intp), values.reshape(places.shape), axis=-1)
    return whole.reshape(*lead, stored // KEPT * GROUP)


def _checked(mask: object, shape: tuple[int, ...]) -> npt.NDArray[np.bool_]:
    check_type("mask", mask, np.ndarray, "an array of bool")
    assert isinstance(mask, np.ndarray)
    if mask.dtype != np.bool_ or mask.shape != shape:
        raise ArgumentError(
            f"mask: is of bool and {shape}, as the array, not of {mask.dtype} and {mask.shape}"
        )
    count = mask.reshape(*shape[:-1], shape[-1] // GROUP, GROUP).sum(axis=-1)
    if (count > KEPT).any():
        at = tuple(int(i) for i in np.argwhere(count > KEPT)[0])
        raise ArgumentError(f"mask: keeps at most {KEPT} of {GROUP}, but {count[at]} of group {at}")
    return mask

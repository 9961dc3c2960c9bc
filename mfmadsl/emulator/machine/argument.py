"""Whether what a caller passes is what a kernel takes.

A kernel sees bytes. What cannot be its bytes is refused here; what only a run can show, such as a
write to an array that is read-only, is left to `memory`, which knows why by `protection`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mfmadsl.emulator.text.metadata import KernelArgument
from mfmadsl.error import ArgumentError, ArgumentTypeError
from mfmadsl.model.numpy_type import numpy_type

_MOST_BYTES = 8 << 30
_OVERLAP_WORK: Any = 100_000
_NO_NUMBERS = "OSUMm"  # kinds of dtypes that no chip computes with
# `.value_type` of code objects before version 5, and OpenCL's `.type_name`, as kinds and bytes.
_TYPES = {
    **{f"{kind}{bits}": (letters, bits // 8)
       for kind, letters in (("i", "iu"), ("u", "iu"), ("f", "f"))
       for bits in (16, 32, 64)},
    "short": ("iu", 2), "ushort": ("iu", 2), "int": ("iu", 4), "uint": ("iu", 4),
    "long": ("iu", 8), "ulong": ("iu", 8), "half": ("f", 2), "float": ("f", 4),
    "double": ("f", 8),
}  # fmt: skip


def check_passed(value: Any, argument: KernelArgument, name: str, kept: bool = False) -> None:
    """Whether a value can be an argument of machine code, as far as the metadata knows.

    With `kept` the kernel works on a copy, so that a read-only array is as good as any.

    Raises ArgumentTypeError for what is no plain array or scalar of NumPy, and ArgumentError for a
    dtype, a size or a read-only array that the kernel cannot take.
    """
    if argument.kind == "by_value":
        _check_scalar(value, argument, name)
    elif value is not None:
        _check_plain(value, name)
        if argument.writes and not kept and not value.flags.writeable:
            raise ArgumentError(
                f"argument {name} is read-only, but the kernel writes to it: pass a copy"
            )
    if value is not None:
        _check_stated_type(np.asarray(value).dtype, argument, name)


def check_described(value: Any, name: str, dtype: str, shape: Sequence[int]) -> None:
    """Whether a value is the array that a kernel's description asks for.

    Raises ArgumentTypeError if it is no plain array, and ArgumentError for another dtype or shape.
    Types that NumPy lacks are those of ml_dtypes.
    """
    _check_plain(value, name)
    wanted = numpy_type(dtype)
    if value.dtype != wanted:
        how = f"convert it with astype and keep that, or with view if it has the bits of {wanted}"
        if wanted == np.uint8 and value.dtype.itemsize == 1 and value.dtype.kind not in "biu":
            how = 'give its bits, view("uint8"), packed if the elements have fewer than eight'
        raise ArgumentError(f"argument {name} is an array of {wanted}, not of {value.dtype}: {how}")
    if value.shape != tuple(shape):
        raise ArgumentError(
            f"argument {name} has the shape {_extents(shape)}, not {_extents(value.shape)}"
        )


def check_size(size: int, what: str) -> None:
    """Raise ArgumentError for more bytes than the emulator could hold beside the caller's."""
    most = min(_MOST_BYTES, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2)
    if size > most:
        raise ArgumentError(
            f"{what} {size / 2**30:.3g} GiB, more than the {most / 2**30:.3g} GiB that are held on "
            "this machine: take a smaller problem"
        )


def protections(
    args: Sequence[Any], described: Sequence[KernelArgument], names: Sequence[str]
) -> dict[str, str]:
    """The arguments that the kernel must not write to, by name, and why."""
    arrays = [
        None if a.kind == "by_value" or value is None else value
        for value, a in zip(args, described, strict=True)
    ]
    reasons = {name: _protection(place, arrays, names) for place, name in enumerate(names)}
    return {n: f"argument {n}, whose array {reason}" for n, reason in reasons.items() if reason}


def _protection(place: int, arrays: Sequence[npt.NDArray[Any] | None], names: Sequence[str]) -> str:
    array = arrays[place]
    if array is None:
        return ""
    if not array.flags.writeable:
        return "is read-only: pass a copy"
    if _overlaps_itself(array):
        return "has several elements at one address: pass a copy"
    for other, name in zip(arrays, names, strict=True):
        if other is not None and other is not array and _share(array, other):
            return f"shares memory with argument {name}: pass a copy"
    for other, (before, name) in zip(arrays, enumerate(names), strict=True):
        if other is array and before != place:
            return f"is passed as argument {name} too: pass a copy"
    return ""


def _check_plain(value: Any, name: str) -> None:
    if not isinstance(value, np.ndarray):
        raise ArgumentTypeError(f"argument {name} is a NumPy array, not {type(value).__name__}")
    if type(value) not in (np.ndarray, np.memmap):
        raise ArgumentTypeError(
            f"argument {name} is a plain NumPy array, not a {type(value).__name__}: pass "
            "numpy.array(...) of it"
        )
    _check_numbers(value.dtype, name)


def _check_numbers(dtype: np.dtype[Any], name: str) -> None:
    if dtype.hasobject or dtype.kind in _NO_NUMBERS:
        raise ArgumentTypeError(f"argument {name} has elements of {dtype}, which no kernel knows")
    if not dtype.isnative:
        raise ArgumentError(
            f"argument {name} is big-endian ({dtype.str}), but the chip is little-endian: convert "
            f"it with astype({dtype.newbyteorder('=').name!r})"
        )


def _check_scalar(value: Any, argument: KernelArgument, name: str) -> None:
    if not isinstance(value, np.generic | np.ndarray):
        raise ArgumentTypeError(
            f"argument {name} is passed by value, {argument.size} bytes: give a NumPy scalar such "
            f"as numpy.int{8 * argument.size}(1), not {type(value).__name__}"
        )
    if isinstance(value, np.ndarray):
        _check_plain(value, name)
    _check_numbers(value.dtype, name)
    if value.nbytes != argument.size:
        raise ArgumentError(
            f"argument {name} has {argument.size} bytes, but {value.dtype} has {value.nbytes}"
        )


def _check_stated_type(dtype: np.dtype[Any], argument: KernelArgument, name: str) -> None:
    element = argument.type_name.rstrip("* ").rstrip("0123456789")  # of float4* it is float
    known = _TYPES.get(argument.value_type.lower()) or _TYPES.get(element)
    if known and argument.kind == "by_value" and known[1] != argument.size:
        return  # hand-written metadata calls eight bytes an i32: the kernel reads its size of them
    if known and (dtype.kind not in known[0] or dtype.itemsize != known[1]):
        said = argument.value_type or argument.type_name
        raise ArgumentError(f"argument {name} is of type {said} in the metadata, not {dtype}")


def _overlaps_itself(array: npt.NDArray[Any]) -> bool:
    """Whether two elements may lie at one address, as in what `broadcast_to` returns."""
    reached = array.itemsize
    for stride, extent in sorted(
        (abs(s), n) for s, n in zip(array.strides, array.shape, strict=True) if n > 1
    ):
        if stride < reached:
            return array.size > 0
        reached += stride * (extent - 1)
    return False


def _share(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> bool:
    try:
        return bool(np.shares_memory(a, b, max_work=_OVERLAP_WORK))
    except np.exceptions.TooHardError:
        return True


def _extents(shape: Sequence[int]) -> str:
    """A shape as NumPy writes it, with a comma behind the only extent."""
    return str(tuple(map(int, shape)))

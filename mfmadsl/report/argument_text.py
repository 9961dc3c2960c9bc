"""Arguments of a kernel as text: `float16[64,64]`, `int32=4`, a file of NumPy's, `null`.

Arrays have random numbers, or what stands behind them: `float32[8]=0` the same number everywhere,
`int32[4]=3,9,9,12` one for each element, `int32[12]=0..7` random ones from 0 to 7.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import Any

from mfmadsl.argument import clipped
from mfmadsl.report.error import KernelFileError

_ARRAY = re.compile(r"(\w+)\[([\d, ]*)\](?:=(.+))?")
_NUMBER = re.compile(r"(\w+)=(.+)")
_SEED = 20240917
_LARGEST_ARRAY = 1 << 30  # bytes; larger ones come from files
_MOST_DIMENSIONS = 32


def values_of(texts: Sequence[str]) -> list[Any]:
    """The values that texts stand for; random ones are the same on every machine.

    Raises KernelFileError for a text that is none of the forms, and for one that stands for too
    much.
    """
    import numpy as np

    generator = np.random.default_rng(_SEED)
    return [_value(text, generator) for text in texts]


def _value(text: str, generator: Any) -> Any:
    import numpy as np

    if text == "null":
        return None
    if text.endswith(".npy"):
        return _stored(text)
    if match := _ARRAY.fullmatch(text):
        dtype = dtype_of(match[1], text)
        shape = _shape(match[2], dtype, text)
        if match[3] is not None:
            return _filled(match[3], shape, dtype, text, generator)
        if dtype.kind in "iu":
            limits = np.iinfo(dtype)
            return generator.integers(limits.min, limits.max, shape, dtype, endpoint=True)
        return generator.standard_normal(shape).astype(dtype)
    if match := _NUMBER.fullmatch(text):
        return _number(match[2], dtype_of(match[1], text), text)
    raise KernelFileError(
        f"argument `{clipped(text)}` is none of: FILE.npy, float16[64,64], float32[64,64]=0, "
        "int32[3]=4,0,9, int32[64]=0..7, int32=64, null"
    )


def _filled(values: str, shape: tuple[int, ...], dtype: Any, argument: str, generator: Any) -> Any:
    """An array of the values that are told: one for all, one for each element, or a range."""
    import numpy as np

    first, between, last = values.partition("..")
    if between and dtype.kind in "iu":
        low, high = (_number(each, dtype, argument) for each in (first, last))
        if low > high:
            raise KernelFileError(f"argument `{clipped(argument)}`: {low} is beyond {high}")
        return generator.integers(low, high, shape, dtype, endpoint=True)
    numbers = [_number(each, dtype, argument) for each in values.split(",")]
    if len(numbers) not in (1, prod(shape)):
        raise KernelFileError(
            f"argument `{clipped(argument)}` has {len(numbers)} values for {prod(shape)} elements"
        )
    return np.resize(np.array(numbers, dtype), shape)


def _stored(text: str) -> Any:
    """The array of a file that NumPy wrote."""
    import numpy as np

    path = Path(text)
    try:
        if path.exists() and not path.is_file():
            raise KernelFileError(f"{text}: is no file")  # a pipe would wait for its writer
        with path.open("rb") as file:
            version = np.lib.format.read_magic(file)
            read = {(1, 0): np.lib.format.read_array_header_1_0}.get(
                version, np.lib.format.read_array_header_2_0
            )
            shape, _, dtype = read(file)
            # A header may promise more than the file holds, and than there is memory.
            if prod(shape) * dtype.itemsize > path.stat().st_size:
                raise KernelFileError(f"{text}: is shorter than its header says")
            file.seek(0)
            return np.lib.format.read_array(file, allow_pickle=False)
    except OSError as error:
        raise KernelFileError(f"{text}: cannot be read: {error.strerror}") from None
    except KernelFileError:
        raise
    except Exception as error:  # NumPy reads a header as Python, and raises whatever Python does
        reason = str(error).partition("\n")[0]
        raise KernelFileError(f"{text}: is no array of NumPy's: {reason}") from None


def _shape(extents: str, dtype: Any, argument: str) -> tuple[int, ...]:
    shape = tuple(int(extent) for extent in re.findall(r"\d{1,18}", extents))
    size = prod(shape) * dtype.itemsize
    if size > _LARGEST_ARRAY or re.search(r"\d{19}", extents):
        limit = f"{_LARGEST_ARRAY >> 30} GiB"
        raise KernelFileError(
            f"argument `{clipped(argument)}` has more than {limit}; in Python `emulate` and "
            "`profile` take arrays of any size"
        )
    if len(shape) > _MOST_DIMENSIONS:
        raise KernelFileError(f"argument `{clipped(argument)}` has {len(shape)} dimensions")
    return shape


def dtype_of(name: str, text: str) -> Any:
    """The type of numbers that is called so; NumPy has others, of texts and of objects."""
    import ml_dtypes
    import numpy as np

    narrow = getattr(ml_dtypes, name, None)
    if isinstance(narrow, type) and issubclass(narrow, np.generic):
        return np.dtype(narrow)
    try:
        dtype = np.dtype(name)
    except (TypeError, ValueError):
        dtype = np.dtype(object)
    if not issubclass(dtype.type, np.number | np.bool_):
        raise KernelFileError(f"argument `{clipped(text)}`: there is no type `{clipped(name)}`")
    return dtype


def _number(text: str, dtype: Any, argument: str) -> Any:
    try:
        return dtype.type(int(text, 0) if dtype.kind in "iu" else float(text))
    except (ValueError, OverflowError):
        message = f"`{clipped(text)}` is no {dtype}"
        raise KernelFileError(f"argument `{clipped(argument)}`: {message}") from None

"""Kernels in files: assembly text, or the JSON that describes one, with their arguments."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from mfmadsl.argument import check_extent, check_integer, clipped
from mfmadsl.error import MfmadslError

_ARRAY = re.compile(r"(\w+)\[([\d, ]*)\](?:=(.+))?")
_NUMBER = re.compile(r"(\w+)=(.+)")
_SEED = 20240917
_LARGEST_FILE = 64 << 20  # bytes; of the assembly that LLVM writes the largest has a few
_LARGEST_ARRAY = 1 << 30  # bytes; larger ones come from files
_MOST_DIMENSIONS = 32


class KernelFileError(MfmadslError, ValueError):
    """A file or an argument that is not what it should be, and how to mend it."""


@dataclass(frozen=True)
class StoredKernel:
    """A kernel from files, with its launch, and the types of its arguments if those are known."""

    assembly: str
    symbol: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    lds_bytes: int
    described: tuple[str, ...] = ()

    def arguments(self, texts: Sequence[str]) -> list[Any]:
        """The values that texts such as `float16[64,64]` stand for; those described by default.

        Raises KernelFileError for a text that is none of the forms.
        """
        import numpy as np

        generator = np.random.default_rng(_SEED)
        return [_value(text, generator) for text in texts or self.described]


def read_kernel(
    path: Path,
    symbol: str | None = None,
    grid: Sequence[int] | None = None,
    block: Sequence[int] | None = None,
    lds_bytes: int | None = None,
) -> StoredKernel:
    """Read assembly text, or JSON as `mfmadsl gemm --emit json` writes it, beside its assembly.

    What is given here goes before what the files say. Raises KernelFileError.
    """
    from mfmadsl.emulator import EmulationError
    from mfmadsl.emulator.assembly import parse_assembly

    text, facts = _read(path), {}
    if path.suffix == ".json":
        facts = _facts(path, text)
        text = _read(facts["assembly"])
    try:
        program = parse_assembly(text, symbol or facts.get("symbol"))
    except EmulationError as error:
        raise KernelFileError(f"{path}: {error}") from None
    grid = grid or facts.get("grid")
    block = block or facts.get("block") or program.workgroup_size
    if grid is None or block is None:
        missing = "grid" if grid is None else "block"
        raise KernelFileError(f"{path}: the text does not say its {missing}: give --{missing}")
    if lds_bytes is None:
        lds_bytes = facts.get("lds_bytes", program.directive("group_segment_fixed_size"))
    return StoredKernel(
        text, program.name, _three(grid), _three(block), lds_bytes,
        tuple(facts.get("described", ())),
    )  # fmt: skip


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST_FILE + 1)  # a device may never end
    except OSError as error:
        raise KernelFileError(f"{path}: cannot be read: {error.strerror}") from None
    if len(content) > _LARGEST_FILE:
        limit = f"{_LARGEST_FILE >> 20} MiB"
        raise KernelFileError(f"{path}: is larger than {limit}, so it is no kernel")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise KernelFileError(f"{path}: is no text") from None


def _facts(path: Path, text: str) -> dict[str, Any]:
    """What the JSON says, with the path of the assembly."""
    try:
        described = json.loads(text)
        arguments = [
            f"{a['dtype']}[{','.join(map(str, a['shape']))}]" for a in described["arguments"]
        ]
        facts = {name: described[name] for name in ("symbol", "grid", "block", "lds_bytes")}
        files = [Path(name) for name in described["files"] if name.endswith(".s")]
        _check_facts(facts)
    except RecursionError:
        raise KernelFileError(f"{path}: is nested too deeply to be a kernel") from None
    except (AttributeError, KeyError, TypeError, ValueError):
        raise KernelFileError(
            f"{path}: is not what `mfmadsl gemm --emit json` writes; "
            "give the assembly text with --grid, --block and --arg instead"
        ) from None
    if not files:
        raise KernelFileError(f"{path}: names no assembly: write it with --emit asm --emit json")
    beside = path.parent / files[0].name
    return {**facts, "described": arguments, "assembly": beside if beside.exists() else files[0]}


def _check_facts(facts: dict[str, Any]) -> None:
    """Raise TypeError or ValueError for a launch that `mfmadsl gemm --emit json` does not write."""
    if not isinstance(facts["symbol"], str):
        raise TypeError
    if check_integer("lds_bytes", facts["lds_bytes"]) < 0:
        raise ValueError
    for extents in (facts["grid"], facts["block"]):
        if not isinstance(extents, list) or not 1 <= len(extents) <= 3:
            raise TypeError
        for extent in extents:
            check_extent("extent", extent)


def _three(extents: Sequence[int]) -> tuple[int, int, int]:
    x, y, z = (*extents, 1, 1, 1)[:3]
    return x, y, z


def _value(text: str, generator: Any) -> Any:
    import numpy as np

    if text == "null":
        return None
    if text.endswith(".npy"):
        return _stored(text)
    if match := _ARRAY.fullmatch(text):
        dtype = _dtype(match[1], text)
        shape = _shape(match[2], dtype, text)
        if match[3] is not None:
            return np.full(shape, _number(match[3], dtype, text), dtype)
        if dtype.kind in "iu":
            limits = np.iinfo(dtype)
            return generator.integers(limits.min, limits.max, shape, dtype, endpoint=True)
        return generator.standard_normal(shape).astype(dtype)
    if match := _NUMBER.fullmatch(text):
        return _number(match[2], _dtype(match[1], text), text)
    raise KernelFileError(
        f"argument `{clipped(text)}` is none of: FILE.npy, float16[64,64], float32[64,64]=0, "
        "int32=64, null"
    )


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
        raise KernelFileError(f"argument `{clipped(argument)}` has more than {limit}")
    if len(shape) > _MOST_DIMENSIONS:
        raise KernelFileError(f"argument `{clipped(argument)}` has {len(shape)} dimensions")
    return shape


def _dtype(name: str, text: str) -> Any:
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

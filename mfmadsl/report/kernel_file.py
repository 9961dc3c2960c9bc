"""Kernels in files: assembly text, or the JSON that describes one, with their arguments."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mfmadsl.error import MfmadslError

_ARRAY = re.compile(r"(\w+)\[([\d, ]*)\](?:=(.+))?")
_NUMBER = re.compile(r"(\w+)=(.+)")
_SEED = 20240917


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
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise KernelFileError(f"{path}: cannot be read: {error.strerror}") from None
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
    except (ValueError, KeyError, TypeError):
        raise KernelFileError(
            f"{path}: is not what `mfmadsl gemm --emit json` writes; "
            "give the assembly text with --grid, --block and --arg instead"
        ) from None
    if not files:
        raise KernelFileError(f"{path}: names no assembly: write it with --emit asm --emit json")
    beside = path.parent / files[0].name
    return {**facts, "described": arguments, "assembly": beside if beside.exists() else files[0]}


def _three(extents: Sequence[int]) -> tuple[int, int, int]:
    x, y, z = (*extents, 1, 1, 1)[:3]
    return x, y, z


def _value(text: str, generator: Any) -> Any:
    import numpy as np

    if text == "null":
        return None
    if text.endswith(".npy"):
        try:
            return np.load(text, allow_pickle=False)
        except (OSError, ValueError) as error:
            raise KernelFileError(f"{text}: cannot be read: {error}") from None
    if match := _ARRAY.fullmatch(text):
        dtype = _dtype(match[1], text)
        shape = tuple(int(extent) for extent in match[2].split(",") if extent.strip())
        if match[3] is not None:
            return np.full(shape, _number(match[3], dtype, text), dtype)
        if dtype.kind in "iu":
            limits = np.iinfo(dtype)
            return generator.integers(limits.min, limits.max, shape, dtype, endpoint=True)
        return generator.standard_normal(shape).astype(dtype)
    if match := _NUMBER.fullmatch(text):
        return _number(match[2], _dtype(match[1], text), text)
    raise KernelFileError(
        f"argument `{text}` is none of: FILE.npy, float16[64,64], float32[64,64]=0, int32=64, null"
    )


def _dtype(name: str, text: str) -> Any:
    import ml_dtypes
    import numpy as np

    try:
        return np.dtype(getattr(ml_dtypes, name, name))
    except TypeError:
        raise KernelFileError(f"argument `{text}`: there is no type `{name}`") from None


def _number(text: str, dtype: Any, argument: str) -> Any:
    try:
        return dtype.type(int(text, 0) if dtype.kind in "iu" else float(text))
    except (ValueError, OverflowError):
        raise KernelFileError(f"argument `{argument}`: `{text}` is no {dtype}") from None

"""Kernels in files: assembly text, or the JSON that describes one, with their arguments."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mfmadsl.emulator.assembly import Program

_ARRAY = re.compile(r"(\w+)\[([\d, ]*)\](?:=(.+))?")
_NUMBER = re.compile(r"(\w+)=(.+)")
_SEED = 20240917


class KernelFileError(ValueError):
    """A file or an argument that is not what it should be, and how to mend it."""


@dataclass(frozen=True)
class StoredArray:
    """An argument as the JSON describes it."""

    name: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def text(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"


@dataclass(frozen=True)
class StoredLaunch:
    """One start of a kernel from files; `args` are what its machine code takes."""

    assembly: str
    symbol: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    lds_bytes: int
    parameters: tuple[str, ...] = ()
    args: tuple[Any, ...] = ()


@dataclass(frozen=True)
class StoredKernel:
    """A kernel from files: its launches, one after another.

    Where `described` has the arguments, each launch names those that it takes, and `workspaces`.
    """

    starts: tuple[StoredLaunch, ...]
    described: tuple[StoredArray, ...] | None = None
    workspaces: tuple[StoredArray, ...] = ()

    def arguments(self, texts: Sequence[str]) -> list[Any]:
        """The values that texts such as `float16[64,64]` stand for; those described by default.

        Raises KernelFileError for a text that is none of the forms, and for more than this machine
        holds.
        """
        import numpy as np

        generator = np.random.default_rng(_SEED)
        texts = texts or [array.text for array in self.described or ()]
        return [_value(text, generator) for text in texts]

    def launches(self, args: Sequence[Any]) -> list[StoredLaunch]:
        """What to launch with these arguments.

        Raises ValueError or TypeError if they are not those that are described.
        """
        import numpy as np

        from mfmadsl.emulator.argument import check_described

        if self.described is None:
            return [replace(launch, args=tuple(args)) for launch in self.starts]
        if len(args) != len(self.described):
            names = ", ".join(array.name for array in self.described)
            raise ValueError(
                f"`{self.starts[0].symbol}` takes {len(self.described)} arguments ({names}), "
                f"but {len(args)} are given"
            )
        values: dict[str, Any] = {}
        for array, value in zip(self.described, args, strict=True):
            check_described(value, array.name, array.dtype, array.shape)
            values[array.name] = value
        for array in self.workspaces:
            values[array.name] = np.empty(array.shape, _dtype(array.dtype, array.text))
        return [
            replace(launch, args=tuple(values[name] for name in launch.parameters))
            for launch in self.starts
        ]


def read_kernel(
    path: Path,
    symbol: str | None = None,
    grid: Sequence[int] | None = None,
    block: Sequence[int] | None = None,
    lds_bytes: int | None = None,
) -> StoredKernel:
    """Read assembly text, or JSON as `mfmadsl gemm --emit json` writes it, beside its assembly.

    What is given here goes before what assembly text says. JSON says all of it. Raises
    KernelFileError.
    """
    text = _read(path)
    if path.suffix == ".json":
        asked = {"symbol": symbol, "grid": grid, "block": block, "lds": lds_bytes}
        given = [f"--{name}" for name, value in asked.items() if value is not None]
        if given:
            raise KernelFileError(f"{path}: says by itself what {', '.join(given)} would say")
        return _described(path, text)
    program = _program(path, text, symbol)
    block = block or program.workgroup_size
    if grid is None or block is None:
        missing = "grid" if grid is None else "block"
        raise KernelFileError(f"{path}: the text does not say its {missing}: give --{missing}")
    if lds_bytes is None:
        lds_bytes = program.directive("group_segment_fixed_size")
    return StoredKernel((StoredLaunch(text, program.name, _three(grid), _three(block), lds_bytes),))


def _program(path: Path, text: str, symbol: str | None) -> Program:
    from mfmadsl.emulator import EmulationError
    from mfmadsl.emulator.assembly import parse_assembly

    try:
        return parse_assembly(text, symbol)
    except EmulationError as error:
        raise KernelFileError(f"{path}: {error}") from None


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise KernelFileError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise KernelFileError(f"{path}: is no text") from None


def _described(path: Path, text: str) -> StoredKernel:
    """What the JSON says, with the assembly of each launch."""
    try:
        facts = json.loads(text)
        arrays = {
            kind: tuple(
                StoredArray(str(a["name"]), str(a["dtype"]), tuple(map(int, a["shape"])))
                for a in facts[kind]
            )
            for kind in ("arguments", "workspaces")
        }
        launches = []
        while facts is not None:
            files = [Path(name) for name in facts["files"] if name.endswith(".s")]
            launches.append(
                StoredLaunch(
                    assembly=_beside(path, files),
                    symbol=str(facts["symbol"]),
                    grid=_three([int(extent) for extent in facts["grid"]]),
                    block=_three([int(extent) for extent in facts["block"]]),
                    lds_bytes=int(facts["lds_bytes"]),
                    parameters=tuple(map(str, facts["parameters"])),
                )
            )
            facts = facts["next"]
        known = {array.name for kind in arrays.values() for array in kind}
        if any(set(launch.parameters) - known for launch in launches):
            raise KeyError("parameters")
    except KernelFileError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError):
        raise KernelFileError(
            f"{path}: is not what `mfmadsl gemm --emit json` writes; "
            "give the assembly text with --grid, --block and --arg instead"
        ) from None
    for launch in launches:
        _program(path, launch.assembly, launch.symbol)
    return StoredKernel(tuple(launches), arrays["arguments"], arrays["workspaces"])


def _beside(path: Path, files: Sequence[Path]) -> str:
    """The assembly, where it was written or beside the JSON."""
    if not files:
        raise KernelFileError(f"{path}: names no assembly: write it with --emit asm --emit json")
    beside = path.parent / files[0].name
    return _read(beside if beside.exists() else files[0])


def _three(extents: Sequence[int]) -> tuple[int, int, int]:
    x, y, z = (*extents, 1, 1, 1)[:3]
    return x, y, z


def _value(text: str, generator: Any) -> Any:
    import numpy as np

    from mfmadsl.emulator.argument import check_size

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
        try:
            check_size(8 * prod(shape), f"argument `{text}` takes")  # float64, before it is rounded
        except ValueError as error:
            raise KernelFileError(str(error)) from None
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

"""Kernels in files: assembly text, code objects, or the JSON that describes one, with their
arguments."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mfmadsl.argument import check_extent, check_flag, check_integer, check_type, three_extents
from mfmadsl.error import ArgumentError
from mfmadsl.report.argument_text import dtype_of, values_of
from mfmadsl.report.error import KernelFileError

if TYPE_CHECKING:
    from mfmadsl.emulator.text.assembly import Program

_LARGEST_FILE = 64 << 20  # bytes; of the assembly that LLVM writes the largest has a few
_MOST_LAUNCHES = 64


@dataclass(frozen=True)
class StoredArray:
    """An argument as the JSON describes it; `values` are random ones if it says none. A workspace
    may be `zero`."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    values: str | None = None
    zero: bool = False

    @property
    def text(self) -> str:
        """The argument as it is written on the command line."""
        written = f"{self.dtype}[{','.join(map(str, self.shape))}]"
        return written if self.values is None else f"{written}={self.values}"


@dataclass(frozen=True)
class StoredLaunch:
    """One start of a kernel from files; `args` are what its machine code takes, at the places
    `zeros` workspaces with zeros in them."""

    assembly: str
    symbol: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    lds_bytes: int
    parameters: tuple[str, ...] = ()
    args: tuple[Any, ...] = ()
    zeros: tuple[int, ...] = ()


@dataclass(frozen=True)
class StoredKernel:
    """A kernel from files: its launches, one after another.

    Where `described` has the arguments, each launch names those that it takes, and `workspaces`.
    `facts` is what a page says of it beside what the machine code says, such as its tiling.
    """

    starts: tuple[StoredLaunch, ...]
    described: tuple[StoredArray, ...] | None = None
    workspaces: tuple[StoredArray, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)

    def arguments(self, texts: Sequence[str]) -> list[Any]:
        """The values that texts such as `float16[64,64]` stand for; those described by default.

        Raises KernelFileError for a text that is none of the forms, and for one that stands for too
        much.
        """
        return values_of(texts or self.argument_texts)

    @property
    def argument_texts(self) -> tuple[str, ...]:
        """What is described, as texts that stand for it; nothing where nothing is."""
        return tuple(array.text for array in self.described or ())

    def launches(self, args: Sequence[Any]) -> list[StoredLaunch]:
        """What to launch with these arguments.

        Raises ArgumentError if they are not those that are described.
        """
        import numpy as np

        from mfmadsl.emulator.machine.argument import check_described

        if self.described is None:
            return [replace(launch, args=tuple(args)) for launch in self.starts]
        if len(args) != len(self.described):
            names = ", ".join(array.name for array in self.described)
            raise ArgumentError(
                f"`{self.starts[0].symbol}` takes {len(self.described)} arguments ({names}), "
                f"but {len(args)} are given"
            )
        values: dict[str, Any] = {}
        for array, value in zip(self.described, args, strict=True):
            check_described(value, array.name, array.dtype, array.shape)
            values[array.name] = value
        for array in self.workspaces:
            made = np.zeros if array.zero else np.empty
            values[array.name] = made(array.shape, dtype_of(array.dtype, array.text))
        zero = {array.name for array in self.workspaces if array.zero}
        return [
            replace(
                launch,
                args=tuple(values[name] for name in launch.parameters),
                zeros=tuple(n for n, name in enumerate(launch.parameters) if name in zero),
            )
            for launch in self.starts
        ]


def read_kernel(
    path: Path,
    symbol: str | None = None,
    grid: Sequence[int] | None = None,
    block: Sequence[int] | None = None,
    lds_bytes: int | None = None,
    arch: str | None = None,
) -> StoredKernel:
    """Read assembly text, a code object, or JSON as `mfmadsl gemm --emit json` writes it, beside
    its assembly.

    What is given here goes before what assembly text says; `arch` is the chip, where a bundle of
    code objects has several. JSON says all of it. Raises KernelFileError.
    """
    content = _content(path)
    if _is_json(path, content):
        asked = {"symbol": symbol, "arch": arch, "grid": grid, "block": block, "lds": lds_bytes}
        given = [f"--{name}" for name, value in asked.items() if value is not None]
        if given:
            raise KernelFileError(f"{path}: says by itself what {', '.join(given)} would say")
        return _described(path, _decoded(path, content))
    text = _assembly(path, content, symbol, arch)
    program = _program(path, text, symbol)
    block = block or program.workgroup_size
    if grid is None or block is None:
        missing = "grid" if grid is None else "block"
        raise KernelFileError(f"{path}: the text does not say its {missing}: give --{missing}")
    if lds_bytes is None:
        lds_bytes = _lds_of_triton(path, program.name)
    if lds_bytes is None:
        lds_bytes = program.directive("group_segment_fixed_size")
    extents = three_extents("grid", grid), three_extents("block", block)
    return StoredKernel((StoredLaunch(text, program.name, *extents, lds_bytes),))


def is_described(path: Path) -> bool:
    """Whether a file is JSON, which says its launch and its arguments. Raises KernelFileError."""
    return _is_json(path, _content(path))


def _is_json(path: Path, content: bytes) -> bool:
    """By its name or by its first character, with which no assembly text begins."""
    return path.suffix == ".json" or content.lstrip()[:1] == b"{"


def _lds_of_triton(path: Path, name: str) -> int | None:
    """The LDS that a kernel gets when it is launched, by the file that Triton's cache has beside
    it; None where there is none.

    In Triton's code objects the size of the LDS is 0: its launcher gives what the file says.
    """
    try:
        facts = json.loads(path.with_suffix(".json").read_text())
        shared = facts["shared"] if facts["name"] == name else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
    is_size = isinstance(shared, int) and not isinstance(shared, bool) and shared >= 0
    return shared if is_size else None


def _program(path: Path, text: str, symbol: str | None) -> Program:
    from mfmadsl.emulator import EmulationError
    from mfmadsl.emulator.code_object.assembled import read_program

    try:
        return read_program(text, symbol)
    except EmulationError as error:
        raise KernelFileError(f"{path}: {error}") from None


def _assembly(path: Path, content: bytes, symbol: str | None, arch: str | None) -> str:
    """Assembly text, or that of a code object's kernel."""
    from mfmadsl.emulator.code_object import CodeObjectError, is_code_object, read_code_object

    if not is_code_object(content):
        if arch is not None:
            raise KernelFileError(f"{path}: says by itself what --arch would say")
        return _decoded(path, content)
    try:
        code_object = read_code_object(content, arch)
        names = list(code_object.kernels)
        if symbol is None and len(names) != 1:
            holds = f"several kernels, name one with --symbol: {', '.join(names)}"
            raise KernelFileError(f"{path}: holds {holds if names else 'no kernel'}")
        return code_object.assembly(symbol or names[0])
    except CodeObjectError as error:
        raise KernelFileError(f"{path}: {error}") from None


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST_FILE + 1)  # a device may never end
    except OSError as error:
        raise KernelFileError(f"{path}: cannot be read: {error.strerror}") from None
    if len(content) > _LARGEST_FILE:
        limit = f"{_LARGEST_FILE >> 20} MiB"
        raise KernelFileError(f"{path}: is larger than {limit}, so it is no kernel")
    return content


def _decoded(path: Path, content: bytes) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise KernelFileError(f"{path}: is no text, and no code object") from None


def _described(path: Path, text: str) -> StoredKernel:
    """What the JSON says, with the assembly of each launch."""
    try:
        facts = json.loads(text)
        arguments, workspaces = (
            tuple(_array(each) for each in facts[kind]) for kind in ("arguments", "workspaces")
        )
        told = _told(facts)
        launches: list[StoredLaunch] = []
        while facts is not None and len(launches) < _MOST_LAUNCHES:
            launches.append(_launch(path, facts))
            facts = facts["next"]
        known = {array.name for array in (*arguments, *workspaces)}
        if facts is not None or any(set(launch.parameters) - known for launch in launches):
            raise ArgumentError("parameters")
    except RecursionError:
        raise KernelFileError(f"{path}: is nested too deeply to be a kernel") from None
    except KernelFileError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError):
        raise KernelFileError(
            f"{path}: is not what `mfmadsl gemm --emit json` writes; "
            "give the assembly text with --grid, --block and --arg instead"
        ) from None
    for launch in launches:
        _program(path, launch.assembly, launch.symbol)
    return StoredKernel(tuple(launches), arguments, workspaces, told)


def _told(facts: dict[str, Any]) -> dict[str, str]:
    """How the product is cut, and why its loop is slow, where the JSON says so: it did not always.

    Raises KeyError, TypeError or ValueError for what does neither.
    """
    from mfmadsl.report.kernel_page import tiling_facts

    tiling, remarks = facts.get("tiling"), facts.get("remarks") or []
    found = {} if tiling is None else tiling_facts(tiling)
    return {**found, "remark": "; ".join(remarks)} if remarks else found


def _array(facts: dict[str, Any]) -> StoredArray:
    shape = tuple(check_extent("extent", extent) for extent in facts["shape"])
    values = _text(facts["values"]) if "values" in facts else None
    zero = facts.get("zero", False)
    check_flag("zero", zero)
    return StoredArray(_text(facts["name"]), _text(facts["dtype"]), shape, values, zero)


def _launch(path: Path, facts: dict[str, Any]) -> StoredLaunch:
    """Raises TypeError, KeyError or ValueError for what is none."""
    lds_bytes = check_integer("lds_bytes", facts["lds_bytes"])
    if lds_bytes < 0:
        raise ArgumentError("lds_bytes")
    return StoredLaunch(
        assembly=_beside(path, [Path(name) for name in facts["files"] if name.endswith(".s")]),
        symbol=_text(facts["symbol"]),
        grid=_extents(facts["grid"]),
        block=_extents(facts["block"]),
        lds_bytes=lds_bytes,
        parameters=tuple(_text(name) for name in facts["parameters"]),
    )


def _text(value: Any) -> str:
    check_type("value", value, str, "a text")
    return str(value)


def _extents(value: Any) -> tuple[int, int, int]:
    check_type("extents", value, list, "one to three numbers")
    return three_extents("extents", value)


def _beside(path: Path, files: Sequence[Path]) -> str:
    """The assembly, where it was written or beside the JSON."""
    if not files:
        raise KernelFileError(f"{path}: names no assembly: write it with --emit asm --emit json")
    beside = path.parent / files[0].name
    found = beside if beside.exists() else files[0]
    return _decoded(found, _content(found))

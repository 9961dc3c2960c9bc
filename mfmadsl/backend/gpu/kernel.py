"""What `build` returns: a kernel as text and bytes, and all that a launch needs to know."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import NoneType
from typing import Any

import numpy as np

from mfmadsl.argument import (
    check_choice,
    check_extent,
    check_integer,
    check_list,
    check_type,
    described,
)
from mfmadsl.backend.argument import Argument, ExtentSymbol, Requirement
from mfmadsl.backend.extent import Extent, Formula, value_of
from mfmadsl.backend.gpu.linker import link
from mfmadsl.backend.gpu.llvm import emit_object
from mfmadsl.backend.isolate import run_isolated
from mfmadsl.emulator.machine.argument import check_described
from mfmadsl.emulator.text.registers import Registers
from mfmadsl.error import ArgumentError
from mfmadsl.passes.main_loop.moves.address import SPAN_LIMIT

CODE_OBJECT_VERSIONS = (5, 6)
"""Versions of AMD's code objects, the default first."""


def check_code_object_version(version: object) -> int:
    """Raise ArgumentError, or ArgumentTypeError, for one that is not emitted."""
    number = check_integer("code_object_version", version)
    if number not in CODE_OBJECT_VERSIONS:
        known = " and ".join(map(str, CODE_OBJECT_VERSIONS))
        raise ArgumentError(f"code_object_version: there are {known}, not {described(number)}")
    return number


@dataclass(frozen=True)
class KernelLaunch:
    """One start of a kernel: its extents as numbers, and what the machine code takes; at the places
    `zeros` of `args` are workspaces that hold zeros."""

    symbol: str
    assembly: str = field(repr=False)
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    lds_bytes: int
    args: tuple[Any, ...] = field(repr=False)
    zeros: tuple[int, ...] = ()


@dataclass(frozen=True)
class Kernel:
    """Machine code for one chip.

    `arguments` are what a caller passes, `extents` (of the grid) and `block` are (x, y, z),
    `lds_bytes` is what one workgroup takes of the LDS. `optimized` is LLVM IR that is ready for
    emission. `remarks` say which loops the passes left as they were, and why; `spans`, of which
    arguments a tile has how many bytes, where that is known at the launch only. `requirements` are
    what the extents of a launch have to hold.
    `code_object_version` is that of AMD's format of code objects.

    `parameters` names what the machine code takes, in its order: arguments, `workspaces` (memory
    that a caller provides for the time of the launch) and `symbols`. If the work takes several
    launches, `next` is the one after this; it has the same arguments and workspaces. A kernel whose
    `condition` is 0 for the extents of a launch is left out: of several for one product each is for
    other extents.
    """

    symbol: str
    arch: str
    llvm_ir: str = field(repr=False)
    assembly: str = field(repr=False)
    optimized: str = field(repr=False)
    arguments: tuple[Argument, ...]
    extents: tuple[Extent, Extent, Extent]
    block: tuple[int, int, int]
    lds_bytes: int
    registers: Registers
    parameters: tuple[str, ...] = ()
    workspaces: tuple[Argument, ...] = ()
    symbols: tuple[ExtentSymbol, ...] = ()
    next: Kernel | None = None
    remarks: tuple[str, ...] = ()
    spans: tuple[tuple[str, Extent], ...] = ()
    requirements: tuple[Requirement, ...] = ()
    condition: Extent = 1
    code_object_version: int = CODE_OBJECT_VERSIONS[0]

    def __post_init__(self) -> None:
        """Raise ArgumentTypeError or ArgumentError for what `build` would not have made."""
        for name in ("symbol", "arch", "llvm_ir", "assembly", "optimized"):
            check_type(name, getattr(self, name), str, "a str")
        for name in ("extents", "block"):
            check_list(name, getattr(self, name), "three extents, along x, y and z")
            if len(getattr(self, name)) != 3:
                raise ArgumentError(f"{name}: is three extents, not {len(getattr(self, name))}")
        for threads in self.block:
            check_extent("block", threads)
        check_integer("lds_bytes", self.lds_bytes)
        check_code_object_version(self.code_object_version)
        for name, kind in (
            ("arguments", Argument),
            ("workspaces", Argument),
            ("symbols", ExtentSymbol),
        ):
            check_list(name, getattr(self, name), "a tuple")
            for each in getattr(self, name):
                check_type(name, each, kind, f"a tuple of {kind.__name__}")
        check_list("parameters", self.parameters, "a tuple")
        names = {each.name for each in (*self.arguments, *self.workspaces)}
        names |= {symbol.name for symbol in self.symbols}
        for parameter in self.parameters:
            check_choice("parameters", parameter, names)
        for extent in self.extents:
            if isinstance(extent, str):
                check_choice("extents", extent, names)
            elif not isinstance(extent, Formula):
                check_extent("extents", extent)
        check_type("condition", self.condition, (int, str, Formula), "an extent")
        check_type("next", self.next, (Kernel, NoneType), "a Kernel or None")

    @cached_property
    def code_object(self) -> bytes | None:
        """The ELF file (.hsaco) that a GPU loads, made when it is first asked for.

        None where no linker was found. Raises LinkError if the linker refuses.
        """
        return link(run_isolated(lambda: emit_object([self.optimized], self.arch)))

    @property
    def grid(self) -> tuple[int, int, int]:
        """Workgroups along x, y, z. Raises ArgumentError if they depend on the arguments."""
        x, y, z = self.extents
        if isinstance(x, int) and isinstance(y, int) and isinstance(z, int):
            return x, y, z
        names = ", ".join(symbol.name for symbol in self.symbols)
        raise ArgumentError(f"the grid of `{self.symbol}` depends on {names}: see `launches`")

    def _check_spans(self, extents: Mapping[str, int]) -> None:
        for name, span in self.spans:
            size = value_of(span, extents)
            if size >= SPAN_LIMIT:
                raise ArgumentError(
                    f"argument {name}: a tile spans {size} bytes, which the kernel's offsets of 31 "
                    "bits cannot tell: build one for smaller tiles"
                )

    def _check_requirements(self, extents: Mapping[str, int]) -> None:
        for requirement in self.requirements:
            if value_of(requirement.extent, extents):
                found = ", ".join(f"{symbol} is {extent}" for symbol, extent in extents.items())
                raise ArgumentError(f"`{self.symbol}`: {requirement.said}, but {found}")

    def chain(self) -> Iterator[Kernel]:
        """This kernel and those that are launched after it."""
        kernel: Kernel | None = self
        while kernel is not None:
            yield kernel
            kernel = kernel.next

    def launches(self, args: Sequence[Any]) -> list[KernelLaunch]:
        """What to launch for these arguments, one after another; nothing for a result that has no
        elements.

        Raises ArgumentError if the arrays are not as many as the arguments, or their types, their
        shapes or their sizes are others, and ArgumentTypeError for what is no plain array.
        """
        if len(args) != len(self.arguments):
            names = ", ".join(argument.name for argument in self.arguments)
            raise ArgumentError(
                f"`{self.symbol}` takes {len(self.arguments)} arguments ({names}), "
                f"but {len(args)} are given"
            )
        extents = _extents(self.arguments, args)
        self._check_requirements(extents)
        chosen = [kernel for kernel in self.chain() if value_of(kernel.condition, extents)]
        for kernel in chosen:
            kernel._check_spans(extents)
        empty = ""
        for argument, value in zip(self.arguments, args, strict=True):
            shape = [value_of(extent, extents) for extent in argument.shape]
            check_described(value, argument.name, argument.dtype, shape)
            if 0 in shape and not empty:
                empty = f"argument {argument.name}: {argument.shape[shape.index(0)]} is 0"
        grids = [[value_of(extent, extents) for extent in kernel.extents] for kernel in chosen]
        if all(0 in grid for grid in grids):
            return []
        if empty:
            raise ArgumentError(f"{empty}, and `{self.symbol}` is for at least 1")
        values: dict[str, Any] = {a.name: x for a, x in zip(self.arguments, args, strict=True)}
        for symbol in self.symbols:
            values[symbol.name] = np.dtype(symbol.dtype).type(extents[symbol.name])
        needed = {name for kernel in chosen for name in kernel.parameters}
        for workspace in (each for each in self.workspaces if each.name in needed):
            shape = [value_of(extent, extents) for extent in workspace.shape]
            made = np.zeros if workspace.zero else np.empty
            values[workspace.name] = made(shape, workspace.dtype)
        zero = {workspace.name for workspace in self.workspaces if workspace.zero}
        found = []
        for kernel, (x, y, z) in zip(chosen, grids, strict=True):
            if 0 in (x, y, z):
                told = ", ".join(f"{name} = {value}" for name, value in extents.items())
                raise ArgumentError(f"`{kernel.symbol}` has nothing to do, with {told}")
            taken = kernel.parameters or tuple(a.name for a in self.arguments)
            found.append(
                KernelLaunch(
                    kernel.symbol, kernel.assembly, (x, y, z), kernel.block, kernel.lds_bytes,
                    tuple(values[name] for name in taken),
                    tuple(place for place, name in enumerate(taken) if name in zero),
                )
            )  # fmt: skip
        return found


def _extents(arguments: Sequence[Argument], args: Sequence[Any]) -> dict[str, int]:
    """What the symbols in the shapes are."""
    extents: dict[str, int] = {}
    first: dict[str, str] = {}
    order = ", ".join(argument.name for argument in arguments)
    for argument, value in zip(arguments, args, strict=True):
        symbols = [e for e in argument.shape if isinstance(e, str)]
        if not symbols:
            continue
        shape = np.shape(value)
        if len(shape) != len(argument.shape):
            raise ArgumentError(
                f"argument {argument.name} has {len(argument.shape)} dimensions, but {len(shape)}"
                f" are given; the arguments are ({order})"
            )
        for extent, found in zip(argument.shape, shape, strict=True):
            if not isinstance(extent, str):
                continue
            first.setdefault(extent, argument.name)
            if extents.setdefault(extent, found) != found:
                raise ArgumentError(
                    f"{extent} is {extents[extent]} in {first[extent]}, and {found} in"
                    f" {argument.name}; the arguments are ({order})"
                )
    return extents

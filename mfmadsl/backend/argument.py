"""What a function takes: its arrays, the symbols in their shapes, and workspaces of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tvm import tirx
from tvm.tirx import Expr, PrimFunc

from mfmadsl.backend.extent import OPERATORS, Extent, Formula
from mfmadsl.passes import LoweringError
from mfmadsl.passes.kernel import requirement
from mfmadsl.passes.kernel.last_workgroup import Arrivals
from mfmadsl.passes.tir.expression import OfTwo, scope_of


@dataclass(frozen=True)
class Argument:
    """One kernel argument: a dense row-major array in global memory.

    An extent is a number, or the name of a symbol that is known at run time only. A workspace that
    is `zero` holds zeros when the kernel starts, which leaves them there when it ends.
    """

    name: str
    dtype: str
    shape: tuple[Any, ...]
    zero: bool = False


@dataclass(frozen=True)
class Requirement:
    """What a launch has to hold: `extent` is 0 where it does, and `said` says it in words."""

    said: str
    extent: Extent


@dataclass(frozen=True)
class ExtentSymbol:
    """An extent that is passed to the kernel by value."""

    name: str
    dtype: str


def arguments_of(function: PrimFunc) -> tuple[Argument, ...]:
    """The arrays that a PrimFunc takes. Raises LoweringError on a scalar."""
    arguments = []
    for parameter in function.params:
        shape = getattr(parameter, "shape", None)
        if shape is None:
            raise LoweringError(f"argument {parameter.name} is no buffer")
        arguments.append(
            Argument(parameter.name, str(parameter.dtype), tuple(extent_of(e) for e in shape))
        )
    return tuple(arguments)


def symbols_of(function: PrimFunc) -> tuple[ExtentSymbol, ...]:
    """The variables in the shapes of a PrimFunc's arguments."""
    found: dict[str, ExtentSymbol] = {}
    for parameter in function.params:
        for extent in getattr(parameter, "shape", ()):
            if isinstance(extent, tirx.Var):
                found[extent.name] = ExtentSymbol(extent.name, str(extent.ty.dtype))
    return tuple(found.values())


def requirements_of(function: PrimFunc) -> tuple[Requirement, ...]:
    """What the function's root block says that a launch has to hold."""
    found = requirement.requirements_of(function)
    return tuple(Requirement(said, extent_of(each)) for said, each in found.items())


def workspaces_of(function: PrimFunc) -> tuple[Argument, ...]:
    """The arrays in global memory that a PrimFunc allocates for itself."""
    root = getattr(function.body, "block", None)
    return tuple(
        Argument(buffer.name, str(buffer.dtype), tuple(extent_of(e) for e in buffer.shape))
        for buffer in (root.alloc_buffers if root is not None else ())
        if scope_of(buffer) == "global"
    )


def arrivals_of(found: Sequence[Arrivals]) -> tuple[Argument, ...]:
    """The counts of workgroups that have come, as workspaces."""
    return tuple(Argument(each.name, "int32", (extent_of(each.tiles),), True) for each in found)


def extent_of(expression: Expr | int) -> Extent:
    """An extent as a number, a symbol or a formula. Raises LoweringError if it is none."""
    if isinstance(expression, int | tirx.IntImm):
        return int(expression)
    if isinstance(expression, tirx.Var):
        return str(expression.name)
    if isinstance(expression, tirx.Cast):
        return extent_of(expression.value)
    operator = type(expression).__name__.lower()
    if not isinstance(expression, OfTwo) or operator not in OPERATORS:
        raise LoweringError(f"`{expression}` is no extent that can be computed at the launch")
    return Formula(operator, extent_of(expression.a), extent_of(expression.b))

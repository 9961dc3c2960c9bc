"""What a launch has to hold: relations between extents that a kernel no longer sees.

A function whose extent is 4 * n is scheduled with one symbol in its place, which a launch reads off
the shapes. That it is a multiple of 4 stands in an annotation of the root block.
"""

from __future__ import annotations

from collections.abc import Mapping

from tvm import tirx
from tvm.ir import StringImm
from tvm.s_tir import SBlock, SBlockRealize
from tvm.tirx import AssertStmt, Expr, PrimFunc, SeqStmt, Stmt

from mfmadsl.passes.tir.block import with_parts, with_root

REQUIRES = "mfmadsl.requires"
"""The annotation of a root block: {what is to hold, in words: an expression, 0 where it does}."""


def requirements_of(function: PrimFunc) -> dict[str, Expr]:
    """What a launch of the function has to hold, as `REQUIRES` has it."""
    root = _root(function)
    found = (root.annotations or {}).get(REQUIRES, {}) if root is not None else {}
    return {str(said): expression for said, expression in found.items()}


def with_requirements(function: PrimFunc, added: Mapping[str, Expr]) -> PrimFunc:
    """The function with these, too."""
    root = _root(function)
    if root is None or not added:
        return function
    whole = requirements_of(function) | dict(added)
    return _with_root(function, root, root.body, {**(root.annotations or {}), REQUIRES: whole})


def asserted(function: PrimFunc) -> PrimFunc:
    """The function with assertions, which the host checks, in place of the annotation."""
    root, found = _root(function), requirements_of(function)
    if root is None or not found:
        return function
    checks: list[Stmt] = [
        AssertStmt(
            tirx.EQ(expression, tirx.const(0, str(expression.ty.dtype))), StringImm("ValueError"),
            [StringImm(said)],
        )
        for said, expression in found.items()
    ]  # fmt: skip
    left = {name: value for name, value in root.annotations.items() if name != REQUIRES}
    return _with_root(function, root, SeqStmt([*checks, root.body]), left)


def _root(function: PrimFunc) -> SBlock | None:
    return function.body.block if isinstance(function.body, SBlockRealize) else None


def _with_root(
    function: PrimFunc, root: SBlock, body: Stmt, annotations: Mapping[str, object]
) -> PrimFunc:
    return with_root(function, with_parts(root, body=body, annotations=annotations))

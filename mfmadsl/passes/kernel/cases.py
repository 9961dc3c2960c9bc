"""Cases: several schedules of one product, of which a launch runs the one for its extents.

A product of a symbolic extent is scheduled in several copies, each in a block of its own, a case.
Its annotations say what the extent is, and up to which extents it is taken; one case takes the
rest. Without these passes a function would run all cases, one after another, and be right.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import tvm_ffi
from tvm import tirx
from tvm.ir import StringImm
from tvm.s_tir import SBlock, SBlockRealize
from tvm.tirx import AttrStmt, Buffer, Expr, IfThenElse, PrimFunc, Stmt

from mfmadsl.passes.tir.block import in_sequence, statements, with_parts, with_root
from mfmadsl.passes.tir.error import LoweringError
from mfmadsl.passes.tir.expression import scope_of
from mfmadsl.passes.tir.rewrite import with_body
from mfmadsl.passes.tir.walk import mapped

EXTENT = "mfmadsl.case_extent"
"""The annotation of a case: the expression that tells which one a launch takes."""

PRODUCT = "mfmadsl.case_of"
"""The annotation of a case: what it is a case of, a name that all of them have."""

REST = "mfmadsl.case_rest"
"""The annotation of the case that takes what no other one does."""

UP_TO = "mfmadsl.case_up_to"
"""The annotation of a case: extents, each the largest of those that it is taken for. These begin
after the next smaller extent that is in the annotation of any case of the product."""

WHERE = "mfmadsl.case_where"
"""The annotation of a case: what has to hold beside, for all cases of a product but the rest."""

_CONDITION = "mfmadsl.case_condition"


def case_in(statement: Stmt) -> SBlock | None:
    """The block of a case, if that is what a statement is."""
    if isinstance(statement, SBlockRealize) and EXTENT in (statement.block.annotations or {}):
        return statement.block
    return None


def is_other(statement: Stmt) -> bool:
    """Whether a statement is a case, and not the one that takes the rest."""
    block = case_in(statement)
    return block is not None and REST not in block.annotations


def marked_cases(function: PrimFunc) -> PrimFunc:
    """The function with the condition of each case beside it, until `one_case` uses it.

    Raises LoweringError for annotations that leave open which case a launch takes.
    """
    if not isinstance(function.body, SBlockRealize):
        return function
    root, given = function.body.block, statements(function)
    cases = [block for block in map(case_in, given) if block is not None]
    if not cases:
        return function
    conditions = [_condition(case, _borders(case, cases)) for case in cases]
    found: list[Stmt] = []
    for statement in given:
        block = case_in(statement)
        if block is None:
            found.append(statement)
            continue
        condition = conditions[next(n for n, case in enumerate(cases) if case.same_as(block))]
        name = StringImm(str(block.name_hint))
        found.append(AttrStmt(name, _CONDITION, condition, _plain(block)))
    # A launch is given its workspaces, which are those of the function.
    workspaces = [buffer for case in cases for buffer in case.alloc_buffers if _is_global(buffer)]
    allocated = [*root.alloc_buffers, *workspaces]
    return with_root(function, with_parts(root, body=in_sequence(found), allocated=allocated))


def one_case(function: PrimFunc) -> PrimFunc:
    """The function with each case under its condition. TVM puts no barriers under conditions, so
    that kernels have to have theirs already."""

    def conditional(node: AttrStmt) -> Stmt:
        return IfThenElse(node.value, node.body, None) if node.attr_key == _CONDITION else node

    return with_body(function, mapped(function.body, (AttrStmt, conditional)))


def _borders(case: SBlock, cases: Sequence[SBlock]) -> list[tuple[int, SBlock]]:
    """The largest extents of the cases of one product, growing, each with its case."""
    product = str(case.annotations.get(PRODUCT, ""))
    alike = [each for each in cases if str(each.annotations.get(PRODUCT, "")) == product]
    rest = [each for each in alike if REST in each.annotations]
    if len(rest) != 1:
        raise LoweringError(
            f"block `{case.name_hint}`: {len(rest)} cases of `{product}` take the rest: let one"
            f" have `{REST}`"
        )
    borders = [(_extent(each, limit), each) for each in alike for limit in _limits(each)]
    borders.sort(key=lambda border: border[0])
    for (limit, one), (other, two) in pairwise(borders):
        if limit == other:
            raise LoweringError(
                f"blocks `{one.name_hint}` and `{two.name_hint}`: both are for extents up to"
                f" {limit}: give it to one of them"
            )
    return borders


def _limits(case: SBlock) -> Sequence[object]:
    found = case.annotations.get(UP_TO, ())
    return [found] if isinstance(found, int | tirx.IntImm | str) else list(found)


def _extent(case: SBlock, value: object) -> int:
    if not isinstance(value, int | tirx.IntImm) or isinstance(value, bool) or int(value) < 1:
        raise LoweringError(
            f"block `{case.name_hint}`: `{UP_TO}` is a list of positive integers, not of {value}"
        )
    return int(value)


def _condition(case: SBlock, borders: Sequence[tuple[int, SBlock]]) -> Expr:
    """Whether a case is the one for an extent."""
    extent = case.annotations[EXTENT]
    kind = str(extent.ty.dtype)
    parts: list[Expr] = []
    least = 0
    for limit, taken in borders:
        if taken.same_as(case):
            below = extent <= tirx.const(limit, kind)
            parts.append(tirx.And(extent > tirx.const(least, kind), below) if least else below)
        least = limit
    where = _where([each for _, each in borders if REST not in each.annotations])
    is_rest = REST in case.annotations
    if is_rest:
        parts.append(extent > tirx.const(least, kind))
    found: Expr = parts[0] if parts else tirx.const(0, "bool")
    for part in parts[1:]:
        found = tirx.Or(found, part)
    if where is None:
        return found
    return tirx.Or(found, tirx.Not(where)) if is_rest else tirx.And(found, where)


def _where(cases: Sequence[SBlock]) -> Expr | None:
    """What has to hold for all of these beside."""
    found = [case.annotations.get(WHERE) for case in cases]
    for case, other in zip(cases, found, strict=True):
        if not tvm_ffi.structural_equal(other, found[0]):
            raise LoweringError(
                f"block `{case.name_hint}`: all cases but the rest have the same `{WHERE}`, or none"
            )
    return found[0] if found else None


def _plain(block: SBlock) -> Stmt:
    """The case without its workspaces, and without what only these passes read."""
    own = (EXTENT, PRODUCT, REST, UP_TO, WHERE)
    annotations = {key: value for key, value in block.annotations.items() if key not in own}
    allocated = [buffer for buffer in block.alloc_buffers if not _is_global(buffer)]
    return SBlockRealize([], True, with_parts(block, allocated=allocated, annotations=annotations))


def _is_global(buffer: Buffer) -> bool:
    return scope_of(buffer) == "global"

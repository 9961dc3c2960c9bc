"""Which axes of an attention's second product are what."""

from __future__ import annotations

from collections.abc import Sequence

from tvm import tirx
from tvm.tirx import Expr, IterVar

from mfmadsl.passes.tir.expression import constant, depends
from mfmadsl.schedule.flash_attention.definition import Reduction
from mfmadsl.schedule.flash_attention.described import Axes, Axis, narrow


def axes_of(
    second: Reduction, operands: tuple[Expr, Expr, Expr], depth: IterVar, packed: Sequence[Expr]
) -> Axes:
    """Which axes of the second product are what; of `packed` rows the batch is looked up."""
    q, k, v = operands
    axes = second.nest.block.iter_vars
    places = [_axis(each) for each in axes if each.iter_type == IterVar.DataPar]
    several = [axis for axis in places if constant(axis.extent) != 1]
    columns = [a for a in several if depends(v, a.var) and not depends(q, a.var)
               and not depends(k, a.var)]  # fmt: skip
    if len(columns) > 1:
        raise second.nest.refusal("has columns along several axes")
    rows = [a for a in several if not depends(k, a.var) and not depends(v, a.var)]
    looked_up = [a for a in places if any(a.var.same_as(each) for each in packed)]
    row = max(looked_up or rows, key=_length) if looked_up or rows else _unit("row")
    column = columns[0] if columns else _unit("column")
    batch = tuple(a for a in places if a is not row and a is not column)
    return Axes(batch, row, _axis(second.over), _axis(depth), column)


def _axis(axis: IterVar) -> Axis:
    return Axis(axis.var, narrow(axis.dom.extent))


def _length(axis: Axis) -> float:
    """The extent; what is known at the launch only counts as more than any."""
    extent = constant(axis.extent)
    return float("inf") if extent is None else extent


def _unit(name: str) -> Axis:
    return Axis(tirx.Var(name, "int32"), tirx.const(1, "int32"))

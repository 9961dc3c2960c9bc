"""Groups of rows of small floats whose scales belong to blocks: experts as DeepSeek has them.

    C[i, j] += f32(A[i, k]) * SA[i, k // 128]
               * (f32(B[group[i], j, k]) * SB[group[i], j // 128, k // 128])

Of one group it is a product of scaled blocks: the group of a row is a number there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tvm import tirx
from tvm.ir import Range, TensorLoad
from tvm.tirx import Expr, IterVar, PrimFunc, Var

from mfmadsl.model import ELEMENT_TYPES
from mfmadsl.passes.tir.expression import constant
from mfmadsl.passes.tir.walk import mapped
from mfmadsl.schedule.product.after_groups import after_groups
from mfmadsl.schedule.product.block_scaled import BlockScaledProduct, NoBlocks, scaled_blocks
from mfmadsl.schedule.product.factors import SummedFactors, summed_factors
from mfmadsl.schedule.product.grouped import Groups, check_extents, ends_of, sum_of_groups
from mfmadsl.schedule.product.nest import Nest, loads, same
from mfmadsl.schedule.product.sum_of_products import uses

NARROW = frozenset(name for name in ELEMENT_TYPES if name.startswith(("float4_e", "float6_e")))
"""The types of elements of fewer than eight bits."""


@dataclass(frozen=True)
class ScaledGroups(Groups):
    """A product of scaled blocks for each group: `scaled` is that of the one of number `matrix`,
    with all rows."""

    scaled: BlockScaledProduct
    matrix: Var

    def of_rows(self, rows: int, layers: int) -> BlockScaledProduct:
        """So many products of scaled blocks, of so many rows each."""
        i, j, k = self.axes
        layer = IterVar(Range(0, layers), tirx.Var("s", "int32"), IterVar.DataPar)
        row = IterVar(Range(0, rows), i.var, IterVar.DataPar)
        return replace(self.scaled, axes=(layer, row, j, k))


def scaled_groups(function: PrimFunc) -> ScaledGroups | NoBlocks | None:
    """The first sum of a function of small floats and further factors, of which some are chosen by
    the group of a row.

    Raises ScheduleError, with the name of the block, for elements of fewer than eight bits, and for
    what follows it otherwise than a product of groups.
    """
    if (found := sum_of_groups(function)) is None:
        return None
    nest, table = found
    if (summed := summed_factors(function, nest)) is None:
        return None
    _refuse_narrow(nest, summed)
    group = tirx.Var("group", "int32")
    factors, chosen = _of_group(nest, table, group, summed)
    scaled = scaled_blocks(function, nest, SummedFactors(factors, summed.inside))
    if not isinstance(scaled, BlockScaledProduct):
        return scaled
    a, b = scaled.elements
    if len(scaled.axes) != 3 or chosen or uses(a, group) or not uses(b, group):
        return NoBlocks(
            nest, f"reads `{table.store.buffer.name}`, the group of a row, but not as the matrix of"
            " its second factor", summed.inside,
        )  # fmt: skip
    i, j, k = scaled.axes
    check_extents(nest, (i, j, k))
    if constant(i.dom.extent) is None:
        return NoBlocks(
            nest, "has scales of blocks for a number of rows that is a symbol", scaled.inside
        )
    after = after_groups(function, nest, table, (i, j))
    return ScaledGroups(function, nest, (i, j, k), table, ends_of(table), after, scaled, group)


def _refuse_narrow(nest: Nest, summed: SummedFactors) -> None:
    """Raises ScheduleError for elements that only scaled instructions multiply."""
    for factor in summed.factors:
        load = factor.value if isinstance(factor, tirx.Cast) else None
        if isinstance(load, TensorLoad) and (dtype := str(load.source.dtype)) in NARROW:
            raise nest.refusal(
                f"multiplies {dtype} for each group of rows, which scaled instructions do for one"
                " matrix only: give the elements eight bits, or make weights of bytes of two"
                ' elements, as `quantised_matmul(..., "mxfp4", experts=...)` does'
            )


def _of_group(
    nest: Nest, table: Nest, group: Var, summed: SummedFactors
) -> tuple[tuple[Expr, ...], bool]:
    """(the factors with a number in place of the group of a row of C, whether they read that of
    another row, too)."""
    buffer, row = table.store.buffer, nest.store.indices[0]

    def numbered(load: TensorLoad) -> Expr:
        if load.source.same_as(buffer) and same(list(load.indices), [row]):
            return group
        return load

    found = tuple(mapped(factor, (TensorLoad, numbered)) for factor in summed.factors)
    left = any(load.source.same_as(buffer) for factor in found for load in loads(factor))
    return found, left

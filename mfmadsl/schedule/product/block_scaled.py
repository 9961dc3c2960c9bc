"""Small floats whose scales belong to blocks, as numbers of their own: DeepSeek's fp8.

    C[i, j] += f32(A[i, k]) * SA[i, k // 128] * (f32(B[j, k]) * SB[j // 128, k // 128])

All k of a group share the scales of a row and a column, so the sum of a group is scaled at once.
The factors stand in any order, in the sum or in blocks before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import lcm, prod

from tvm import tirx
from tvm.ir import Range, TensorLoad
from tvm.sym import Analyzer
from tvm.tirx import Expr, IterVar, PrimFunc, Var
from tvm.tirx.analysis import undefined_vars

from mfmadsl.language import library
from mfmadsl.model import ELEMENT_TYPES, Architecture, Intrinsic
from mfmadsl.passes.tir.expression import constant
from mfmadsl.passes.tir.walk import mapped, walk
from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.product.factors import SummedFactors, summed_factors
from mfmadsl.schedule.product.memory import UNKNOWN, Memory, argument_load, memory, stored_memory
from mfmadsl.schedule.product.nest import Nest, check_plain, is_sum, nests, same, substitute
from mfmadsl.schedule.product.sum_of_products import check_init, uses

FLOATS = frozenset(name for name in ELEMENT_TYPES if name.startswith(("float8_e4", "float8_e5")))
"""The types of elements."""

GROUPS = (128, 64, 32)
"""How many neighbouring k are multiplied before their sum is scaled, the most that share scales."""


@dataclass(frozen=True)
class BlockScaledProduct:
    """A sum of products of small floats, each with factors that `group` neighbouring k share.

    `axes` are those of the batch, if there is one, and i, j and k. `elements` are the loads of A
    and B. `scales` are the factors that depend on rows, and on columns, of the group of the number
    `which`.
    """

    function: PrimFunc
    nest: Nest
    axes: tuple[IterVar, ...]
    elements: tuple[TensorLoad, TensorLoad]
    scales: tuple[Expr | None, Expr | None]
    which: Var
    group: int
    inside: tuple[Nest, ...]

    @property
    def types(self) -> tuple[str, str]:
        """The types of the elements of A and B."""
        a, b = self.elements
        return str(a.source.dtype), str(b.source.dtype)

    @property
    def extents(self) -> tuple[int, int, int, int]:
        """s, M, N and K."""
        *batch, m, n, k = (constant(axis.dom.extent) or 0 for axis in self.axes)
        (s,) = batch or [1]
        return s, m, n, k

    @property
    def memories(self) -> tuple[Memory, Memory]:
        """How A and B lie in memory."""
        *_, i, j, k = self.axes
        a, b = (argument_load(self.function, load) for load in self.elements)
        return (
            UNKNOWN if a is None else memory(a, {"i": [i], "k": [k]}),
            UNKNOWN if b is None else memory(b, {"j": [j], "k": [k]}),
        )

    @property
    def result(self) -> Memory:
        """How C lies in memory."""
        *_, i, j, _ = self.axes
        return stored_memory(self.function, self.nest.store, i, j)

    @property
    def alike(self) -> int:
        """A number of groups after which all scales are those of another block."""
        found: list[tirx.FloorDiv] = []
        for scale in self.scales:
            if scale is not None:
                walk(scale, (tirx.FloorDiv, found.append))
        return lcm(*(constant(each.b) or 1 for each in found if each.a.same_as(self.which)))

    def at(self, value: Expr, side: int, s: Expr, row: Expr, along_k: Expr) -> Expr:
        """What is read of A (`side` 0) or B, at a place: an element, or what a group is scaled
        by."""
        *batch, i, j, k = (axis.var for axis in self.axes)
        places = {(i, j)[side]: row, k: along_k, self.which: along_k}
        return substitute(value, {**places, **dict(zip(batch, [s], strict=False))})


@dataclass(frozen=True)
class NoBlocks:
    """A sum of small floats with further factors, and why these are no scales of blocks.

    Where blocks before it compute its factors, those are `inside`, and it is a product of float32.
    """

    nest: Nest
    reason: str
    inside: tuple[Nest, ...]


def block_scaled_product(function: PrimFunc) -> BlockScaledProduct | NoBlocks | None:
    """The first sum of a function that is of small floats and further factors."""
    for nest in nests(function):
        if not is_sum(nest):
            continue
        try:
            found = _found(function, nest)
        except ScheduleError:
            continue  # a product of another kind may be made of it
        if found is not None:
            return found
    return None


def is_multiplied(types: tuple[str, str], chip: Architecture) -> bool:
    """Whether the chip has an instruction that multiplies dense elements of these types."""
    return any(
        isinstance(each, Intrinsic)
        and chip.name in each.chips
        and not each.sparse
        and (each.a.type.name, each.b.type.name) == types
        for each in library().values()
    )


def _found(function: PrimFunc, nest: Nest) -> BlockScaledProduct | NoBlocks | None:
    summed = summed_factors(function, nest)
    return None if summed is None else scaled_blocks(function, nest, summed)


def scaled_blocks(
    function: PrimFunc, nest: Nest, summed: SummedFactors
) -> BlockScaledProduct | NoBlocks | None:
    """What a block that sums these factors is, if they are small floats and others.

    Raises ScheduleError, with the name of the block, for loops that none has.
    """
    elements = [load for factor in summed.factors if (load := _element(factor)) is not None]
    others = [factor for factor in summed.factors if _element(factor) is None]
    if len(elements) != 2 or not others:
        return None
    check_plain(nest)
    check_init(nest, nest.store)

    def unfit(reason: str) -> NoBlocks:
        return NoBlocks(nest, reason, summed.inside)

    axes = nest.block.iter_vars
    sums = [axis for axis in axes if axis.iter_type == IterVar.CommReduce]
    places = [axis for axis in axes if axis.iter_type == IterVar.DataPar]
    if any(constant(axis.dom.extent) is None for axis in axes):
        return unfit("has an extent that is a symbol")
    if len(places) not in (2, 3) or not same(
        list(nest.store.indices), [axis.var for axis in places]
    ):
        return unfit("has other loops than [batch], i and j, or writes C by other indices")
    *_, i, j = (axis.var for axis in places)
    k, parts = _fused(sums)
    if parts:
        elements = [_simplified(substitute(each, parts), k) for each in elements]
        others = [substitute(each, parts) for each in others]
    sides = [
        [each for each in elements if uses(each, own) and not uses(each, other)]
        for own, other in ((i, j), (j, i))
    ]
    if [len(side) for side in sides] != [1, 1] or not all(uses(each, k.var) for each in elements):
        return unfit("has not one element for each of its rows, and one for each of its columns")
    of_columns = [each for each in others if _uses(each, j)]
    of_rows = [each for each in others if not _uses(each, j)]
    if any(_uses(each, i) for each in of_columns):
        return unfit("has a factor that depends on rows and on columns")
    for group in GROUPS:
        which = tirx.Var("which", "int32")
        scales = [_of_group(each, k, which, group) for each in (of_rows, of_columns)]
        if None not in scales:
            ((a,), (b,)), (row, column) = sides, (_product(each or []) for each in scales)
            return BlockScaledProduct(
                function, nest, (*places, k), (a, b), (row, column), which, group,
                summed.inside,
            )  # fmt: skip
    return unfit(f"has a factor that is not the same for {GROUPS[-1]} neighbouring k")


def _fused(sums: Sequence[IterVar]) -> tuple[IterVar, dict[Var, Expr]]:
    """One axis for those that are summed over, and what each of them is by it."""
    if len(sums) == 1:
        return sums[0], {}
    extents = [constant(axis.dom.extent) or 0 for axis in sums]
    k = IterVar(Range(0, prod(extents)), tirx.Var("k", "int32"), IterVar.CommReduce)
    parts: dict[Var, Expr] = {}
    inner = 1
    for axis, extent in zip(reversed(sums), reversed(extents), strict=True):
        parts[axis.var] = k.var // inner % extent
        inner *= extent
    return k, parts


def _simplified(load: TensorLoad, k: IterVar) -> TensorLoad:
    analyzer = Analyzer()
    analyzer.bind(k.var, k.dom)
    return tirx.BufferLoad(load.source, [analyzer.simplify(index) for index in load.indices])


def _element(factor: Expr) -> TensorLoad | None:
    """What is converted to float32, if it has eight bits."""
    if isinstance(factor, tirx.Cast) and isinstance(factor.value, TensorLoad):
        return factor.value if str(factor.value.source.dtype) in FLOATS else None
    return None


def _uses(factor: Expr, variable: Var) -> bool:
    return any(variable.same_as(each) for each in undefined_vars(factor))


def _of_group(factors: Sequence[Expr], k: IterVar, which: Var, group: int) -> list[Expr] | None:
    """The factors for the group of k of a number; None if not all k of a group have the same."""
    inner = tirx.Var("inner", "int32")
    analyzer = Analyzer()
    analyzer.bind(inner, Range(0, group))
    analyzer.bind(which, Range(0, -(-(constant(k.dom.extent) or 0) // group)))

    def at(load: TensorLoad) -> Expr:
        indices = [
            analyzer.simplify(substitute(index, {k.var: which * group + inner}))
            for index in load.indices
        ]
        return tirx.BufferLoad(load.source, indices)

    found = []
    for factor in factors:
        value = mapped(factor, (TensorLoad, at))
        if _uses(value, inner) or _uses(value, k.var):
            return None
        found.append(value)
    return found


def _product(factors: Sequence[Expr]) -> Expr | None:
    whole: Expr | None = None
    for each in factors:
        whole = each if whole is None else whole * each
    return whole

"""Weighted sums that are cut by a tiling: for each product and each sum, an attention's cut."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, reduce

from tvm import tirx
from tvm.script.ir_builder import tirx as script
from tvm.tirx import Buffer, Expr

from mfmadsl.model import Architecture, AttentionTiling
from mfmadsl.passes.tir.expression import loads_of
from mfmadsl.schedule.flash_attention.chain import Chain
from mfmadsl.schedule.flash_attention.described import Attention, Axes, Softmax
from mfmadsl.schedule.flash_attention.loops import named
from mfmadsl.schedule.flash_attention.products import ProductRegisters
from mfmadsl.schedule.flash_attention.score import (
    Score,
    conditions_of,
    masked_where,
    score_of,
    unmasked,
)
from mfmadsl.schedule.flash_attention.wave import Cut
from mfmadsl.schedule.flash_attention.ways import turns_values
from mfmadsl.schedule.flash_attention.weighted_sums.described import WeightedSums
from mfmadsl.schedule.flash_attention.weighted_sums.zeros import parted
from mfmadsl.schedule.product.nest import same


@dataclass(frozen=True)
class Weights:
    """The `values` of all weights where the conditions of `masks` hold, outside of which all are
    zero. `masks` is a score that has no other use."""

    masks: Score
    values: tuple[Expr, ...]

    def conditions(self, axes: Axes, masked: bool) -> list[Expr]:
        """What has to be asked of a place, in steps that have masks and in others."""
        value = self.masks.value
        return conditions_of(value if masked else unmasked(value, axes))


@dataclass(frozen=True)
class SumsCut:
    """Weighted sums that are cut: `whole` has the steps, `products` and `sums` what is multiplied.

    A product's cut is of an attention with its Q and K; a sum's cut is of one with its V.
    """

    found: WeightedSums
    whole: Cut
    products: tuple[Cut, ...]
    sums: tuple[Cut, ...]
    weights: Weights


def weights_of(found: WeightedSums) -> Weights:
    """The weights, and where all are zero.

    Raises ScheduleError where a weight reads an argument that a kernel cannot copy beforehand.
    """
    parts = [parted(each.weight) for each in found.sums]
    everywhere = [
        condition for condition in parts[0][0]
        if all(any(same(condition, other) for other in conditions) for conditions, _ in parts)
    ]  # fmt: skip
    zero = tirx.const(0, "float32")
    values = []
    for conditions, value in parts:
        left = [c for c in conditions if not any(same(c, other) for other in everywhere)]
        values.append(tirx.Select(tirx.all(*left), value, zero) if left else value)
    product = found.products[0].variable
    together = reduce(lambda a, b: a + b, [each.weight for each in found.sums], 0.0 + product)
    score = score_of(attention_like(found, masked_where(everywhere, together)))
    masks = masked_where(conditions_of(score.value), product)
    used = [load for each in (*values, masks) for load in loads_of(each)]
    reads = [each for each in score.reads if any(same(each.load, load) for load in used)]
    return Weights(replace(score, value=masks, reads=tuple(reads)), tuple(values))


def attention_like(found: WeightedSums, score: Expr) -> Attention:
    """An attention of the first product and the first sum."""
    product, sum_of = found.products[0], found.sums[0]
    largest, total = (tirx.Var(name, "float32") for name in ("largest", "total"))
    values = Softmax(product.variable, largest, total, sum_of.summed)
    return Attention(
        found.function, found.axes, values, product.row, product.key, sum_of.value, score,
        sum_of.results,
    )  # fmt: skip


def cut_sums(
    found: WeightedSums, tiling: AttentionTiling, chain: Chain, chip: Architecture
) -> SumsCut:
    """The weighted sums, cut."""
    weights = weights_of(found)
    like = attention_like(found, weights.masks.value)
    whole = Cut(like, tiling, chain, chip, weights.masks)
    of_products, of_sums = (
        tuple(SumCut(each, tiling, chain, chip, weights.masks) for each in several)
        for several in attentions_like(found, weights.masks.value)
    )
    return SumsCut(found, whole, of_products, of_sums, weights)


@dataclass(frozen=True)
class SumCut(Cut):
    """The cut of a product or a sum. V is turned around on its way into the LDS if it goes through
    registers: reads that turn it take longer, and of these kernels the LDS is the limit."""

    @cached_property
    def turns_values(self) -> bool:
        """Whether V lies in the LDS as in memory, and reads turn it around."""
        return self.tiling.stages > 1 and turns_values(self.found, self.chain, self.chip)


def attentions_like(found: WeightedSums, score: Expr) -> tuple[list[Attention], list[Attention]]:
    """An attention of each product, with its Q and K, and of each sum, with its V."""
    like = attention_like(found, score)
    products = [
        replace(like, q=each.row, k=each.key, axes=replace(like.axes, depth=each.depth))
        for each in found.products
    ]
    sums = [
        replace(like, v=each.value, axes=replace(like.axes, column=each.column))
        for each in found.sums
    ]
    return products, sums


@dataclass(frozen=True)
class SumRegisters:
    """The registers of a wave: of each product and each sum, and what weights read."""

    products: tuple[ProductRegisters, ...]
    sums: tuple[ProductRegisters, ...]
    reads: Mapping[str, Buffer]


@dataclass(frozen=True)
class SumTiles:
    """What a step has in the LDS: keys of each product, values of each sum, and what weights
    read."""

    keys: tuple[Buffer, ...]
    values: tuple[Buffer, ...]
    reads: Mapping[str, Buffer]


def sum_registers(cut: SumsCut) -> SumRegisters:
    """The registers of a kernel."""
    whole, dtype = cut.whole, cut.found.dtype
    first, second = whole.chain.first, whole.chain.second

    def held(name: str, shape: tuple[int, ...], each: int, kind: str = dtype) -> Buffer:
        own = (*shape, whole.chip.wave_size, each)
        buffer: Buffer = script.sblock_alloc_buffer(own, kind, scope="warp")
        return named(name, buffer)

    def of_product(number: int, size: int) -> ProductRegisters:
        rows, keys = whole.sizes.queries, whole.sizes.keys
        return ProductRegisters(
            held(f"K{number}_held", (keys, size), first.a.layout.elements_per_lane),
            held(f"Q{number}_held", (size, rows), first.b.layout.elements_per_lane),
            held(f"S{number}", (keys, rows), whole.sums, "float32"),
        )

    def of_sum(number: int, columns: int) -> ProductRegisters:
        rows, steps = whole.sizes.queries, whole.sizes.steps
        return ProductRegisters(
            held(f"V{number}_held", (columns, steps), second.a.layout.elements_per_lane),
            held(f"P{number}", (steps, rows), second.b.layout.elements_per_lane),
            held(f"O{number}_held", (columns, rows), whole.sums, "float32"),
        )

    reads = {}
    for read in whole.score.reads:
        shape = (whole.sizes.keys, whole.sizes.queries) if read.of_keys else (whole.sizes.queries,)
        each = whole.sums if read.of_keys else 1
        reads[read.name] = held(f"{read.name}_held", shape, each, read.dtype)
    return SumRegisters(
        tuple(of_product(n, each.sizes.depth) for n, each in enumerate(cut.products)),
        tuple(of_sum(n, each.sizes.columns) for n, each in enumerate(cut.sums)),
        reads,
    )


def sum_tiles(cut: SumsCut, suffix: str) -> SumTiles:
    """The tiles of one loop over keys, which it has for itself."""
    whole, keys = cut.whole, cut.whole.tiling.keys

    def shared(name: str, rows: int, columns: int, dtype: str = cut.found.dtype) -> Buffer:
        buffer: Buffer = script.sblock_alloc_buffer((rows, columns), dtype, scope="shared")
        return named(f"{name}{suffix}", buffer)

    reads = {
        read.name: shared(
            f"{read.name}_tile", whole.tiling.block if read.of_queries else 1, keys, read.dtype
        )
        for read in whole.score.reads if read.of_keys
    }  # fmt: skip
    return SumTiles(
        tuple(
            shared(f"K{n}_tile", keys, each.sizes.depth * whole.chain.first.k)
            for n, each in enumerate(cut.products)
        ),
        tuple(shared(f"V{n}_tile", *each.values_in_lds) for n, each in enumerate(cut.sums)),
        reads,
    )

"""The two products of an attention's step: the scores of the next one, and what V adds."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from tvm import tirx
from tvm.script.ir_builder import tirx as script
from tvm.tirx import Buffer, Expr

from mfmadsl.model.pack import Packed
from mfmadsl.schedule.flash_attention.chain import slot
from mfmadsl.schedule.flash_attention.loops import block, loops
from mfmadsl.schedule.flash_attention.moves import (
    copy_first_keys,
    load_first_keys,
    load_reads,
    load_tile,
)
from mfmadsl.schedule.flash_attention.steps import KeySteps
from mfmadsl.schedule.flash_attention.wave import Cut, Tiles, WavePlace, WaveRegisters

_DEPTH_AT_ONCE = 4  # fragments of K that a register step loads
_STEPS_AT_ONCE = 2  # and of V, of each tile of columns


@dataclass(frozen=True)
class ProductRegisters:
    """The registers of a product: its factors, K of keys and Q of queries, or V and P; its sums."""

    a: Buffer
    b: Buffer
    c: Buffer


def first_scores(cut: Cut, place: WavePlace, held: WaveRegisters, steps: KeySteps) -> None:
    """S of the first step."""
    load_reads(cut, place, held.reads, steps)
    first_product(cut, place, ProductRegisters(held.k, held.q, held.s), steps)


def first_product(
    cut: Cut, place: WavePlace, held: ProductRegisters, steps: KeySteps, suffix: str = "",
    through_lds: bool = True,
) -> None:  # fmt: skip
    """The product of the first step's keys, which come through the LDS where several waves take
    them."""
    sizes, first, tile = cut.sizes, cut.chain.first, None
    if through_lds and cut.tiling.waves > 1:
        tile = copy_first_keys(cut, place, steps, f"K{suffix}_first")
        # TVM would not put it where there may be no key.
        script.evaluate(tirx.call_intrin("int32", "tirx.tvm_storage_sync", "shared"))
    for (x,) in loops(sizes.keys):
        load_first_keys(cut, place, held.a, x, steps, tile)
        for (n,) in loops(sizes.queries):
            _zero(f"S_first_zero{suffix}", cut, held.c, (x, n))
        for t, n in loops(sizes.depth, sizes.queries):
            _multiply(f"S_first{suffix}", held, (x, n, t), first)


def next_scores(cut: Cut, held: WaveRegisters, tiles: Tiles, suffix: str) -> None:
    """S of the following step, of the keys in the LDS."""
    next_product(cut, ProductRegisters(held.k, held.q, held.s), tiles.k, suffix)


def next_product(cut: Cut, held: ProductRegisters, keys: Buffer, suffix: str) -> None:
    """The product of the keys that a tile in the LDS has."""
    sizes, first, once = cut.sizes, cut.chain.first, gcd(cut.sizes.depth, _DEPTH_AT_ONCE)
    for (x,) in loops(sizes.keys):
        for (n,) in loops(sizes.queries):
            _zero(f"S_zero{suffix}", cut, held.c, (x, n))
        for (group,) in loops(sizes.depth // once):
            for (inside,) in loops(once):
                tile = [x, group * once + inside]
                load_tile(f"K_load{suffix}", held.a, tile, keys, first.a)
            for inside, n in loops(once, sizes.queries):
                place = x, n, group * once + inside
                _multiply(f"S{suffix}", held, place, first)


def attend(cut: Cut, held: WaveRegisters, tiles: Tiles, suffix: str) -> None:
    """Add the product of V and P to O."""
    add_product(cut, ProductRegisters(held.v, held.p, held.o), tiles.v, suffix)


def add_product(cut: Cut, held: ProductRegisters, values: Buffer, suffix: str) -> None:
    """Add the product of the values that a tile in the LDS has, and their weights."""
    sizes, second, once = cut.sizes, cut.chain.second, gcd(cut.sizes.steps, _STEPS_AT_ONCE)
    for (group,) in loops(sizes.steps // once):
        for x, inside in loops(sizes.columns, once):
            tile = [x, group * once + inside]
            load_tile(f"V_load{suffix}", held.a, tile, values, second.a, cut.turns_values)
        for inside, x, n in loops(once, sizes.columns, sizes.queries):
            place = x, n, group * once + inside
            _multiply(f"O{suffix}", held, place, second)


def _zero(name: str, cut: Cut, sums: Buffer, tile: tuple[Expr, Expr]) -> None:
    operand = cut.chain.intrinsic.c
    outer = list(zip(sums.shape[:2], tile, strict=True))
    with block(name, outer, [operand.layout.rows, operand.layout.columns]) as ((x, n), (i, j)):
        script.buffer_store(sums, tirx.const(0, "float32"), [x, n, *slot(operand, i, j)])


def _multiply(
    name: str, held: ProductRegisters, place: tuple[Expr, Expr, Expr], pack: Packed
) -> None:
    """c[x, n] += a[x, t] x b[t, n], of tiles."""
    a, b, c = held.a, held.b, held.c
    extents = [a.shape[0], b.shape[1], a.shape[1]]
    shape = [pack.intrinsic.m, pack.intrinsic.n, pack.k]
    outer = list(zip(extents, place, strict=True))
    with block(name, outer, shape, summed=True) as ((x, n, t), (i, j, k)):
        left = a[(x, t, *slot(pack.a, i, k))].astype("float32")
        right = b[(t, n, *slot(pack.b, k, j))].astype("float32")
        own = (x, n, *slot(pack.intrinsic.c, i, j))
        script.buffer_store(c, c[own] + left * right, list(own))

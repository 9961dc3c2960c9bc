"""What a wave of an attention's kernel has: its place, its registers, its tiles in the LDS."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from math import ceil

from tvm import tirx
from tvm.script.ir_builder import tirx as script
from tvm.tirx import Buffer, Expr, Var

from mfmadsl.model import Architecture, AttentionTiling
from mfmadsl.passes.tir.expression import constant, widened
from mfmadsl.schedule.flash_attention.chain import Chain, at
from mfmadsl.schedule.flash_attention.described import Attention, at_places, narrow
from mfmadsl.schedule.flash_attention.loops import bound, named
from mfmadsl.schedule.flash_attention.score import Score, ScoreRead, Seen, seen_keys
from mfmadsl.schedule.flash_attention.ways import turns_values

CHAINS = 4
"""Maxima and sums that a lane keeps at a time of a step's scores: each of them waits for itself."""

_HALF = "float16"
_RAISED = {_HALF: 15, "float8_e4m3fn": 7, "float8_e4m3fnuz": 7, "float8_e5m2": 15,
           "float8_e5m2fnuz": 15}  # fmt: skip
"""Powers of 2 that a type has: an exponential is at most 1."""


@dataclass(frozen=True)
class Sizes:
    """How many tiles there are of a wave's queries, a step's keys, the depth, the second product's
    sum over a step, and the columns of V."""

    queries: int
    keys: int
    depth: int
    steps: int
    columns: int


@dataclass(frozen=True)
class Cut:
    """An attention that is cut by a tiling."""

    found: Attention
    tiling: AttentionTiling
    chain: Chain
    chip: Architecture
    score: Score

    @cached_property
    def sizes(self) -> Sizes:
        """The tiles of a wave."""
        intrinsic, tiling = self.chain.intrinsic, self.tiling
        depth = constant(self.found.axes.depth.extent)
        columns = constant(self.found.axes.column.extent)
        assert depth is not None
        assert columns is not None
        return Sizes(
            tiling.rows // intrinsic.n,
            tiling.keys // intrinsic.m,
            ceil(depth / self.chain.first.k),
            tiling.keys // self.chain.second.k,
            ceil(columns / intrinsic.m),
        )

    @cached_property
    def seen(self) -> Seen:
        """The keys that a query sees."""
        return seen_keys(self.score.value, self.found.axes)

    def keys_of(self, batch: Mapping[Var, Expr]) -> Expr:
        """How many keys a batch has."""
        extent, count = self.found.axes.key.extent, self.score.count
        if count is None:
            return extent
        own = at_places(count, batch)
        wide = extent if own.ty == extent.ty else widened(extent)
        return tirx.max(narrow(tirx.min(wide, own)), 0)

    @cached_property
    def parts(self) -> Expr:
        """How many workgroups share the keys of some queries: of keys that are counted at the
        launch, no more than there are steps."""
        keys, most = self.found.axes.key.extent, self.tiling.splits
        if constant(keys) is not None:
            return tirx.const(most, "int32")
        steps = tirx.floordiv(keys + (self.tiling.keys - 1), self.tiling.keys)
        return tirx.max(tirx.min(steps, most), 1)

    @cached_property
    def turns_values(self) -> bool:
        """Whether V lies in the LDS as in memory, and reads turn it around."""
        return turns_values(self.found, self.chain, self.chip)

    @property
    def values_in_lds(self) -> tuple[int, int]:
        """The rows and columns of a tile of V in the LDS."""
        columns, keys = self.sizes.columns * self.chain.intrinsic.m, self.tiling.keys
        return (keys, columns) if self.turns_values else (columns, keys)

    @property
    def raised(self) -> int:
        """The power of 2 that exponentials are multiplied with until all are added up.

        Of weights of eight bits, and where products take denormal halves for zero, many small ones
        would be lost else.
        """
        dtype = self.found.dtype
        return 0 if dtype == _HALF and not self.chip.flushes_halves else _RAISED.get(dtype, 0)

    @property
    def subtracts(self) -> bool:
        """Whether the largest score is subtracted before the multiplication, which takes two
        instructions: of sums that are raised, and with factors that are as good as infinite."""
        return bool(self.raised) or not 2.0**-90 < self.score.exponent < 2.0**90

    @property
    def sums(self) -> int:
        """Elements of a tile of sums that a lane has."""
        return self.chain.intrinsic.c.layout.elements_per_lane

    @contextmanager
    def lanes(self) -> Iterator[Expr]:
        """A loop over the lanes of a wave."""
        with bound(self.chip.wave_size, "threadIdx.x", "lane") as lane:
            yield lane

    def key_of(self, row: Expr) -> Expr:
        """The key, from the first of a step on, that is in a row of S."""
        period = self.chain.period
        if all(key == n for n, key in enumerate(self.chain.keys)):
            return row
        own = at(self.chain.key_of_row, row=tirx.floormod(row, period))
        return tirx.floordiv(row, period) * period + own

    def row(self, place: WavePlace, n: Expr, lane: Expr) -> Expr:
        """The query of a lane's sums in one of its wave's tiles."""
        return place.row + self.row_of_wave(n, lane)

    def row_of_wave(self, n: Expr, lane: Expr) -> Expr:
        """That query, from the first one of the wave on."""
        return n * self.chain.intrinsic.n + at(self.chain.query, lane=lane)


@dataclass(frozen=True)
class WavePlace:
    """A wave of a workgroup: the batch that it is in and how many keys and queries that has, the
    part of the keys that it takes, the first query of both, and the place of its own in the
    workgroup."""

    batch: Mapping[Var, Expr]
    keys: Expr
    rows: Expr
    split: Expr
    group_row: Expr
    row: Expr
    own_row: Expr


@dataclass(frozen=True)
class WaveRegisters:
    """The buffers of a wave: operands, sums, and of each query the largest score, what it was one
    step before, by what older sums became less, what scores are multiplied with and what is added
    then, by how much that is off and was one step before, and sums of exponentials.

    `reads` are what scores read of other arguments, by the names of the reads.
    """

    q: Buffer
    k: Buffer
    v: Buffer
    s: Buffer
    p: Buffer
    o: Buffer
    largest: Buffer
    before: Buffer
    rescale: Buffer
    factor: Buffer
    offset: Buffer
    off: Buffer
    off_before: Buffer
    total: Buffer
    partial: Buffer
    reads: Mapping[str, Buffer]


@dataclass(frozen=True)
class Tiles:
    """What a step has in the LDS: of K, of V, and of what scores read of other arguments."""

    k: Buffer
    v: Buffer
    reads: Mapping[str, Buffer]


def batch_places(cut: Cut, number: Expr) -> dict[Var, Expr]:
    """The batch axes, of one number for all of them."""
    found: dict[Var, Expr] = {}
    for axis in reversed(cut.found.axes.batch):
        found[axis.var] = tirx.floormod(number, axis.extent)
        number = tirx.floordiv(number, axis.extent)
    return found


def registers(cut: Cut) -> WaveRegisters:
    """The registers of a kernel."""
    sizes, dtype, chain = cut.sizes, cut.found.dtype, cut.chain
    first, second = chain.first, chain.second

    def held(name: str, shape: Sequence[int], each: int, kind: str = dtype) -> Buffer:
        whole = (*shape, cut.chip.wave_size, each)
        buffer: Buffer = script.sblock_alloc_buffer(whole, kind, scope="warp")
        return named(name, buffer)

    def of_query(name: str, each: int = 1) -> Buffer:
        return held(name, (sizes.queries,), each, "float32")

    def of_read(read: ScoreRead) -> Buffer:
        if not read.of_keys:
            return held(f"{read.name}_held", (sizes.queries,), 1, read.dtype)
        return held(f"{read.name}_held", (sizes.keys, sizes.queries), cut.sums, read.dtype)

    return WaveRegisters(
        held("Q_held", (sizes.depth, sizes.queries), first.b.layout.elements_per_lane),
        held("K_held", (sizes.keys, sizes.depth), first.a.layout.elements_per_lane),
        held("V_held", (sizes.columns, sizes.steps), second.a.layout.elements_per_lane),
        held("S", (sizes.keys, sizes.queries), cut.sums, "float32"),
        held("P", (sizes.steps, sizes.queries), second.b.layout.elements_per_lane),
        held("O_held", (sizes.columns, sizes.queries), cut.sums, "float32"),
        of_query("largest"),
        of_query("before"),
        of_query("rescale"),
        of_query("factor"),
        of_query("offset"),
        of_query("off"),
        of_query("off_before"),
        of_query("total"),
        of_query("partial", CHAINS),
        {read.name: of_read(read) for read in cut.score.reads},
    )


def tiles(cut: Cut, suffix: str) -> Tiles:
    """The tiles of one loop over keys, which it has for itself."""
    sizes, chain, keys = cut.sizes, cut.chain, cut.tiling.keys

    def shared(name: str, rows: int, columns: int, dtype: str = cut.found.dtype) -> Buffer:
        buffer: Buffer = script.sblock_alloc_buffer((rows, columns), dtype, scope="shared")
        return named(f"{name}{suffix}", buffer)

    return Tiles(
        shared("K_tile", keys, sizes.depth * chain.first.k),
        shared("V_tile", *cut.values_in_lds),
        {
            read.name: shared(
                f"{read.name}_tile", cut.tiling.block if read.of_queries else 1, keys, read.dtype
            )
            for read in cut.score.reads if read.of_keys
        },
    )  # fmt: skip

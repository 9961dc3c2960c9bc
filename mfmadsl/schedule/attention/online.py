"""Attention written out as one kernel: the softmax is kept up to date while it walks over the keys.

For each query a lane keeps the largest score so far and the sum of exponentials. A step makes a tile
of scores, S = K x Q^T; where the largest grows, what is summed up so far becomes less in proportion.
The next step's S is made before this one's product with V, so that its exponentials are computed
while the matrix cores are busy. S, its exponentials P and the sums O stay in registers.

The function has blocks of single products, loads and copies, for a schedule to tensorize and bind;
what a lane does with its own registers is written for the lane.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from math import ceil, gcd, prod
from typing import TypeAlias, TypeVar

import tvm_ffi
from tvm import tirx
from tvm.script.ir_builder import IRBuilder
from tvm.script.ir_builder import tirx as T
from tvm.sym import Analyzer
from tvm.tirx import Buffer, BufferStore, Expr, IterVar, PrimFunc, Var

from mfmadsl.model import Architecture, Operand
from mfmadsl.model.pack import Packed
from mfmadsl.passes.tir.device import device, intrinsic
from mfmadsl.passes.tir.expression import constant, loads_of, substitute
from mfmadsl.schedule.attention.chain import Chain, at
from mfmadsl.schedule.attention.described import Attention, Softmax
from mfmadsl.schedule.attention.score import Score, seen_keys
from mfmadsl.schedule.attention.tiling import AttentionTiling
from mfmadsl.schedule.product.nest import is_number, same

STEPS = "keys"
"""The loop over steps of keys."""

_CHAINS = 4
"""Maxima and sums that a lane keeps at a time of a step's scores: each of them waits for itself."""


_INVERSE = tirx.Var("inverse", "float32")
"""Of the sum of exponentials, in results."""

Named = TypeVar("Named")
Start: TypeAlias = Callable[[Expr], Expr]
"""The first key of a step, by its number."""


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
class Registers:
    """The buffers of a wave, and the tiles of K and V in the LDS."""

    q: Buffer
    k: Buffer
    v: Buffer
    s: Buffer
    p: Buffer
    o: Buffer
    largest: Buffer
    before: Buffer
    least: Buffer
    rescale: Buffer
    total: Buffer
    partial: Buffer
    k_tile: Buffer
    v_tile: Buffer


@dataclass(frozen=True)
class Place:
    """A wave of a workgroup: the batch that it is in, and its first query."""

    batch: Mapping[Var, Expr]
    group_row: Expr
    row: Expr


@dataclass(frozen=True)
class Online:
    """The function of an attention that is cut by a tiling."""

    found: Attention
    tiling: AttentionTiling
    chain: Chain
    chip: Architecture
    score: Score

    def function(self) -> PrimFunc:
        """The parameters and the name are those of the attention's own function."""
        source = self.found.function
        with IRBuilder() as builder:
            with T.prim_func(s_tir=True):
                T.func_name("main")
                T.func_attr(dict(source.attrs))
                for parameter in source.params:
                    T.arg(parameter.name, parameter)
                self._kernel()
        return builder.get()

    # What the tiles are.

    @cached_property
    def _sizes(self) -> Sizes:
        intrinsic, tiling = self.chain.intrinsic, self.tiling
        depth = constant(self.found.axes.depth.dom.extent)
        columns = constant(self.found.axes.column.dom.extent)
        assert depth is not None and columns is not None
        return Sizes(
            tiling.rows // intrinsic.n,
            tiling.keys // intrinsic.m,
            ceil(depth / self.chain.first.k),
            tiling.keys // self.chain.second.k,
            ceil(columns / intrinsic.m),
        )

    def _kernel(self) -> None:
        axes, rows = self.found.axes, self.found.axes.row.dom.extent
        groups = tirx.floordiv(rows + (self.tiling.block - 1), self.tiling.block)
        batches = prod((axis.dom.extent for axis in axes.batch), start=tirx.const(1, "int32"))
        with (
            _bound(batches, "blockIdx.y", "batch") as batch,
            _bound(groups, "blockIdx.x", "group") as group,
            _bound(self.tiling.waves, "threadIdx.y", "wave") as wave,
            T.sblock("attention"),
        ):
            b, g, w = (
                _named(name, T.axis.spatial(extent, loop))
                for name, extent, loop in (
                    ("b", batches, batch), ("g", groups, group), ("w", self.tiling.waves, wave)
                )
            )  # fmt: skip
            first = g * self.tiling.block
            place = Place(self._batch(b), first, first + w * self.tiling.rows)
            self._walk(place, self._registers())

    def _batch(self, number: Expr) -> dict[Var, Expr]:
        """The batch axes of one number for all of them."""
        found: dict[Var, Expr] = {}
        for axis in reversed(self.found.axes.batch):
            found[axis.var] = tirx.floormod(number, axis.dom.extent)
            number = tirx.floordiv(number, axis.dom.extent)
        return found

    def _registers(self) -> Registers:
        sizes, dtype, chain = self._sizes, self.found.dtype, self.chain
        lanes = chain.intrinsic.c.layout.lanes
        first, second = chain.first, chain.second
        sums = chain.intrinsic.c.layout.elements_per_lane

        def held(name: str, shape: Sequence[int], each: int, kind: str = dtype) -> Buffer:
            buffer = T.sblock_alloc_buffer((*shape, lanes, each), kind, scope="warp")
            return _named(name, buffer)

        def shared(name: str, shape: tuple[int, int]) -> Buffer:
            return _named(name, T.sblock_alloc_buffer(shape, dtype, scope="shared"))

        return Registers(
            held("Q_held", (sizes.depth, sizes.queries), first.b.layout.elements_per_lane),
            held("K_held", (sizes.keys, sizes.depth), first.a.layout.elements_per_lane),
            held("V_held", (sizes.columns, sizes.steps), second.a.layout.elements_per_lane),
            held("S", (sizes.keys, sizes.queries), sums, "float32"),
            held("P", (sizes.steps, sizes.queries), second.b.layout.elements_per_lane),
            held("O_held", (sizes.columns, sizes.queries), sums, "float32"),
            held("largest", (sizes.queries,), 1, "float32"),
            held("before", (sizes.queries,), 1, "float32"),
            held("least", (sizes.queries,), 1, "float32"),
            held("rescale", (sizes.queries,), 1, "float32"),
            held("total", (sizes.queries,), 1, "float32"),
            held("partial", (sizes.queries,), _CHAINS, "float32"),
            shared("K_tile", (self.tiling.keys, sizes.depth * first.k)),
            shared("V_tile", (sizes.columns * chain.intrinsic.m, self.tiling.keys)),
        )

    # The kernel, in order.

    def _walk(self, place: Place, held: Registers) -> None:
        start, count = self._steps(place)

        def key(step: Expr) -> Expr:
            return start + step * self.tiling.keys

        def next_key(step: Expr) -> Expr:
            return start + (step + 1) * self.tiling.keys

        self._load_queries(place, held)
        self._clear(held)
        self._first_scores(place, held, start)
        self._softmax(place, held, start)
        with T.serial(0, count) as step:
            _named(STEPS, step)
            self._copy_keys(place, held, count, step, next_key)
            self._copy_values(place, held, count, step, key)
            self._rescale(held)
            self._next_scores(held)
            self._attend(held)
            self._softmax(place, held, next_key(step))
        self._finish(place, held)

    def _steps(self, place: Place) -> tuple[Expr, Expr]:
        """The first key of the first step, and how many steps there are."""
        axes, keys = self.found.axes, self.tiling.keys
        seen = seen_keys(self.score.value, axes.key.var, axes.row.var)
        last_row = tirx.min(place.group_row + (self.tiling.block - 1), axes.row.dom.extent - 1)
        end, start = axes.key.dom.extent, tirx.const(0, "int32")
        if seen.end is not None:
            there = substitute(seen.end, {**place.batch, axes.row.var: last_row})
            end = tirx.min(end, there)
        if seen.first is not None:
            there = substitute(seen.first, {**place.batch, axes.row.var: place.group_row})
            start = tirx.floordiv(tirx.max(there, 0), keys) * keys
        steps = tirx.floordiv(tirx.max(end - start, 0) + (keys - 1), keys)
        simplify = Analyzer().simplify
        return simplify(start), simplify(steps)

    def _load_queries(self, place: Place, held: Registers) -> None:
        layout, tile = self.chain.first.b.layout, self.chain.first.k
        _, k, column = layout.inverse("lane", "register")
        with self._lanes() as lane:
            for t, n, r in _loops(self._sizes.depth, self._sizes.queries, layout.elements_per_lane):
                row = place.row + n * self.chain.intrinsic.n + at(column, lane=lane, register=r)
                depth = t * tile + at(k, lane=lane, register=r)
                T.buffer_store(held.q, self._query(place, row, depth), [t, n, lane, r])

    def _clear(self, held: Registers) -> None:
        sizes, sums = self._sizes, self.chain.intrinsic.c.layout.elements_per_lane
        zero = tirx.const(0, "float32")
        with self._lanes() as lane:
            for c, n, r in _loops(sizes.columns, sizes.queries, sums):
                T.buffer_store(held.o, zero, [c, n, lane, r])
            for (n,) in _loops(sizes.queries):
                T.buffer_store(held.total, zero, [n, lane, 0])
                lowest = tirx.const(self.score.lowest, "float32")
                T.buffer_store(held.largest, lowest, [n, lane, 0])
                for (x,) in _loops(_CHAINS):
                    T.buffer_store(held.partial, zero, [n, lane, x])

    def _first_scores(self, place: Place, held: Registers, start: Expr) -> None:
        """S of the first step, of keys that come from memory as they are needed."""
        first, sizes = self.chain.first, self._sizes
        _, row, k = first.a.layout.inverse("lane", "register")
        for (x,) in _loops(sizes.keys):
            with self._lanes() as lane:
                for t, r in _loops(sizes.depth, first.a.layout.elements_per_lane):
                    of_tile = x * self.chain.intrinsic.m + at(row, lane=lane, register=r)
                    depth = t * first.k + at(k, lane=lane, register=r)
                    element = self._key(place, start + self._key_of(of_tile), depth)
                    T.buffer_store(held.k, element, [x, t, lane, r])
            for (n,) in _loops(sizes.queries):
                self._zero("S_first_zero", held, [x, n])
            for t, n in _loops(sizes.depth, sizes.queries):
                self._multiply("S_first", (held.k, held.q, held.s), (x, n, t), first)

    def _next_scores(self, held: Registers) -> None:
        """S of the next step, of the keys in the LDS."""
        first, sizes, once = self.chain.first, self._sizes, _at_once(self._sizes.depth, 4)
        for (x,) in _loops(sizes.keys):
            for (n,) in _loops(sizes.queries):
                self._zero("S_zero", held, [x, n])
            for (group,) in _loops(sizes.depth // once):
                for (inside,) in _loops(once):
                    self._load("K_load", held.k, [x, group * once + inside], held.k_tile, first.a)
                for inside, n in _loops(once, sizes.queries):
                    t = group * once + inside
                    self._multiply("S", (held.k, held.q, held.s), (x, n, t), first)

    def _softmax(self, place: Place, held: Registers, start: Expr) -> None:
        """The exponentials of S, whose first key is `start`, as P; the largest and the sum so far."""
        sizes, factor = self._sizes, tirx.const(self.score.exponent, "float32")
        sums = self.chain.intrinsic.c.layout.elements_per_lane
        factors = self.chain.second.b.layout.elements_per_lane
        with self._lanes() as lane:
            for j, n, r in _loops(sizes.keys, sizes.queries, sums):
                score = self._masked(place, start, (j, n, lane, r), held)
                if score is not None:
                    T.buffer_store(held.s, score, [j, n, lane, r])
            for (n,) in _loops(sizes.queries):
                self._reduce(held, n, lane, tirx.max)
                self._exchange(held.partial, n, lane, tirx.max)
                T.buffer_store(held.before, held.largest[n, lane, 0], [n, lane, 0])
                new = tirx.max(held.largest[n, lane, 0], held.partial[n, lane, 0])
                T.buffer_store(held.largest, new, [n, lane, 0])
                less = held.before[n, lane, 0] - held.largest[n, lane, 0]
                T.buffer_store(held.rescale, _exp2(less * factor), [n, lane, 0])
                least = held.largest[n, lane, 0] * tirx.const(-self.score.exponent, "float32")
                T.buffer_store(held.least, least, [n, lane, 0])
                for j, r in _loops(sizes.keys, sums):
                    power = _fma(held.s[j, n, lane, r], factor, held.least[n, lane, 0])
                    T.buffer_store(held.s, _exp2(power), [j, n, lane, r])
                self._reduce(held, n, lane, lambda a, b: a + b)
                for (x,) in _loops(sizes.keys * sums):
                    element = held.s[_slot(x, n, lane, sums)].astype(self.found.dtype)
                    T.buffer_store(held.p, element, list(_slot(x, n, lane, factors)))

    def _masked(
        self, place: Place, start: Expr, slot: tuple[Expr, Expr, Expr, Expr], held: Registers
    ) -> Expr | None:
        """What the workload makes of an element of S; None where that is the element itself.

        Keys behind the last one are masked, and nothing is read for them and for queries behind
        the last.
        """
        axes, (j, n, lane, r) = self.found.axes, slot
        of_tile = j * self.chain.intrinsic.m + at(self.chain.row, lane=lane, register=r)
        key = start + self._key_of(of_tile)
        row = self._row(place, n, lane)
        product = held.s[j, n, lane, r]
        places = {self.found.values.product: product, axes.row.var: row, axes.key.var: key}
        value = substitute(self.score.value, {**places, **place.batch})
        reads = any(not load.source.same_as(held.s) for load in loads_of(value))
        inside = []
        if reads or not _divides(self.tiling.keys, axes.key.dom.extent):
            inside.append(key < axes.key.dom.extent)
        if reads and not _divides(self.tiling.block, axes.row.dom.extent):
            inside.append(row < axes.row.dom.extent)
        if not inside:
            return None if value.same_as(product) or self._is_plain else value
        masked = tirx.const(float("-inf"), "float32")
        choose = tirx.if_then_else if reads else tirx.Select
        return choose(tirx.all(*inside), value, masked)

    @cached_property
    def _is_plain(self) -> bool:
        return bool(self.score.value.same_as(self.found.values.product))

    def _row(self, place: Place, n: Expr, lane: Expr) -> Expr:
        """The query of a lane's sums in one of its wave's tiles."""
        return place.row + n * self.chain.intrinsic.n + at(self.chain.query, lane=lane)

    def _reduce(
        self, held: Registers, n: Expr, lane: Expr, both: Callable[[Expr, Expr], Expr]
    ) -> None:
        """Reduce a lane's scores of a query to one, in several chains."""
        sums = self.chain.intrinsic.c.layout.elements_per_lane
        for (x,) in _loops(_CHAINS):
            T.buffer_store(held.partial, held.s[_slot(x, n, lane, sums)], [n, lane, x])
        for (x,) in _loops(self._sizes.keys * sums - _CHAINS):
            chain = tirx.floormod(x, _CHAINS)
            next_one = both(held.partial[n, lane, chain], held.s[_slot(x + _CHAINS, n, lane, sums)])
            T.buffer_store(held.partial, next_one, [n, lane, chain])
        for (x,) in _loops(_CHAINS - 1):
            joined = both(held.partial[n, lane, 0], held.partial[n, lane, x + 1])
            T.buffer_store(held.partial, joined, [n, lane, 0])

    def _exchange(
        self, buffer: Buffer, n: Expr, lane: Expr, both: Callable[[Expr, Expr], Expr]
    ) -> None:
        """Reduce over the lanes that have a query: each of them gets the result."""
        for distance in self.chain.distances:
            bits = tirx.reinterpret("int32", buffer[n, lane, 0])
            other = device("int32", f"other.half.of.{2 * distance}", bits)
            joined = both(buffer[n, lane, 0], tirx.reinterpret("float32", other))
            T.buffer_store(buffer, joined, [n, lane, 0])

    def _rescale(self, held: Registers) -> None:
        """Bring the sums so far in proportion to what the largest score is now."""
        sizes, sums = self._sizes, self.chain.intrinsic.c.layout.elements_per_lane
        with self._lanes() as lane:
            for (n,) in _loops(sizes.queries):
                total = held.total[n, lane, 0] * held.rescale[n, lane, 0] + held.partial[n, lane, 0]
                T.buffer_store(held.total, total, [n, lane, 0])
            for c, n, r in _loops(sizes.columns, sizes.queries, sums):
                less = held.o[c, n, lane, r] * held.rescale[n, lane, 0]
                T.buffer_store(held.o, less, [c, n, lane, r])

    def _attend(self, held: Registers) -> None:
        """Add the product of V and P to O."""
        second, sizes, once = self.chain.second, self._sizes, _at_once(self._sizes.steps, 2)
        for (group,) in _loops(sizes.steps // once):
            for x, inside in _loops(sizes.columns, once):
                self._load("V_load", held.v, [x, group * once + inside], held.v_tile, second.a)
            for inside, x, n in _loops(once, sizes.columns, sizes.queries):
                t = group * once + inside
                self._multiply("O", (held.v, held.p, held.o), (x, n, t), second)

    def _finish(self, place: Place, held: Registers) -> None:
        """Store the results."""
        sizes, sums = self._sizes, self.chain.intrinsic.c.layout.elements_per_lane
        axes, values = self.found.axes, self.found.values
        zero = tirx.const(0, "float32")
        with self._lanes() as lane:
            for (n,) in _loops(sizes.queries):
                self._exchange(held.total, n, lane, lambda a, b: a + b)
                total = held.total[n, lane, 0]
                inverse = tirx.Select(zero < total, tirx.const(1, "float32") / total, zero)
                T.buffer_store(held.partial, inverse, [n, lane, 0])
            for result in self.found.results:
                extents = (sizes.columns, sizes.queries, sums) if result.of_columns else (
                    1, sizes.queries, 1
                )  # fmt: skip
                for c, n, r in _loops(*extents):
                    column = c * self.chain.intrinsic.m + at(self.chain.row, lane=lane, register=r)
                    row = self._row(place, n, lane)
                    known = {
                        values.total: held.total[n, lane, 0],
                        values.attended: held.o[c, n, lane, r],
                        values.largest: held.before[n, lane, 0]
                        * tirx.const(self.score.factor, "float32"),
                        _INVERSE: held.partial[n, lane, 0],
                        axes.row.var: row, axes.column.var: column, **place.batch,
                    }  # fmt: skip
                    store = substitute(_by_inverse(result.store, values), known)
                    inside = [row < axes.row.dom.extent]
                    if result.of_columns:
                        inside.append(column < axes.column.dom.extent)
                    else:  # one of the lanes that have it
                        first = lane & sum(self.chain.distances)
                        inside.append(first.equal(0))
                    with T.If(Analyzer().simplify(tirx.all(*inside))), T.Then():
                        T.buffer_store(store.buffer, store.value, list(store.indices))

    # Copies, loads and products, as blocks to be scheduled.

    def _copy_keys(self, place: Place, held: Registers, steps: Expr, step: Expr, key: Start) -> None:
        """A tile of K, whose rows are in the order in which the second product takes P."""
        shape = [int(extent) for extent in held.k_tile.shape]
        with _block("K_tile", [(steps, step)], shape) as ((own,), (row, depth)):
            element = self._key(place, key(own) + self._key_of(row), depth)
            T.buffer_store(held.k_tile, element, [row, depth])

    def _copy_values(
        self, place: Place, held: Registers, steps: Expr, step: Expr, key: Start
    ) -> None:
        """A tile of V turned around, since the second product sums over keys."""
        shape = [int(extent) for extent in held.v_tile.shape]
        with _block("V_tile", [(steps, step)], shape) as ((own,), (column, row)):
            element = self._value(place, key(own) + row, column)
            T.buffer_store(held.v_tile, element, [column, row])

    def _load(
        self, name: str, held: Buffer, tile: Sequence[Expr], memory: Buffer, operand: Operand
    ) -> None:
        """A fragment of a tile in the LDS."""
        rows, columns = operand.layout.rows, operand.layout.columns
        outer = list(zip(held.shape[:2], tile, strict=True))
        with _block(name, outer, [rows, columns]) as ((x, t), (i, k)):
            slot = self._slot(operand, i, k)
            T.buffer_store(held, memory[x * rows + i, t * columns + k], [x, t, *slot])

    def _zero(self, name: str, held: Registers, tile: Sequence[Expr]) -> None:
        """A tile of sums."""
        layout = self.chain.intrinsic.c.layout
        outer = list(zip(held.s.shape[:2], tile, strict=True))
        with _block(name, outer, [layout.rows, layout.columns]) as ((x, n), (i, j)):
            slot = self._slot(self.chain.intrinsic.c, i, j)
            T.buffer_store(held.s, tirx.const(0, "float32"), [x, n, *slot])

    def _multiply(
        self, name: str, tiles: tuple[Buffer, Buffer, Buffer], place: tuple[Expr, Expr, Expr],
        pack: Packed,
    ) -> None:  # fmt: skip
        """c[x, n] += a[x, t] x b[t, n]."""
        a, b, c = tiles
        extents = [a.shape[0], b.shape[1], a.shape[1]]
        shape = [pack.intrinsic.m, pack.intrinsic.n, pack.k]
        outer = list(zip(extents, place, strict=True))
        with _block(name, outer, shape, summed=True) as ((x, n, t), (i, j, k)):
            left = a[(x, t, *self._slot(pack.a, i, k))].astype("float32")
            right = b[(t, n, *self._slot(pack.b, k, j))].astype("float32")
            index = (x, n, *self._slot(pack.intrinsic.c, i, j))
            T.buffer_store(c, c[index] + left * right, list(index))

    def _slot(self, operand: Operand, row: Expr, column: Expr) -> tuple[Expr, Expr]:
        """(lane, register) of an element of an operand's tile."""
        lane, register = operand.layout.forward("row", "column")
        return at(lane, row=row, column=column), at(register, row=row, column=column)

    # Elements of the arguments, and zeros beyond their edges.

    def _query(self, place: Place, row: Expr, depth: Expr) -> Expr:
        axes = self.found.axes
        places = {axes.row.var: row, axes.depth.var: depth, **place.batch}
        bounds = [(row, axes.row, self.tiling.block), (depth, axes.depth, self.chain.first.k)]
        return _inside(substitute(self.found.q, places), bounds)

    def _key(self, place: Place, key: Expr, depth: Expr) -> Expr:
        axes = self.found.axes
        places = {axes.key.var: key, axes.depth.var: depth, **place.batch}
        bounds = [(key, axes.key, None), (depth, axes.depth, self.chain.first.k)]
        return _inside(substitute(self.found.k, places), bounds)

    def _value(self, place: Place, key: Expr, column: Expr) -> Expr:
        axes = self.found.axes
        places = {axes.key.var: key, axes.column.var: column, **place.batch}
        bounds = [(key, axes.key, self.tiling.keys), (column, axes.column, self.chain.intrinsic.m)]
        return _inside(substitute(self.found.v, places), bounds)

    def _key_of(self, row: Expr) -> Expr:
        """The key, from the first of a step on, that is in a row of S."""
        period = self.chain.period
        if all(key == n for n, key in enumerate(self.chain.keys)):
            return row
        own = at(self.chain.key_of_row, row=tirx.floormod(row, period))
        return tirx.floordiv(row, period) * period + own

    @contextmanager
    def _lanes(self) -> Iterator[Expr]:
        with _bound(self.chip.wave_size, "threadIdx.x", "lane") as lane:
            yield lane


@contextmanager
def _bound(extent: Expr | int, tag: str, name: str) -> Iterator[Expr]:
    """A loop over threads or workgroups."""
    with T.thread_binding(0, extent, tag) as loop:
        yield _named(name, loop)


def _loops(*extents: Expr | int) -> Iterator[tuple[Expr, ...]]:
    """Loops around what stands in the `for` statement: it is written once."""
    with ExitStack() as stack:
        yield tuple(stack.enter_context(T.serial(0, extent)) for extent in extents)


@contextmanager
def _block(
    name: str, outer: Sequence[tuple[Expr | int, Expr]], shape: Sequence[int], summed: bool = False
) -> Iterator[tuple[list[Expr], list[Expr]]]:
    """A block at places of `outer` axes, (extent, value), in loops over a tile of a shape; (those
    axes, the axes of the tile), of which the last may be summed over."""
    for loops in _loops(*shape):
        with T.sblock(name):
            places = [T.axis.spatial(extent, value) for extent, value in outer]
            kinds = [T.axis.spatial] * len(shape)
            if summed:
                kinds[-1] = T.axis.reduce
            yield (
                places,
                [axis(n, loop) for axis, n, loop in zip(kinds, shape, loops, strict=True)],
            )


def _at_once(count: int, most: int) -> int:
    """How many of several tiles are loaded at a time."""
    return gcd(count, most)


def _named(name: str, value: Named) -> Named:
    IRBuilder.name(name, value)
    return value


def _slot(x: Expr, n: Expr, lane: Expr, each: int) -> tuple[Expr, ...]:
    """The place of a lane's x-th element, of so many in each tile."""
    return tirx.floordiv(x, each), n, lane, tirx.floormod(x, each)


def _inside(value: Expr, bounds: Sequence[tuple[Expr, IterVar, int | None]]) -> Expr:
    """The element, or zero where a place is beyond the end of its axis, of which a tile has so many;
    None where tiles may begin beyond it."""
    conditions = [
        place < axis.dom.extent
        for place, axis, tile in bounds
        if tile is None or not _divides(tile, axis.dom.extent)
    ]
    if not conditions:
        return value
    return tirx.if_then_else(tirx.all(*conditions), value, tirx.const(0, str(value.ty.dtype)))


def _divides(tile: int, extent: Expr) -> bool:
    number = constant(extent)
    return number is not None and number % tile == 0


def _exp2(value: Expr) -> Expr:
    """2 to a power in one instruction: what is less than the least normal number is zero."""
    return intrinsic("float32", "llvm.amdgcn.exp2.f32", value)


def _fma(a: Expr, b: Expr, c: Expr) -> Expr:
    return intrinsic("float32", "llvm.fma.f32", a, b, c)


def _by_inverse(store: BufferStore, values: Softmax) -> BufferStore:
    """A result with products by the inverse of the total, which is zero for a total of zero, in
    place of quotients."""
    zero = tirx.const(0, "float32")

    def quotient(found: tirx.Div) -> Expr:
        return found.a * _INVERSE if found.b.same_as(values.total) else found

    def guarded(found: tirx.Select) -> Expr:
        is_guard = same(found.condition, zero < values.total) and is_number(found.false_value, 0)
        product = found.true_value
        of_attended = isinstance(product, tirx.Mul) and product.a.same_as(values.attended)
        return product if is_guard and of_attended and product.b.same_as(_INVERSE) else found

    return tvm_ffi.structural_map(store, [(tirx.Div, quotient), (tirx.Select, guarded)])

"""The pipeline: main loops that are annotated for it become fast ones, or stay as they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import tvm_ffi
from tvm import ir, tirx
from tvm.ir import TensorLoad
from tvm.sym import Analyzer, detect_linear_equation
from tvm.tirx import (
    AllocBuffer,
    AttrStmt,
    BufferStore,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    PrimFunc,
    SeqStmt,
    Var,
)

from mfmadsl.language import reads
from mfmadsl.model import Architecture
from mfmadsl.model.architecture import WAVE_SIZE
from mfmadsl.passes import device
from mfmadsl.passes.element import Element, element, runs, sources
from mfmadsl.passes.error import NotUnderstood
from mfmadsl.passes.expression import (
    NotNumbersError,
    bits_of,
    constant,
    loads_of,
    numbers,
    substitute,
    variables_of,
)
from mfmadsl.passes.fetch import Fetch, Loop, loadable
from mfmadsl.passes.main_loop import PIPELINE, MainLoop, elements_of, main_loop, store_of
from mfmadsl.passes.order import Piece, one, split, spread
from mfmadsl.passes.places import Places, Swizzle, swizzled
from mfmadsl.passes.put import Home, Put
from mfmadsl.passes.swizzle import Access, choose

EDGES = "mfmadsl.edges"
"""The annotation of a loop that names tiles, with spaces between them, whose rows past an edge may
hold anything, because nobody looks at what becomes of them. The edge is the outermost condition of
the copy into the tile, without what says where K ends."""

SWIZZLE = "mfmadsl.swizzle"
"""The annotation of a loop that says 0 if its tiles are to lie in the LDS as they are."""

_WIDEST = 16  # bytes of an access


@dataclass(frozen=True)
class Threads:
    """The thread indices of a kernel: variables, by tag, and how many there are of each."""

    variables: dict[str, Var]
    extents: dict[str, int]

    @property
    def counts(self) -> dict[str, int]:
        """How many values each variable has, by its name."""
        return {v.name: self.extents[tag] for tag, v in self.variables.items()}


def pipeline(function: PrimFunc, chip: Architecture) -> tuple[PrimFunc, tuple[str, ...]]:
    """A device function with its annotated loops rewritten, and what is to be said about them."""
    remarks: list[str] = []
    threads, analyzer = _threads(function)

    def rewrite(statement: Any, around: tuple[For, ...]) -> Any:
        if isinstance(statement, For):
            if PIPELINE in (statement.annotations or {}):
                try:
                    return _Pipeline(statement, around, threads, analyzer, chip, function).emit()
                except NotUnderstood as left:
                    remarks.append(f"loop `{statement.loop_var.name}` is left as it is: {left}")
                    return statement
            _bind(analyzer, statement)
            around = (*around, statement)
        return _children(statement, around, rewrite)

    body = rewrite(function.body, ())
    return function.with_body(body), tuple(remarks)


def _children(statement: Any, around: tuple[For, ...], rewrite: Any) -> Any:
    """A statement with those in it rewritten."""
    if isinstance(statement, SeqStmt):
        return SeqStmt([rewrite(s, around) for s in statement.seq])
    if isinstance(statement, For):
        return For(
            statement.loop_var, statement.min, statement.extent, statement.kind,
            rewrite(statement.body, around), statement.thread_binding, statement.annotations,
        )  # fmt: skip
    if isinstance(statement, AttrStmt):
        return AttrStmt(
            statement.node, statement.attr_key, statement.value, rewrite(statement.body, around)
        )
    if isinstance(statement, IfThenElse):
        other = statement.else_case
        return IfThenElse(
            statement.condition, rewrite(statement.then_case, around),
            None if other is None else rewrite(other, around),
        )  # fmt: skip
    return statement


def _bind(analyzer: Analyzer, loop: For) -> None:
    analyzer.bind(loop.loop_var, ir.Range.from_min_extent(loop.min, loop.extent), True)


def _threads(function: PrimFunc) -> tuple[Threads, Analyzer]:
    variables: dict[str, Var] = {}
    extents: dict[str, int] = {}
    analyzer = Analyzer()

    def thread(node: AttrStmt) -> None:
        if node.attr_key != "thread_extent":
            return
        analyzer.bind(node.node.var, ir.Range(0, node.value), True)
        tag, extent = str(node.node.thread_tag), constant(node.value)
        if tag.startswith("threadIdx") and extent is not None:
            variables[tag], extents[tag] = node.node.var, extent

    tvm_ffi.structural_walk(function.body, (AttrStmt, thread))
    return Threads(variables, extents), analyzer


@dataclass
class _Pipeline:
    loop: For
    around: tuple[For, ...]
    threads: Threads
    analyzer: Analyzer
    chip: Architecture
    function: PrimFunc
    binds: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        annotations = self.loop.annotations or {}
        self.stages = int(annotations[PIPELINE])
        analyzer = self.analyzer.clone()
        _bind(analyzer, self.loop)
        lane = self.threads.variables.get("threadIdx.x")
        if self.threads.extents.get("threadIdx.x") != WAVE_SIZE:
            lane = None
        available = [r for r in reads().values() if self.chip.name in r.chips]
        self.main: MainLoop = main_loop(self.loop, analyzer, lane, available)
        self._check_buffers()
        before_last = self.analyzer.clone()
        extent = self.loop.extent
        before = constant(extent)
        least = tirx.const(1, str(extent.ty.dtype))
        most = tirx.max(extent - 1, least) if before is None else max(before - 1, 1)
        before_last.bind(self.main.variable, ir.Range(0, most), True)
        self.facts = Loop(
            self.main.variable, extent, analyzer, before_last,
            frozenset(v.name for v in self.threads.variables.values()),
        )  # fmt: skip
        elements = [element(s) for s in self.main.copies]
        # With one turn nothing tells the end of K from the other edges.
        loose = str(annotations.get(EDGES, "")) if constant(extent) != 1 else ""
        self.loose = {
            e.buffer.__chandle__() for e in elements if e.buffer.name in loose.split()
        }  # fmt: skip
        swizzle = int(annotations.get(SWIZZLE, 1))
        self.places = Places(self._swizzles(elements) if swizzle else {}, self.threads.counts)
        self.fetches, home = self._fetches(elements)
        self.puts = self._puts(elements, home)
        self.steps = [
            ([self._placed(r) for r in step.reads], list(step.computing))
            for step in self.main.steps
        ]
        self.direct = self._direct() if self.stages == 2 else None
        different = any(f.needs_last_first for f in self.fetches)
        self.last_first = different and self.main.is_sum
        self.always = different and not self.main.is_sum

    # What there is.

    def _check_buffers(self) -> None:
        """The tiles are this loop's alone: nobody else reaches them, or would see other contents."""
        tiles = {s.buffer.__chandle__() for s in map(store_of, self.main.copies)}
        outside: list[str] = []

        def walk(statement: Any) -> None:
            if statement.same_as(self.loop):
                return
            if isinstance(statement, BufferStore):
                names = [load.source for load in loads_of(statement.value)] + [statement.buffer]
                outside.extend(b.name for b in names if b.__chandle__() in tiles)
            elif isinstance(statement, SeqStmt):
                for each in statement.seq:
                    walk(each)
            elif isinstance(statement, For | AttrStmt):
                walk(statement.body)
            elif isinstance(statement, IfThenElse):
                walk(statement.then_case)
                if statement.else_case is not None:
                    walk(statement.else_case)

        walk(self.function.body)
        if outside:
            raise NotUnderstood(f"`{outside[0]}` is used outside of it, too")

    def _swizzles(self, elements: Sequence[Element]) -> dict[int, Swizzle]:
        """The choice for each tile."""
        tiles = {e.buffer.__chandle__(): e.buffer for e in elements}
        accesses: dict[int, list[Access]] = {handle: [] for handle in tiles}
        for run in self._neighbours(elements):
            if not run[0].guards:
                self._note(accesses, run[0].buffer, run[0].place, len(run), False)
        for step in self.main.steps:
            for read in step.reads:
                (load,) = loads_of(read.value)
                index = load.indices[0]
                base = index.base if isinstance(index, tirx.Ramp) else index
                self._note(accesses, load.source, base, len(elements_of(read.indices[0])), True)
        found = {}
        for handle, tile in tiles.items():
            length = constant(tile.shape[0])
            if length is not None and length & (length - 1) == 0:
                found[handle] = choose(
                    accesses[handle], bits_of(tile.dtype) // 8, length, self.chip.lds_read_banks
                )
        return found

    def _note(
        self, accesses: dict[int, list[Access]], buffer: Any, place: Any, lanes: int, is_read: bool
    ) -> None:
        """An access of wave 0 in turn 0."""
        tags = self.threads.variables
        values: dict[str, Any] = {v.name: 0 for v in variables_of(place)}
        count = self.threads.extents.get("threadIdx.x", 1)
        if "threadIdx.x" in tags:
            values[tags["threadIdx.x"].name] = list(range(count))
        try:
            where = numbers(place, values)
        except NotNumbersError:
            return
        if where.ndim == 0 or count % WAVE_SIZE:
            return
        size = lanes * bits_of(buffer.dtype) // 8
        accesses[buffer.__chandle__()].append(Access(tuple(int(x) for x in where), size, is_read))

    def _neighbours(self, elements: Sequence[Element]) -> list[list[Element]]:
        """Runs in the LDS, of elements with the same guards."""
        groups: dict[str, list[Element]] = {}
        for each in elements:
            groups.setdefault(" ".join(map(str, each.guards)), []).append(each)
        return [
            run
            for group in groups.values()
            for run in runs(group, lambda e: e.place, lambda e: e.buffer,
                            lambda e: _WIDEST * 8 // bits_of(e.buffer.dtype))
        ]  # fmt: skip

    def _fetches(self, elements: Sequence[Element]) -> tuple[list[Fetch], Home]:
        """Those of each tile: what two of them are made of is fetched for each."""
        found: list[Fetch] = []
        home: Home = {}
        for tile in dict.fromkeys(e.buffer.__chandle__() for e in elements):
            wanted = sources(e for e in elements if e.buffer.__chandle__() == tile)
            together = runs(
                wanted, lambda s: s.place, lambda s: s.buffer, lambda s: _WIDEST // s.size
            )
            for run in [piece for run in together for piece in loadable(run)]:
                fetch = Fetch(run, self.facts, len(found), tile not in self.loose)
                found.append(fetch)
                for number, source in enumerate(run):
                    home[tile, source.buffer.__chandle__(), str(source.place)] = fetch, number
        return found, home

    def _puts(self, elements: Sequence[Element], home: Home) -> list[Put]:
        return [
            Put(tuple(run), home, self.main.variable,
                self.places.index(run[0].place, run[0].buffer))
            for run in self._neighbours(elements)
        ]  # fmt: skip

    def _placed(self, read: BufferStore) -> BufferStore:
        """A read of where its elements are."""

        def load(node: TensorLoad) -> Any:
            index = node.indices[0]
            if not isinstance(index, tirx.Ramp):
                return tirx.BufferLoad(node.source, [self.places.index(index, node.source)])
            base = self.places.index(index.base, node.source)
            return tirx.BufferLoad(node.source, [tirx.Ramp(base, index.stride, index.lanes)])

        value = tvm_ffi.structural_map(read.value, (TensorLoad, load))
        return BufferStore(read.buffer, value, list(read.indices))

    # Loads that go straight into the LDS.

    def _direct(self) -> list[_DirectLoad] | None:
        """One for each put, or None where one of them cannot."""
        if not self.chip.wide_loads_to_lds or "threadIdx.x" not in self.threads.variables:
            return None
        loads = []
        for put in self.puts:
            made = self._direct_load(put, len(self.fetches) + len(loads))
            if made is None:
                return None
            loads.append(made)
        return loads

    def _direct_load(self, put: Put, number: int) -> _DirectLoad | None:
        if not put.is_straight or put.run[0].guards or not put.fetches[0].can_be_direct:
            return None
        lane, place = self.threads.variables["threadIdx.x"], put.run[0].place
        parts = detect_linear_equation(place, [lane])
        chunk = len(put.run)
        if len(parts) != 2 or constant(parts[0]) != chunk or self.threads.extents["threadIdx.x"] != WAVE_SIZE:
            return None
        swizzle = self.places.of(put.buffer)
        moved = [t.mask << t.left for t in swizzle]
        feeding = [t.mask << t.right for t in swizzle]
        if any(m & f for m in moved for f in feeding) or any(
            m & ~((WAVE_SIZE - 1) * chunk) for m in moved
        ):
            return None
        exchanged = {}
        if swizzle:
            exchanged[lane] = lane ^ (swizzled(place, swizzle) >> (chunk.bit_length() - 1))
        exact = put.buffer.__chandle__() not in self.loose
        fetch = Fetch(put.fetches[0].run, self.facts, number, exact, exchanged)
        return _DirectLoad(fetch, put.buffer, parts[1])

    # The parts of a turn.

    @cached_property
    def dtype(self) -> str:
        """That of the loop's variable."""
        return str(self.main.variable.ty.dtype)

    def number(self, x: int) -> Any:
        """A constant of that type."""
        return tirx.const(x, self.dtype)

    @cached_property
    def last(self) -> Any:
        """The number of the last turn."""
        count = constant(self.loop.extent)
        return self.number(count - 1) if count is not None else self.loop.extent - 1

    def turn(self, t: Any) -> Any:
        """The turn of the loop that is done as number `t`."""
        if not self.last_first:
            return t
        if constant(t) == 0:
            return self.last
        return tirx.max(t - 1, self.number(0)) if constant(t) is None else self.number(constant(t) - 1)

    def at(self, statements: Sequence[Any], k: Any) -> list[Any]:
        return [substitute(s, {self.main.variable: k}) for s in statements]

    def fetched(self, k: Any, is_last: bool) -> list[Any]:
        return [s for f in self.fetches for s in f.fetch(k, is_last or self.always)]

    def stored(self, k: Any, is_last: bool) -> list[Any]:
        return [s for p in self.puts for s in p.statements(k, is_last or self.always)]

    def moves(self, k: Any, ahead: Any, tiles: dict[int, Any]) -> list[Piece]:
        """Every put of turn k, and every fetch of a later one, once nobody needs what it brought."""
        left = {id(f): sum(any(f is g for g in p.fetches) for p in self.puts) for f in self.fetches}
        found: list[Piece] = []
        for put in self.puts:
            target = tiles.get(put.buffer.__chandle__(), put.buffer)
            found.append(Piece(tuple(put.statements(k, self.always, target)), put.cost))
            for fetch in put.fetches:
                left[id(fetch)] -= 1
                if not left[id(fetch)]:
                    loads = fetch.fetch(ahead, self.always)
                    found.append(Piece(tuple(loads), len(loads)))
        return found

    def reads_of(self, step: int, k: Any, tiles: dict[int, Any]) -> list[Piece]:
        def load(node: TensorLoad) -> Any:
            target = tiles.get(node.source.__chandle__())
            return node if target is None else tirx.BufferLoad(target, list(node.indices))

        placed = [
            BufferStore(r.buffer, tvm_ffi.structural_map(r.value, (TensorLoad, load)),
                        list(r.indices))
            for r in self.steps[step][0]
        ]  # fmt: skip
        return [one(s) for s in self.at(placed, k)]

    def computing(self, step: int, k: Any) -> list[Any]:
        return self.at(self.steps[step][1], k)

    # The whole.

    def emit(self) -> SeqStmt:
        """The statements that stand in place of the loop."""
        if len(self.steps) == 1:
            body = self._in_turn()
        elif self.stages == 2:
            body = self._two_tiles()
        else:
            body = self._one_tile()
        if constant(self.loop.extent) is None:
            guarded = IfThenElse(self.loop.extent > 0, SeqStmt(body), None)
            return SeqStmt([*self._allocations(), guarded])
        return SeqStmt([*self._allocations(), *body])

    def _allocations(self) -> list[Any]:
        own = list(self.main.allocations)
        known = {a.buffer.__chandle__() for a in own}
        fragments = {s.buffer.__chandle__(): s.buffer for reads, _ in self.steps for s in reads}
        own += [AllocBuffer(b) for handle, b in fragments.items() if handle not in known]
        own += [f.allocation() for f in self.fetches]
        return own

    def _entry(self) -> list[Any]:
        """Values that stay the same; and nobody still reads a tile of the loop's last run."""
        binds: list[Any] = [*self.places.binds, *(b for f in self.fetches for b in f.binds)]
        if self.direct:
            binds += [b for load in self.direct for b in load.fetch.binds]
        again = any(loop.kind != ForKind.UNROLLED for loop in self.around)
        return [*binds, *([device.barrier()] if again else [])]

    def _in_turn(self) -> list[Any]:
        """A loop with too little in it to read ahead: only the next turn's loads are on their way."""
        t = Var("turn", self.dtype)
        out = [*self._entry(), *self.fetched(self.turn(self.number(0)), True)]
        first = [*self.stored(self.turn(self.number(0)), True), device.barrier()]
        ahead = [*self.fetched(self.turn(tirx.min(t + 1, self.last)), False)]
        work = [s for p in self.reads_of(0, self.turn(t), {}) for s in p.statements]
        work += self.computing(0, self.turn(t))
        del ahead
        out += first
        now = self.turn(self.number(0))
        out += [s for p in self.reads_of(0, now, {}) for s in p.statements]
        out += self.computing(0, now)
        again = [
            *self.fetched(self.turn(t + 1), False), device.barrier(),
            *self.stored(self.turn(t + 1), False), device.barrier(),
            *[s for p in self.reads_of(0, self.turn(t + 1), {}) for s in p.statements],
            *self.computing(0, self.turn(t + 1)),
        ]  # fmt: skip
        if constant(self.last) != 0:
            out.append(For(t, self.number(0), self.last, ForKind.SERIAL, SeqStmt(again)))
        return out

    def _inner(self, k: Any, tiles: dict[int, Any], moves: Sequence[Piece] = ()) -> list[Any]:
        """All register steps but the last."""
        out: list[Any] = []
        for s in range(len(self.steps) - 1):
            others = [*self.reads_of(s + 1, k, tiles), *(moves if s == 0 else ())]
            out += [device.wait_for_lds(), *spread(self.computing(s, k), others)]
        return out

    def _start(self) -> list[Any]:
        """Turn 0 in the LDS, its first fragments in registers, and turn 1 on its way to them."""
        zero = self.turn(self.number(0))
        out = [*self._entry(), *self.fetched(zero, True), *self.stored(zero, True)]
        if constant(self.last) != 0:
            ahead = self.turn(self.number(1)) if constant(self.last) is not None or self.last_first else (
                tirx.min(self.number(1), self.last)
            )  # fmt: skip
            out += self.fetched(ahead, False)
        first = [s for p in self.reads_of(0, zero, {}) for s in p.statements]
        return [*out, device.barrier(), *first]

    def _finish(self, k: Any) -> list[Any]:
        """The last turn, after which there is nothing to read."""
        last = len(self.steps) - 1
        return [*self._inner(k, {}), device.wait_for_lds(), *self.computing(last, k)]

    def _one_tile(self) -> list[Any]:
        out = self._start()
        if constant(self.last) != 0:
            t = Var("turn", self.dtype)
            out.append(For(t, self.number(0), self.last, ForKind.SERIAL, SeqStmt(self._turn(t))))
        return [*out, *self._finish(self.turn(self.last) if self.last_first else self.last)]

    def _turn(self, t: Any) -> list[Any]:
        now, following = self.turn_of(t), self.turn(t + 1)
        products = self.computing(len(self.steps) - 1, now)
        moves = self.moves(following, self.turn(tirx.min(t + 2, self.last)), {})
        reads = self.reads_of(0, following, {})
        cut = split(products, reads)
        return [
            *self._inner(now, {}),
            device.wait_for_lds(), device.barrier(), device.wait_for_memory(),
            *spread(products[:cut], moves, 0),
            device.barrier(),
            *spread(products[cut:], reads),
        ]  # fmt: skip

    def turn_of(self, t: Any) -> Any:
        """As `turn`, of a number that may be 0 at run time: a sum does not depend on it."""
        return t if self.last_first else self.turn(t)

    def _two_tiles(self) -> list[Any]:
        tiles = {p.buffer.__chandle__(): p.buffer for p in self.puts}
        odd = {
            handle: tirx.decl_buffer(b.shape, b.dtype, f"{b.name}_odd", scope="shared")
            for handle, b in tiles.items()
        }
        stages: tuple[dict[int, Any], dict[int, Any]] = ({}, odd)
        out: list[Any] = [AllocBuffer(b) for b in odd.values()]
        out += self._start_direct(odd) if self.direct else self._start()
        step = self._direct_turn if self.direct else self._turn_of_two
        count = constant(self.loop.extent)
        if count is None or count > 1:
            pair = Var("pair", self.dtype)
            body = []
            for stage in (0, 1):
                body += step(pair * 2 + stage, stages[stage], stages[1 - stage])
            pairs = tirx.floordiv(self.loop.extent, self.number(2)) if count is None else self.number(count // 2)
            out.append(For(pair, self.number(0), pairs, ForKind.SERIAL, SeqStmt(body)))
        if self.direct:
            out.append(device.wait_for_memory())  # nothing may land after this tile is done
        # Of an even number of turns the last has fetched and read once more than it had to:
        # cheaper than the code of another one.
        rest = self._finish(self.last)
        if count is None:
            odd_count = tirx.floormod(self.loop.extent, 2).equal(1)
            return [*out, IfThenElse(odd_count, SeqStmt(rest), None)]
        return [*out, *(rest if count % 2 else [])]

    def _turn_of_two(self, t: Any, tiles: dict[int, Any], others: dict[int, Any]) -> list[Any]:
        now, following = self.turn_of(t), self.turn(tirx.min(t + 1, self.last))
        moves = self.moves(following, self.turn(tirx.min(t + 2, self.last)), others)
        reads = self.reads_of(0, following, others)
        return [
            device.wait_for_memory(),
            *self._inner(now, tiles, moves),
            device.wait_for_lds(), device.barrier(),
            *spread(self.computing(len(self.steps) - 1, now), reads),
        ]  # fmt: skip

    def _start_direct(self, odd: dict[int, Any]) -> list[Any]:
        assert self.direct is not None
        zero = self.turn(self.number(0))
        out = self._entry()
        if self.last_first or self.always:  # elements past an edge are cleared in registers
            out += [*self.fetched(zero, True), *self.stored(zero, True)]
        else:
            out += [*(load.move(zero, {}) for load in self.direct), device.wait_for_memory()]
        out.append(device.barrier())
        if constant(self.last) != 0:
            ahead = self.turn(self.number(1)) if self.last_first else tirx.min(self.number(1), self.last)
            out += [load.move(ahead, odd) for load in self.direct]
        return [*out, *(s for p in self.reads_of(0, zero, {}) for s in p.statements)]

    def _direct_turn(self, t: Any, tiles: dict[int, Any], others: dict[int, Any]) -> list[Any]:
        assert self.direct is not None
        now, following = self.turn_of(t), self.turn(tirx.min(t + 1, self.last))
        ahead = self.turn(tirx.min(t + 2, self.last))
        pieces = [
            *self.reads_of(0, following, others),
            *(Piece((load.move(ahead, tiles),), 2) for load in self.direct),
        ]
        return [
            *self._inner(now, tiles),
            device.wait_for_lds(), device.wait_for_memory(), device.barrier(),
            *spread(self.computing(len(self.steps) - 1, now), pieces),
        ]  # fmt: skip


@dataclass(frozen=True)
class _DirectLoad:
    """A wave's lanes fill the LDS one after another, from element `place` on; the swizzle is on the
    side of the memory, where each lane fetches what belongs into its place."""

    fetch: Fetch
    buffer: Any
    place: Any

    def move(self, k: Any, tiles: dict[int, Any]) -> Evaluate:
        tile = tiles.get(self.buffer.__chandle__(), self.buffer)
        place = self.place * (bits_of(self.buffer.dtype) // 8)
        return Evaluate(device.call("int32", "buffer.to.lds", *self.fetch.address(k), tile.data, place))


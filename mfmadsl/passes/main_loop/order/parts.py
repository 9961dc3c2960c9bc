"""What an iteration of a main loop is made of: the statements of each thing that it does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from tvm import tirx
from tvm.ir import TensorLoad
from tvm.tirx import Buffer, BufferStore, Expr, For, Stmt, Var

from mfmadsl.model import DEFAULT_OVERLAP, OVERLAPS, Architecture, Overlap
from mfmadsl.passes.main_loop.analysis.halves import sum_words
from mfmadsl.passes.main_loop.analysis.register_use import (
    FEW_WORDS,
    MANY_ITERATIONS,
    RegisterUse,
    asks_late,
    sharing_lines,
)
from mfmadsl.passes.main_loop.moves.fetch import Fetch
from mfmadsl.passes.main_loop.moves.put import Put
from mfmadsl.passes.main_loop.moves.traffic import Traffic
from mfmadsl.passes.main_loop.order.computed_ahead import (
    NOTHING,
    Computed,
    needed_by_computed,
    pieces_of_computed,
)
from mfmadsl.passes.main_loop.order.fill import filled_here
from mfmadsl.passes.main_loop.order.instruction_order import (
    Pace,
    Piece,
    after_use,
    one,
    pace_of,
    spread,
)
from mfmadsl.passes.tir import device
from mfmadsl.passes.tir.expression import WORD, Node, constant, known_bytes, loads_of, substitute
from mfmadsl.passes.tir.walk import mapped

_TIMES_AHEAD = 4  # latencies of the L2 that an iteration takes at least which computes ahead

Tiles = dict[int, Buffer]
"""For each tile by its handle, the one that stands for it in a stage."""


@dataclass(frozen=True)
class Parts:
    """The parts of a loop. `again`: the kernel may come by several times.

    `fills` are the stores ahead of it that put zeros into sums, and `overlap` says what comes while
    the matrix cores work.
    """

    traffic: Traffic
    stages: int
    again: bool
    fills: tuple[BufferStore, ...] = ()
    overlap: Overlap = OVERLAPS[DEFAULT_OVERLAP]

    @property
    def loop(self) -> For:
        """The loop as it was."""
        return self.traffic.main.loop

    @property
    def chip(self) -> Architecture:
        """The chip that the kernel is for."""
        return self.traffic.kernel.chip

    @cached_property
    def last_first(self) -> bool:
        """Whether the last iteration is done first."""
        return self._has_edges and self.traffic.main.is_sum

    @cached_property
    def always(self) -> bool:
        """Whether each iteration takes care of the last one's edges."""
        return self._has_edges and not self.traffic.main.is_sum

    @property
    def _has_edges(self) -> bool:
        return any(fetch.needs_last_first for fetch in self.traffic.fetches)

    @cached_property
    def dtype(self) -> str:
        """The type of the loop's variable."""
        return str(self.traffic.main.variable.ty.dtype)

    @cached_property
    def pace(self) -> Pace:
        """That of the last register step, in which there is most to do besides."""
        return pace_of(self.traffic.steps[-1].computing, self.traffic.main.instructions)

    def spread(
        self, computing: Sequence[BufferStore], others: Sequence[Piece], slack: int | None = None
    ) -> list[Stmt]:
        """The others under the computing, such that what is read is there when it is needed; ahead
        of it, for LLVM to order, where that is asked for."""
        if not self.overlap.ordered:
            placed = after_use(computing, others)
            before = [piece for count, piece in placed if not count]
            after = [piece for count, piece in placed if count]
            return [*_statements(before), *computing, *_statements(after)]
        room = self.pace.slack if slack is None else slack
        return spread(computing, others, room, self.traffic.main.instructions)

    def number(self, x: int) -> Expr:
        """A constant of that type."""
        return tirx.const(x, self.dtype)

    @cached_property
    def last(self) -> Expr:
        """The number of the last iteration, by a name if it is not known."""
        count = constant(self.loop.extent)
        return self.number(count - 1) if count is not None else Var("last", self.dtype)

    def iteration(self, t: Expr) -> Expr:
        """The iteration of the loop that is done as number `t`."""
        if not self.last_first:
            return t
        number = constant(t)
        if number is None:
            return tirx.max(t - 1, self.number(0))
        return self.number(number - 1) if number else self.last

    def at(self, statements: Sequence[Node], k: Expr) -> list[Node]:
        """Statements of iteration `k`."""
        return [substitute(s, {self.traffic.main.variable: k}) for s in statements]

    def fetched(self, t: Expr, is_last: bool, but: Sequence[Fetch] = ()) -> list[Stmt]:
        """The loads of the iteration that is done as number `t`, but some."""
        own = self.repeated if constant(t) != 0 else self.fetches_in_order
        fetches = [f for f in own if f not in but]
        k, following = self.iteration(t), self._following(t)
        return [s for f in fetches for s in f.fetch(k, is_last or self.always, following)]

    def _following(self, t: Expr) -> Expr:
        """The iteration that is done after number `t`, and again the last one after that."""
        return self.iteration(tirx.min(t + 1, self.last))

    def stored(self, k: Expr, is_last: bool) -> list[Stmt]:
        """The stores into the LDS of iteration `k`."""
        return [s for p in self.traffic.puts for s in p.statements(k, is_last or self.always)]

    @cached_property
    def done(self) -> list[list[Fetch]]:
        """For each put the fetches of which nothing is left to put after it."""
        last = {id(f): n for n, put in enumerate(self.puts) for f in put.fetches}
        return [[f for f in put.fetches if last[id(f)] == n] for n, put in enumerate(self.puts)]

    @cached_property
    def fetches_in_order(self) -> list[Fetch]:
        """All fetches of an iteration, in the order in which they are made."""
        return [fetch for each in self.done for fetch in each]

    @cached_property
    def repeated(self) -> list[Fetch]:
        """Those that all iterations make, but for what only the first one loads: it stays."""
        return [fetch for fetch in self.fetches_in_order if not fetch.is_fixed]

    @cached_property
    def late(self) -> list[Fetch]:
        """The last fetches of an iteration, for which the vector L1 has no lines beside the others:
        where they are asked for together with them they hold up their wave. What is computed ahead
        of the barrier cannot be late. There are none where LLVM orders the loop.
        """
        if not self.overlap.ordered:
            return []
        kernel, chip = self.traffic.kernel, self.chip
        tiles = {put.buffer.__chandle__(): put.buffer for put in self.traffic.puts}.values()
        lds = sum(map(known_bytes, tiles)) * self.stages
        resident = sharing_lines(chip, lds, sum_words(self.traffic.steps), kernel.waves)
        own = sum(words(fetch) for fetch in self.repeated) * WORD * kernel.thread_count
        as_they_are = all(put.is_plain and put.is_straight for put in self.traffic.puts)
        if not asks_late(chip, own, resident, self._products, self.has_few_loads, as_they_are):
            return []
        lines = chip.l1_bytes // resident
        asked = accumulate(fetch.line_bytes(kernel) for fetch in self.repeated)
        soon = needed_by_computed(self.puts) if self.computing_steps else set()
        together = zip(self.repeated, asked, strict=True)
        return [fetch for fetch, most in together if most > lines and id(fetch) not in soon]

    @cached_property
    def _products(self) -> float:
        """Cycles of a SIMD's matrix instructions in an iteration."""
        instructions, chip = self.traffic.main.instructions, self.chip
        values = (s.value for step in self.traffic.steps for s in step.computing)
        of_wave = sum(instructions.time(value) for value in values if instructions.has(value))
        return of_wave * self.traffic.kernel.thread_count / chip.wave_size / chip.simds

    @cached_property
    def has_few_loads(self) -> bool:
        """Whether registers are left for the loads of another iteration, of many."""
        if self.traffic.kernel.register_use is not RegisterUse.TWO_AHEAD:
            return False
        count = constant(self.loop.extent)
        needed = sum(map(words, self.repeated))
        return count is not None and count >= MANY_ITERATIONS and needed <= FEW_WORDS

    @cached_property
    def copies_only(self) -> bool:
        """Whether nothing is computed on its way: LLVM would do so, and wait, before a barrier."""
        return all(put.is_plain for put in self.traffic.puts)

    @cached_property
    def puts(self) -> list[Put]:
        """All puts of an iteration, in the order in which they are made: those that are computed
        ahead come first, so that their loads are the ones that are there in time."""
        found = list(self.traffic.puts)
        return sorted(found, key=lambda put: put.is_plain) if self.computing_steps else found

    @cached_property
    def computing_steps(self) -> range:
        """The register steps in which that is computed which the last one puts: those in which the
        loads are there. None where an iteration is not long enough for them to come by then, where
        there is time for it later, or where LLVM orders the loop."""
        steps, chip = len(self.traffic.steps), self.chip
        if not self.overlap.ordered or self.stages != 1 or steps == 1:
            return range(0)
        if self._products < _TIMES_AHEAD * chip.l2_latency:
            return range(0)
        return range(min(1, steps - 2), steps - 1)

    def compute(self, k: Expr, into: Computed, in_flight: int) -> list[Piece]:
        """What is put of iteration `k`, computed into registers; so many loads are `in_flight` of
        another iteration."""
        puts = [put for put in self.puts if id(put) in into]
        wait = self._wait_for(puts, in_flight)
        return pieces_of_computed(puts, k, into, self.always, wait)

    def _wait_for(self, puts: Sequence[Put], under_way: int) -> Stmt:
        """All that these puts need is there; so many loads are behind all of the iteration's."""
        order = self.repeated
        needed = {id(f) for put in puts for f in put.fetches}
        newest = max((n for n, f in enumerate(order) if id(f) in needed), default=-1)
        younger = sum(f.loads for f in order[newest + 1 :]) + under_way
        return device.wait_for_memory(self.chip, younger)

    def moves(
        self,
        k: Expr,
        ahead: Expr,
        tiles: Tiles,
        in_flight: int = 0,
        but: Sequence[Fetch] = (),
        computed: Computed = NOTHING,
    ) -> list[Piece]:
        """Every put of iteration k, and every fetch, but some, of that which is done as number
        `ahead`, once what it brought is put.

        The first half of the puts waits for what it needs, and the second half for the rest: the
        memory is never waited for as a whole. So many loads `in_flight` are of another iteration,
        and some puts are `computed` already.
        """
        puts = self.puts
        half, started = len(puts) // 2, 0
        found: list[Piece] = []
        for number, put in enumerate(puts):
            target = tiles.get(put.buffer.__chandle__(), put.buffer)
            if (words := computed.get(id(put))) is None:
                statements, cost = list(put.statements(k, self.always, target)), put.cost
            else:
                statements, cost = [put.store_of(words, target)], 1
            if number in (0, half):
                some = puts[: half if number < half else None]
                if waiting := [each for each in some if id(each) not in computed]:
                    statements.insert(0, self._wait_for(waiting, started + in_flight))
            found.append(Piece(tuple(statements), cost))
            fetches = [f for f in self.done[number] if not f.is_fixed and f not in but]
            started += sum(fetch.loads for fetch in fetches)
            found += self.fetches(fetches, ahead)
        return found

    def fetches(self, fetches: Sequence[Fetch], t: Expr) -> list[Piece]:
        """Some fetches of the iteration that is done as number `t`."""
        k, following = self.iteration(t), self._following(t)
        return [
            Piece(tuple(fetch.fetch(k, self.always, following)), fetch.loads) for fetch in fetches
        ]

    def reads_of(self, step: int, k: Expr, tiles: Tiles) -> list[Piece]:
        """The fragment reads of a register step, from these tiles."""

        def load(node: TensorLoad) -> Expr:
            target = tiles.get(node.source.__chandle__())
            return node if target is None else tirx.BufferLoad(target, list(node.indices))

        placed = [
            BufferStore(r.buffer, mapped(r.value, (TensorLoad, load)),
                        list(r.indices))
            for r in self.traffic.steps[step].reads
        ]  # fmt: skip
        return [one(s) for s in self.at(placed, k)]

    def computing(self, step: int, k: Expr) -> list[BufferStore]:
        """What a register step of iteration `k` computes; in a sum, all compute alike."""
        return self.at(self.traffic.steps[step].computing, k)

    def another(self, name: str) -> Tiles:
        """A place more for each tile, called after the tile and `name`."""
        tiles = {p.buffer.__chandle__(): p.buffer for p in self.traffic.puts}
        return {
            handle: tirx.decl_buffer(b.shape, b.dtype, f"{b.name}_{name}", scope="shared")
            for handle, b in tiles.items()
        }

    def entry(self) -> list[Stmt]:
        """Values that stay the same; and nobody still reads a tile of the loop's last run."""
        binds: list[Stmt] = [
            *self.traffic.gathered,
            *self.traffic.places.binds,
            *(b for f in self.traffic.fetches for b in f.binds),
        ]
        if self.traffic.direct:
            binds += [b for load in self.traffic.direct for b in load.binds]
        first_read = self.iteration(self.number(0))
        reads = [i.read(first_read) for f in self.traffic.fetches for i in f.reads]
        # No wave fills its sums while another one's addresses wait for the same SIMD.
        first: list[Stmt] = [device.priority(1), device.keep_order()] if self.fills else []
        first += [fill for fill in self.fills if self._is_gathered(fill)]
        return [*first, *binds, *reads, *([device.barrier()] if self.again else [])]

    def filled(self) -> list[Stmt]:
        """The fills, under the first fetch."""
        if not self.fills:
            return []
        rest = [fill for fill in self.fills if not self._is_gathered(fill)]
        return [device.priority(0), *filled_here(rest)]

    def _is_gathered(self, fill: BufferStore) -> bool:
        """Whether an index that is read ahead of the loop is made of what is filled."""
        read = (load for each in self.traffic.gathered for load in loads_of(each))
        return any(load.source.same_as(fill.buffer) for load in read)


def in_other_registers(statements: Sequence[Stmt], registers: Mapping[int, Buffer]) -> list[Stmt]:
    """Statements that load into others in place of the registers with these handles."""

    def loaded(node: TensorLoad) -> Expr:
        other = registers.get(node.source.__chandle__())
        return node if other is None else tirx.BufferLoad(other, list(node.indices))

    def stored(node: BufferStore) -> BufferStore:
        other = registers.get(node.buffer.__chandle__())
        return node if other is None else BufferStore(other, node.value, list(node.indices))

    return [mapped(each, (TensorLoad, loaded), (BufferStore, stored)) for each in statements]


def words(fetch: Fetch) -> int:
    """Registers of a thread that a fetch fills."""
    return constant(fetch.registers.shape[0]) or 0


def _statements(pieces: Sequence[Piece]) -> list[Stmt]:
    return [statement for piece in pieces for statement in piece.statements]

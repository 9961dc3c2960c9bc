"""The order of a main loop's statements: prologue, iterations, epilogue.

docs/gemm-kernel.md, "The main loop", explains the pipeline. With one tile an operand in the LDS:

    register steps 0 .. S-2 of iteration t    read fragments s + 1
    register step S-1                         barrier: all waves have read iteration t
                                              put iteration t + 1 into the LDS, fetch t + 2
                                              barrier: iteration t + 1 is there
                                              read fragments 0 of iteration t + 1

Of fetches for which the vector L1 has no lines, step 0 of iteration t + 1 makes the last ones. What
is computed before it is put is computed under steps 1 .. S-2 (`computed_ahead`).
Where registers are left, iteration t + 3 is fetched, into a second set of registers in every other
iteration. Two tiles need one barrier, and the LDS is filled throughout the iteration. Loads
straight into the LDS have an order of their own (`direct_iterations`).

A last iteration with edges comes first, so that the loop has none. In a loop that is no sum the
order of iterations matters, so each takes care of edges.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tvm import tirx
from tvm.tirx import (
    AllocBuffer,
    Bind,
    Expr,
    For,
    ForKind,
    IfThenElse,
    SeqStmt,
    Stmt,
    Var,
)

from mfmadsl.passes.main_loop.moves.fetch import Fetch
from mfmadsl.passes.main_loop.order.computed_ahead import (
    NOTHING,
    registers_of_computed,
    share_of,
)
from mfmadsl.passes.main_loop.order.direct_iterations import direct_iterations
from mfmadsl.passes.main_loop.order.instruction_order import Piece
from mfmadsl.passes.main_loop.order.parts import Parts, Tiles, in_other_registers
from mfmadsl.passes.main_loop.order.register_iterations import register_iterations
from mfmadsl.passes.tir import device
from mfmadsl.passes.tir.expression import constant

_HALVES = 2  # register steps, of which each is half of an iteration
_NEXT = 2  # iterations from one to that whose tile it loads: it puts the next one's


@dataclass(frozen=True)
class Iterations(Parts):
    """The statements of a loop, in one order or another."""

    def emit(self) -> SeqStmt:
        """The statements that stand in place of the loop."""
        if not self.stages:
            body = register_iterations(self)
        elif not self.overlap.loads:
            body = self._one_by_one()
        elif not self.overlap.fragments:
            body = self._loads_ahead()
        elif len(self.traffic.steps) == 1:
            body = self._one_by_one()
        elif self.traffic.direct and self.traffic.landing and not self.always:
            body = direct_iterations(self, self.traffic.landing, self.traffic.direct)
        elif self.stages > 1:
            body = self._two_tiles()
        else:
            body = self._one_tile()
        if constant(self.loop.extent) is None:
            assert isinstance(self.last, Var)
            # Ahead of the branch, for other loops to share.
            places = [each for each in body if isinstance(each, AllocBuffer)]
            rest = [each for each in body if not isinstance(each, AllocBuffer)]
            body = [Bind(self.last, self.loop.extent - 1), *rest]
            guarded = IfThenElse(self.loop.extent > 0, SeqStmt(body), None)
            return SeqStmt([*self._allocations(), *places, guarded])
        return SeqStmt([*self._allocations(), *body])

    def _allocations(self) -> list[AllocBuffer]:
        own = list(self.traffic.main.allocations)
        known = {a.buffer.__chandle__() for a in own}
        fragments = {
            s.buffer.__chandle__(): s.buffer for step in self.traffic.steps for s in step.reads
        }
        own += [AllocBuffer(b) for handle, b in fragments.items() if handle not in known]
        own += [each for f in self.traffic.fetches for each in f.allocations()]
        return own

    def _one_by_one(self) -> list[Stmt]:
        """Each thing after the other: of one register step, too little to read ahead, or because
        that is asked for."""

        def worked(t: Expr, is_last: bool) -> list[Stmt]:
            return [
                *self.stored(self.iteration(t), is_last),
                device.barrier(),
                *self._read_and_computed(self.iteration(t)),
            ]

        zero, t = self.number(0), Var("iteration", self.dtype)
        fetched = self.fetched(zero, True)
        out = [*self.entry(), *fetched, *self.filled(), *worked(zero, True)]
        if constant(self.last) != 0:
            fetched = self.fetched(t + 1, False)
            body = SeqStmt([*fetched, device.barrier(), *worked(t + 1, False)])
            out.append(For(t, zero, self.last, ForKind.SERIAL, body))
        return out

    def _read_and_computed(self, k: Expr) -> list[Stmt]:
        """Each register step with the reads of its own fragments."""
        return [
            statement
            for step in range(len(self.traffic.steps))
            for statement in (
                *(s for p in self.reads_of(step, k, {}) for s in p.statements),
                *self.computing(step, k),
            )
        ]

    def _loads_ahead(self) -> list[Stmt]:
        """Iterations with the next one's loads under way, and nothing else ahead."""
        zero, t = self.number(0), Var("iteration", self.dtype)
        first = self.stored(self.iteration(zero), True)
        out = [*self.entry(), *self.fetched(zero, True), *self.filled(), *first]
        if constant(self.last) != 0:
            ahead = tirx.min(t + 2, self.last)
            iteration = [
                *self._read_and_computed(self.iteration(t)),
                device.barrier(),
                *self.stored(self.iteration(t + 1), False),
                *self.fetched(ahead, False),
                device.barrier(),
            ]
            out += [*self.fetched(self._second(), False), device.barrier()]
            out.append(For(t, zero, self.last, ForKind.SERIAL, SeqStmt(iteration)))
        else:
            out.append(device.barrier())
        return [*out, *self._read_and_computed(self.iteration(self.last))]

    def _inner(
        self,
        k: Expr,
        tiles: Tiles,
        moves: Sequence[Piece] = (),
        are_late: bool = False,
        computed: Sequence[Piece] = (),
    ) -> list[Stmt]:
        """All register steps but the last, with moves in the first one: those that are late come
        before its reads if it is half of the iteration, so that they have time to come. What is
        `computed` comes in those that have its loads."""
        out: list[Stmt] = []
        steps = len(self.traffic.steps)
        for s in range(steps - 1):
            own, reads = moves if s == 0 else (), self.reads_of(s + 1, k, tiles)
            others = [*own, *reads] if are_late and steps == _HALVES else [*reads, *own]
            others += share_of(computed, self.computing_steps, s)
            out += [device.wait_for_lds(self.chip), *self.spread(self.computing(s, k), others)]
        return out

    def _start(self, but: Sequence[Fetch] = ()) -> list[Stmt]:
        """The prologue: iteration 0 in the LDS, its first fragments read, iteration 1 in flight but
        for some fetches."""
        zero = self.iteration(self.number(0))
        fetched = self.fetched(self.number(0), True)
        out = [*self.entry(), *fetched, *self.filled(), *self.stored(zero, True)]
        if constant(self.last) != 0:
            # LLVM would fetch both at once, and so each wave its second iteration before others'
            # first.
            out += [device.keep_order(), *self.fetched(self._second(), False, but)]
        first = [s for p in self.reads_of(0, zero, {}) for s in p.statements]
        return [*out, device.barrier(), *first]

    def _second(self) -> Expr:
        """The number of the iteration that is done second, or of the first if there is no other."""
        return tirx.min(self.number(1), self.last)

    def _finish(self, k: Expr) -> list[Stmt]:
        """The last iteration, after which there is nothing to read."""
        last = len(self.traffic.steps) - 1
        return [*self._inner(k, {}), device.wait_for_lds(self.chip), *self.computing(last, k)]

    def _one_tile(self) -> list[Stmt]:
        if self.has_few_loads and not self.late:
            return self._far_ahead()
        out = self._start(self.late)
        if constant(self.last) != 0:
            t = Var("iteration", self.dtype)
            body = SeqStmt(self._iteration(t, late=self.late))
            out.append(For(t, self.number(0), self.last, ForKind.SERIAL, body))
        return [*out, *self._finish(self.iteration(self.last) if self.last_first else self.last)]

    def _far_ahead(self) -> list[Stmt]:
        """One tile, and the loads of two iterations in flight, in registers of their own.

        What an odd iteration puts was loaded into one set of them, and into the other what an even
        one does.
        """
        odd = {f.registers.__chandle__(): f.another_registers() for f in self.repeated}
        last = constant(self.last)
        assert last is not None

        def ahead(t: int) -> list[Stmt]:
            return self.fetched(self.number(min(t, last)), t == 0)

        zero = self.iteration(self.number(0))
        out = [
            *(AllocBuffer(each) for each in odd.values()),
            *self.entry(), *ahead(0), *self.filled(),
            device.keep_order(), *in_other_registers(ahead(1), odd),
            device.keep_order(), *self.stored(zero, True),
            device.keep_order(), *ahead(2), device.barrier(),
            *(s for p in self.reads_of(0, zero, {}) for s in p.statements),
        ]  # fmt: skip
        pair = Var("pair", self.dtype)
        body = [
            *in_other_registers(self._iteration(pair * 2, _NEXT + 1), odd),
            *self._iteration(pair * 2 + 1, _NEXT + 1),
        ]
        out.append(For(pair, self.number(0), self.number(last // 2), ForKind.SERIAL, SeqStmt(body)))
        if last % 2:
            out += in_other_registers(self._iteration(self.number(last - 1), _NEXT + 1), odd)
        return [*out, *self._finish(self.iteration(self.last) if self.last_first else self.last)]

    def _iteration(self, t: Expr, ahead: int = _NEXT, late: Sequence[Fetch] = ()) -> list[Stmt]:
        """An iteration that puts the next one's tile, of which it makes the `late` fetches first,
        and loads that of the one so far `ahead`."""
        following = self.iteration(t + 1)
        products = self.computing(len(self.traffic.steps) - 1, t)
        in_flight = (ahead - _NEXT) * sum(fetch.loads for fetch in self.repeated)
        made = registers_of_computed(self.puts) if self.computing_steps else NOTHING
        computed = self.compute(following, made, in_flight)
        moves = self.moves(following, tirx.min(t + ahead, self.last), {}, in_flight, late, made)
        reads = self.reads_of(0, following, {})
        cut = self.pace.split(products, reads)
        return [
            *(AllocBuffer(each) for each in made.values()),
            *self._inner(t, {}, self.fetches(late, t + 1), True, computed),
            device.wait_for_lds(self.chip),
            device.barrier(),
            *([device.keep_order()] if ahead == _NEXT and not self.copies_only else []),
            *self.spread(products[:cut], moves, self.pace.put_slack),
            device.barrier(),
            *self.spread(products[cut:], reads),
        ]  # fmt: skip

    def _two_tiles(self) -> list[Stmt]:
        odd = self.another("odd")
        stages: tuple[Tiles, Tiles] = ({}, odd)
        out: list[Stmt] = [*(AllocBuffer(b) for b in odd.values()), *self._start()]
        count = constant(self.loop.extent)
        if count is None or count > 1:
            pair = Var("pair", self.dtype)
            body = []
            for stage in (0, 1):
                body += self._iteration_of_two(pair * 2 + stage, stages[stage], stages[1 - stage])
            pairs = (
                tirx.floordiv(self.loop.extent, self.number(2))
                if count is None
                else self.number(count // 2)
            )
            out.append(For(pair, self.number(0), pairs, ForKind.SERIAL, SeqStmt(body)))
        # After an even number of iterations the last has fetched and read once too often:
        # cheaper than the code of another one.
        rest = self._finish(self.last)
        if count is None:
            odd_count = tirx.floormod(self.loop.extent, 2).equal(1)
            return [*out, IfThenElse(odd_count, SeqStmt(rest), None)]
        return [*out, *(rest if count % 2 else [])]

    def _iteration_of_two(self, t: Expr, tiles: Tiles, others: Tiles) -> list[Stmt]:
        following = self.iteration(tirx.min(t + 1, self.last))
        moves = self.moves(following, tirx.min(t + 2, self.last), others)
        reads = self.reads_of(0, following, others)
        return [
            *self._inner(t, tiles, moves),
            device.wait_for_lds(self.chip), device.barrier(),
            *self.spread(self.computing(len(self.traffic.steps) - 1, t), reads),
        ]  # fmt: skip

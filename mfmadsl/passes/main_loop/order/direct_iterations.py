"""The iterations of a main loop whose loads go straight into the LDS, several iterations ahead.

Each tile has as many places as there are stages. What an iteration has read is loaded anew for the
iteration that comes so many later, piece by piece (`landing`):

    step s of iteration t     fragments s are there, and all loads but the youngest
                         barrier, if it is one of those of `landing`
                         products s; under them reads of fragments s + 1, and the loads for
                         iteration t + stages into what all waves have read

Where the number of iterations is known the last ones load nothing. Otherwise they load the last
one's tile again, which is waited for in the end.
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm import tirx
from tvm.tirx import AllocBuffer, Expr, For, ForKind, IfThenElse, SeqStmt, Stmt, Var

from mfmadsl.passes.main_loop.moves.direct import DirectLoad
from mfmadsl.passes.main_loop.moves.landing import Landing
from mfmadsl.passes.main_loop.order.instruction_order import Piece
from mfmadsl.passes.main_loop.order.parts import Parts, Tiles
from mfmadsl.passes.tir import device
from mfmadsl.passes.tir.expression import constant


def direct_iterations(parts: Parts, landing: Landing, loads: Sequence[DirectLoad]) -> list[Stmt]:
    """The statements that stand in place of the loop."""
    return _DirectIterations(parts, landing, loads).emit()


class _DirectIterations:
    def __init__(self, parts: Parts, landing: Landing, loads: Sequence[DirectLoad]) -> None:
        self.parts, self.landing, self.loads = parts, landing, loads
        self.places: list[Tiles] = [{}]
        self.places += [parts.another(f"stage_{n}") for n in range(1, landing.stages)]

    @property
    def stages(self) -> int:
        return self.landing.stages

    def emit(self) -> list[Stmt]:
        out: list[Stmt] = [AllocBuffer(b) for place in self.places for b in place.values()]
        count = constant(self.parts.loop.extent)
        return [*out, *(self._unknown() if count is None else self._known(count))]

    def _known(self, count: int) -> list[Stmt]:
        rounds = max(0, count - self.stages) // self.stages
        out = self._start(count)
        if rounds:
            out.append(self._rounds(self.parts.number(rounds)))
        for t in range(rounds * self.stages, count):
            out += self._iteration(self.parts.number(t), t, count - 1)
        return out

    def _unknown(self) -> list[Stmt]:
        extent, stages = self.parts.loop.extent, self.parts.number(self.stages)
        left = tirx.floormod(extent, stages)
        rest: Stmt | None = None
        for stage in reversed(range(self.stages - 1)):
            # As many are loaded as there are places; what comes after the last is not looked at.
            t = tirx.floordiv(extent, stages) * stages + self.parts.number(stage)
            iteration = self._iteration(t, stage, self.stages - 1)
            body = SeqStmt([*iteration, *([] if rest is None else [rest])])
            rest = IfThenElse(left > self.parts.number(stage), body, None)
        out = [*self._start(None), self._rounds(tirx.floordiv(extent, stages))]
        out += [] if rest is None else [rest]
        # Nothing may land after this tile is done.
        return [*out, device.wait_for_memory(self.parts.chip)]

    def _rounds(self, rounds: Expr) -> For:
        """Iterations in all places of a tile, so many times."""
        variable = Var("round", self.parts.dtype)
        first = variable * self.parts.number(self.stages)
        body = [
            statement
            for stage in range(self.stages)
            for statement in self._iteration(first + self.parts.number(stage), stage, None)
        ]
        return For(variable, self.parts.number(0), rounds, ForKind.SERIAL, SeqStmt(body))

    def _start(self, count: int | None) -> list[Stmt]:
        """The tiles of the first iterations on their way, and the first fragments in registers."""
        parts, zero = self.parts, self.parts.iteration(self.parts.number(0))
        out = parts.entry()
        if parts.last_first:  # elements past an edge are cleared in registers
            out += [
                *parts.fetched(parts.number(0), True),
                *parts.filled(),
                *parts.stored(zero, True),
            ]
        else:
            out += [*self._loaded(self.landing.order, zero, 0), *parts.filled()]
        # No wave's first iteration waits for another one's second.
        out.append(device.barrier() if parts.last_first else device.meeting())
        for t in range(1, self.stages if count is None else min(count, self.stages)):
            number = self.parts.number(t)
            ahead = parts.iteration(number if count is not None else tirx.min(number, parts.last))
            out += self._loaded(self.landing.order, ahead, t)
        if not parts.last_first:
            out += [self._wait(-1, self.landing.barriers[-1], count and count - 1)]
            out += [device.meeting()]
        return [*out, *(s for p in parts.reads_of(0, zero, {}) for s in p.statements)]

    def _loaded(self, numbers: Sequence[int], ahead: Expr, stage: int) -> list[Stmt]:
        tiles = self.places[stage % self.stages]
        return [self.loads[number].move(ahead, tiles) for number in numbers]

    def _wait(self, iteration: int, step: int, last: int | None) -> Stmt:
        under_way = self.landing.under_way(iteration, step, last)
        return device.wait_for_memory(self.parts.chip, under_way)

    def _iteration(self, t: Expr, number: int, last: int | None) -> list[Stmt]:
        """Iteration `t`, in the place of iteration `number`; as many as `last` says follow."""
        parts, stages = self.parts, self.stages
        k, steps = parts.iteration(t), len(parts.traffic.steps)
        here, following = (self.places[n % stages] for n in (number, number + 1))
        loads, ends = last is None or number + stages <= last, number == last
        # In the loop any iteration will do whose place it is, and that has as many before it.
        counted = number if last is not None else number + stages
        out: list[Stmt] = []
        for step in range(steps):
            others: list[Piece] = []
            if step + 1 < steps:
                others += parts.reads_of(step + 1, k, here)
            elif not ends:
                others += parts.reads_of(0, parts.iteration(t + 1), following)
            out.append(device.wait_for_lds(parts.chip))
            if step in self.landing.barriers and not (ends and step == steps - 1):
                out += [self._wait(counted, step, last), device.meeting()]
            if loads:
                ahead = parts.iteration(self._ahead(t))
                started = self._loaded(self.landing.started.get(step, ()), ahead, number)
                others += [Piece((load,), 2) for load in started]
            products = parts.computing(step, k)
            out += parts.spread(products, others) if others else products
        return out

    def _ahead(self, t: Expr) -> Expr:
        ahead = t + self.parts.number(self.stages)
        known = constant(self.parts.loop.extent) is not None
        return ahead if known else tirx.min(ahead, self.parts.last)

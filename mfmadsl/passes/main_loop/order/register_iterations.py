"""The iterations of a main loop whose fragments come from memory, past the LDS.

A wave loads what its own matrix instructions take, several iterations ahead, in registers of as
many sets, and computes fragments of it where they are needed. No wave waits for another one:

    iteration t    what set t % sets has of it becomes fragments
                   loads of iteration t + sets into that set
                   products

It is for products of few rows, whose waves share nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from tvm.tirx import AllocBuffer, Buffer, BufferStore, Expr, For, ForKind, SeqStmt, Stmt, Var

from mfmadsl.passes.main_loop.analysis.halves import sum_words
from mfmadsl.passes.main_loop.analysis.register_use import RegisterUse, register_sets
from mfmadsl.passes.main_loop.moves.put import Put
from mfmadsl.passes.main_loop.order.parts import Parts, in_other_registers, words
from mfmadsl.passes.tir import device
from mfmadsl.passes.tir.error import NotUnderstoodError
from mfmadsl.passes.tir.expression import constant, elements_of, loads_of


def register_iterations(parts: Parts) -> list[Stmt]:
    """The statements that stand in place of the loop."""
    return _RegisterIterations(parts).emit()


class _RegisterIterations:
    def __init__(self, parts: Parts) -> None:
        count = constant(parts.loop.extent)
        if count is None:
            raise NotUnderstoodError("it loads fragments from memory in steps of unknown number")
        self.parts, self.count = parts, count
        self.sets = self._sets()

    def _sets(self) -> list[Mapping[int, Buffer]]:
        """For the registers of each fetch, those of another set; those of the first are its own."""
        traffic, kernel = self.parts.traffic, self.parts.traffic.kernel
        own, sums = sum(map(words, self.parts.repeated)), sum_words(traffic.steps)
        most = register_sets(own, kernel.waves, kernel.groups, sums, kernel.chip)
        if kernel.register_use is not RegisterUse.TWO_AHEAD:
            most = 1
        return [
            {f.registers.__chandle__(): f.another_registers(f"_{n}") for f in self.parts.repeated}
            if n
            else {}
            for n in range(min(most, self.count))
        ]

    def emit(self) -> list[Stmt]:
        parts, sets, count = self.parts, len(self.sets), self.count
        out: list[Stmt] = [AllocBuffer(each) for own in self.sets for each in own.values()]
        out += [AllocBuffer(each) for each in self._fragments()]
        out += parts.entry()
        for number in range(sets):
            out += self._loaded(parts.number(number), number)
            if not number:
                out += parts.filled()
            out.append(device.keep_order())
        rounds = max(0, count - sets - parts.last_first) // sets
        first = 0
        if parts.last_first:  # its edges are other code than that of all others
            out += self._iteration(parts.number(0), 0, sets < count)
            first = 1
        if rounds:
            variable = Var("round", parts.dtype)
            body: list[Stmt] = []
            for number in range(first, first + sets):
                t = variable * parts.number(sets) + parts.number(number)
                body += self._iteration(t, number, True)
            ends = parts.number(0), parts.number(rounds)
            out.append(For(variable, *ends, ForKind.SERIAL, SeqStmt(body)))
        for number in range(rounds * sets + first, count):
            out += self._iteration(parts.number(number), number, number + sets < count)
        return out

    def _fragments(self) -> list[Buffer]:
        """What the loop itself does not allocate of them."""
        known = {a.buffer.__chandle__() for a in self.parts.traffic.main.allocations}
        made = {put.buffer.__chandle__(): put.buffer for put in self.parts.traffic.puts}
        return [each for handle, each in made.items() if handle not in known]

    def _loaded(self, t: Expr, number: int) -> list[Stmt]:
        """The loads of the iteration that is done as number `t`."""
        is_last = constant(t) == 0 and self.parts.last_first
        fetched = self.parts.fetched(t, is_last)
        return in_other_registers(fetched, self.sets[number % len(self.sets)])

    def _iteration(self, t: Expr, number: int, loads: bool) -> list[Stmt]:
        """Iteration `t`, with the registers of iteration `number`, and maybe the loads of another
        one into them."""
        parts, own = self.parts, self.sets[number % len(self.sets)]
        k, is_last = parts.iteration(t), constant(t) == 0 and parts.last_first
        out: list[Stmt] = []
        puts = list(parts.traffic.puts)
        for step in range(len(parts.traffic.steps)):
            for product in parts.computing(step, k):
                needed = [p for p in puts if _fills(p, product)]
                puts = [p for p in puts if p not in needed]
                for put in needed:
                    out += in_other_registers(put.statements(k, is_last or parts.always), own)
                out.append(product)
                if needed:
                    out.append(device.keep_order())
        if loads:
            ahead = parts.number(len(self.sets))
            out += [*self._loaded(t + ahead, number), device.keep_order()]
        return out


def _fills(put: Put, product: BufferStore) -> bool:
    """Whether a put makes some of what a product takes."""
    made = {(put.buffer.__chandle__(), constant(each.place)) for each in put.run}
    return any(
        (load.source.__chandle__(), n) in made
        for load in loads_of(product.value)
        for n in elements_of(load.indices[0])
    )

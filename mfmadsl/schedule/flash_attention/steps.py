"""Which keys a workgroup walks over, and in which steps some of its queries do not see some."""

from __future__ import annotations

from dataclasses import dataclass

from tvm import tirx
from tvm.sym import Analyzer
from tvm.tirx import Expr

from mfmadsl.passes.tir.expression import constant, loads_of
from mfmadsl.schedule.flash_attention.described import at_places, narrow
from mfmadsl.schedule.flash_attention.elements import divides
from mfmadsl.schedule.flash_attention.loops import held
from mfmadsl.schedule.flash_attention.wave import Cut, WavePlace


@dataclass(frozen=True)
class Phase:
    """Steps one after the other, of which the next one's scores have masks, or all of them none."""

    first: Expr
    count: Expr
    masked: bool


@dataclass(frozen=True)
class KeySteps:
    """The first key, how many steps there are, and these in phases."""

    start: Expr
    count: Expr
    phases: tuple[Phase, ...]

    @property
    def some(self) -> Expr:
        """Whether there are any."""
        return self.has(tirx.const(0, "int32"))

    def has(self, number: Expr) -> Expr:
        """Whether there is a step of a number."""
        return Analyzer().simplify(number < self.count)

    def key(self, number: Expr, cut: Cut) -> Expr:
        """The first key of a step."""
        return self.start + number * cut.tiling.keys


def steps_of(cut: Cut, place: WavePlace) -> KeySteps:
    """The steps of a workgroup: keys that none of its queries sees are left out.

    Masks that move with a query's place cut a corner off the first and off the last tiles.
    """
    axes, keys, simplify = cut.found.axes, cut.tiling.keys, Analyzer().simplify
    zero, extent = tirx.const(0, "int32"), place.keys
    seen = cut.seen
    rows = (
        place.group_row,
        tirx.min(place.group_row + (cut.tiling.block - 1), place.rows - 1),
    )
    first, last = ({**place.batch, axes.row.var: row} for row in rows)
    end = whole_end = extent
    start = begin = zero
    if seen.end is not None:
        end = tirx.min(end, _among("end", at_places(seen.end, last), extent))
        whole_end = tirx.min(extent, _among("whole_end", at_places(seen.end, first), extent))
    if seen.first is not None:
        least = tirx.max(_among("first", at_places(seen.first, first), extent), 0)
        start = tirx.floordiv(least, keys) * keys
    count = simplify(tirx.floordiv(tirx.max(end - start, 0) + (keys - 1), keys))
    if cut.tiling.splits > 1:
        # By a number, which costs less than by as many parts as there are.
        each = tirx.floordiv(count + (cut.tiling.splits - 1), cut.tiling.splits)
        own = place.split * each
        start = start + own * keys
        count = simplify(tirx.max(tirx.min(count - own, each), 0))
    if cut.score.is_plain and divides(keys, extent):
        return KeySteps(simplify(start), count, (Phase(zero, count, False),))
    # A step makes the scores of the following one.
    if seen.first is not None:
        whole = tirx.max(_among("whole", at_places(seen.first, last), extent), 0) - start
        begin = tirx.max(tirx.min(tirx.floordiv(whole + (keys - 1), keys) - 1, count), 0)
    until = tirx.floordiv(tirx.max(whole_end - start, 0), keys) - 1
    until = simplify(tirx.max(tirx.min(until, count), begin))
    phases = (
        Phase(zero, simplify(begin), True),
        Phase(simplify(begin), simplify(until - begin), False),
        Phase(until, simplify(count - until), True),
    )
    left = tuple(each for each in phases if constant(each.count) != 0)
    return KeySteps(simplify(start), count, left)


def _among(name: str, key: Expr, extent: Expr) -> Expr:
    """The number of a key; where it is read of memory, the nearest one that there is, or that
    behind them, for passes to know what it may be."""
    key = narrow(key)
    return held(name, tirx.max(tirx.min(key, extent), 0)) if loads_of(key) else key

"""The conditions under which neighbours in memory are wanted, and what becomes of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import tvm_ffi
from tvm import tirx
from tvm.sym import Analyzer
from tvm.tirx import Expr

from mfmadsl.passes.main_loop.analysis.loop import Loop
from mfmadsl.passes.main_loop.moves.element import MemorySource
from mfmadsl.passes.tir.expression import WORD, bytes_of, constant, depends, multiple_of, substitute
from mfmadsl.passes.tir.linear import bounded, largest


@dataclass(frozen=True)
class Edges:
    """Where `fixed` (for all iterations alike) or `moving` conditions fail, the load goes past the
    buffer's end.

    Where those of `masks` fail, element by element, it is cleared. `starts_inside` says that it
    starts in the buffer, `passes_end` that it may end behind it, for only its first element was
    asked, `is_beyond` that all of it may lie there, where nobody looks at what is loaded, and
    `always` that others than the last iteration may meet a moving condition or a mask.
    """

    fixed: tuple[Expr, ...]
    moving: tuple[Expr, ...]
    masks: tuple[tuple[Expr, ...], ...]
    starts_inside: bool
    passes_end: bool
    is_beyond: bool
    always: bool

    @property
    def are_last(self) -> bool:
        """Whether there are none but in the last iteration."""
        return not self.fixed and not self.always

    @property
    def is_ragged(self) -> bool:
        """Whether some iteration may differ from the others."""
        return bool(self.moving) or any(self.masks)


@dataclass(frozen=True)
class Stays:
    """Whether loads that are not sent past the end of the buffer end in it: in all iterations but
    the last one, and in all."""

    before_last: bool
    always: bool


def edges_of(
    run: Sequence[MemorySource], loop: Loop, exact: bool, exchanged: Mapping[tirx.Var, Expr]
) -> Edges:
    """The edges of neighbours; if not `exact`, whatever is read past an edge will do.

    Lanes may have exchanged what they load.
    """
    k, first = loop.variable, run[0]
    shared = [c for c in first.conditions if all(_among(c, s.conditions) for s in run)]
    loose = _distinct(
        c for s in (() if exact else run) for c in s.edges if loop.moving_edges or not depends(c, k)
    )
    # Where nobody looks at what an iteration loads, to ask would cost more than to load.
    unasked = [c for c in first.conditions if _among(c, loose) and depends(c, k)]
    # One that differs along the run is taken from the first: where it fails, no one looks at the
    # others. Past the end of a row there may be elements of the next one that someone wants.
    asked = [
        c
        for c in first.conditions
        if not _among(c, unasked)
        and (_among(c, shared) or (_among(c, loose) and all(_fails_with(s, c) for s in run)))
    ]
    moving = [c for c in asked if depends(c, k)]
    unmasked = [*loose, *shared]
    masks = tuple(tuple(c for c in s.conditions if not _among(c, unmasked)) for s in run)
    checked = [*moving, *(c for each in masks for c in each)]
    return Edges(
        fixed=tuple(substitute(c, exchanged) for c in asked if not depends(c, k)),
        moving=tuple(substitute(c, exchanged) for c in moving),
        masks=masks,
        starts_inside=_starts_inside(first, asked, loop),
        passes_end=not is_whole(run)
        and any(_among(c, loose) and not _among(c, shared) for s in run for c in s.conditions),
        is_beyond=bool(unasked),
        always=any(not loop.holds_before_last(c) for c in checked),
    )


def stays_inside(run: Sequence[MemorySource], loop: Loop, edges: Edges, is_shifted: bool) -> Stays:
    """What is sure of the loads of neighbours; `is_shifted` says that the aligned words around them
    are loaded."""
    if not is_shifted and not edges.passes_end:
        return Stays(before_last=True, always=True)
    buffer, size = constant(bytes_of(run[0].buffer)), run[0].size
    if buffer is None:
        return Stays(before_last=False, always=False)
    conditions = [*edges.fixed, *edges.moving]

    def ends_inside(analyzer: Analyzer) -> bool:
        most = largest(run[0].place, conditions, analyzer)
        if most is None:
            return False
        start, length = most * size, len(run) * size
        if is_shifted:  # where it is aligned already, the word behind it is loaded as well
            start, length = start // WORD * WORD, length + WORD
        return start + length <= buffer

    return Stays(ends_inside(loop.before_last), ends_inside(loop.analyzer))


def is_whole(run: Sequence[MemorySource]) -> bool:
    """Whether a run is aligned to its own length, and the buffer ends where such a run does."""
    elements = 1
    for extent in run[0].buffer.shape:
        elements *= multiple_of(extent)
    return not (multiple_of(run[0].place) % len(run) or elements % len(run))


def _starts_inside(first: MemorySource, conditions: Sequence[Expr], loop: Loop) -> bool:
    """Whether a load starts in the buffer, where the conditions do not send it past the end.

    A load that ends behind the buffer gives zeros there; one that starts before it is a fault.
    """
    before = largest(loop.analyzer.simplify(-first.place), conditions, loop.analyzer)
    return before is not None and before <= 0


def _fails_with(source: MemorySource, condition: Expr) -> bool:
    """Whether a source is not wanted where a bound fails: it has the same one of no less."""
    whole = bounded(condition)
    if whole is None:
        return _among(condition, source.edges)
    for own in filter(None, map(bounded, source.edges)):
        if tvm_ffi.structural_equal(own[1], whole[1]):
            more = constant(Analyzer().simplify(own[0] - whole[0]))
            if more is not None and more >= 0:
                return True
    return False


def _among(condition: Expr, others: Sequence[Expr]) -> bool:
    """Whether one of the others is written alike."""
    return any(tvm_ffi.structural_equal(condition, other) for other in others)


def _distinct(conditions: Iterable[Expr]) -> list[Expr]:
    """Those of which none before is written alike."""
    found: list[Expr] = []
    for each in conditions:
        if not _among(each, found):
            found.append(each)
    return found

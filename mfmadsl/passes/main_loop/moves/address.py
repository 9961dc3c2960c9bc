"""Addresses of loads: a base for all lanes, an offset of a lane, an offset of an iteration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil

import tvm_ffi
from tvm import tirx
from tvm.sym import IntervalSet
from tvm.tirx import Buffer, Expr

from mfmadsl.passes.main_loop.analysis.loop import Loop
from mfmadsl.passes.main_loop.moves.element import MemorySource
from mfmadsl.passes.tir.error import NotUnderstoodError
from mfmadsl.passes.tir.expression import (
    WORD,
    bits_of,
    bytes_of,
    constant,
    i32,
    multiplied_out,
    narrowed,
    parted,
    substitute,
    total,
    variables_of,
    widened,
)
from mfmadsl.passes.tir.linear import counts_down, linear_in
from mfmadsl.passes.tir.walk import mapped, walk

SPAN_LIMIT = 1 << 31
"""Bytes that a tile may span: a lane's offset has 31 bits."""


@dataclass(frozen=True)
class Address:
    """A place in bytes: `origin` is the same for all lanes, `own` a lane's, and iterations add
    `step`, each `every` of them `times`; there was a `phase` before the first. Where lanes are at
    `lead` of a further such step in an iteration, some take it earlier than others.

    A scalar offset has no sign. Where iterations go down, `origin` is that of the last one, whose
    number is `last`, and `step` leads from it to the others. `ahead` is a constant, apart from
    `own` so that neighbours can have that in common.

    `span` is from the first byte that a lane may reach in an iteration to the end of the last one,
    and `reach` what all iterations add together; both are of extents that are known at the launch,
    perhaps. `is_whole` says that LLVM must take no constant out of `own`: what is left may be
    negative.
    """

    origin: Expr
    own: Expr
    step: Expr
    span: Expr
    reach: Expr
    is_whole: bool
    ahead: int = 0
    last: Expr | None = None
    every: int = 1
    phase: Expr = field(default_factory=lambda: i32(0))
    times: int = 1
    lead: Expr | None = None

    def at(self, k: Expr, as_scalar: bool = False) -> tuple[Expr, Expr]:
        """(origin, scalar offset) of iteration `k`: a scalar on demand, or if it fits 31 bits.

        All iterations and a lane's own offset have to fit together: the descriptor counts no more.
        """
        k = k if self.last is None else self.last - k
        if self.every > 1:
            k = self._moved(k) // self.every - self.phase // self.every
        if constant(self.step) == 0:
            return self.origin, i32(0)
        reach, span = constant(self.reach), constant(self.span)
        if as_scalar or (reach is not None and span is not None and reach + span < SPAN_LIMIT):
            return self.origin, narrowed(k) * narrowed(self.step)
        return self.origin + widened(k) * self.step, i32(0)

    def further(self, k: Expr) -> Expr | None:
        """What a lane's own offset is more in iteration `k`, where that differs among lanes."""
        if self.lead is None:
            return None
        steps = (tirx.floormod(self._moved(k), self.every) + self.lead) // self.every
        return steps * narrowed(self.step)

    def _moved(self, k: Expr) -> Expr:
        return narrowed(k) * self.times + self.phase


def address_of(
    run: Sequence[MemorySource], loop: Loop, exchanged: Mapping[tirx.Var, Expr], share: bool
) -> Address:
    """The address of neighbours, where lanes may have exchanged what they load.

    With `share` a constant is taken apart; all lanes' have to exist, but in the last iteration
    perhaps. Raises NotUnderstoodError if it is not linear in the loop, has no bounds, or spans too
    much.
    """
    first, size = run[0], run[0].size
    named = f"`{first.buffer.name}[{first.place}]`"
    steps = _steps(first.place, loop)
    if steps is None:
        raise NotUnderstoodError(f"{named} is not linear in the loop")
    step, rest = steps.step, steps.rest
    terms = multiplied_out(rest)
    uniform = [t for t in terms if loop.is_uniform(t) and variables_of(t)]
    own = total(
        [t for t in terms if not (loop.is_uniform(t) and variables_of(t))], str(rest.ty.dtype)
    )
    least = int(loop.analyzer.const_int_bound(own).min_value)
    if least <= -SPAN_LIMIT:
        raise NotUnderstoodError(f"{named} has no lower bound")
    if constant(own) is not None or least < 0:
        own = loop.analyzer.simplify(own - least)
    else:
        least = 0
    origin = total(uniform, "int64") + least
    counts_up = all(int(loop.analyzer.const_int_bound(p).min_value) >= 0 for p in (origin, step))
    furthest = own
    if steps.lead is not None:
        furthest = own + narrowed(step) * ((steps.lead + (steps.every - 1)) // steps.every)
    span = _span(run, furthest, loop, counts_up)
    check_span(span, first)
    own, ahead = _apart(own, loop) if share else (own, 0)
    goes_down = int(loop.analyzer.const_int_bound(step).min_value) < 0
    if goes_down and constant(step) is None:
        raise NotUnderstoodError(f"{named} may go down in the loop, by a step that is not known")
    last = loop.count - 1 if goes_down else None
    if steps.every > 1 and (goes_down or constant(step) is None):
        raise NotUnderstoodError(
            f"{named} goes down each {steps.every} iterations, or by a step that is not known"
        )
    if last is not None:
        origin, step = origin + widened(last) * widened(step), -step
    return Address(
        origin=origin * size,
        own=narrowed(substitute(own, exchanged)) * size,
        step=widened(step) * size,
        span=span,
        reach=loop.analyzer.simplify(
            widened(loop.count) * widened(step) * (size * ceil(steps.times / steps.every))
        ),
        is_whole=_has_negative_parts(own, loop),
        ahead=ahead * size,
        last=last,
        every=steps.every,
        phase=steps.phase,
        times=steps.times,
        lead=None if steps.lead is None else substitute(steps.lead, exchanged),
    )


@dataclass(frozen=True)
class _Steps:
    """A place that is `step` times a number of steps, and `rest` before the first of them.

    There are `times` steps each `every` iterations, where a `phase` of one was before the first,
    and for some lanes a `lead`.
    """

    step: Expr
    rest: Expr
    every: int = 1
    phase: Expr = field(default_factory=lambda: i32(0))
    times: int = 1
    lead: Expr | None = None


def _steps(place: Expr, loop: Loop) -> _Steps | None:
    """How a place moves in a loop; None if it is not linear in the number of such steps."""
    variable = loop.variable
    if (parts := linear_in(place, variable)) is not None:
        return _Steps(*parts)
    found: list[tirx.FloorDiv] = []
    walk(place, (tirx.FloorDiv, found.append))
    counting = [each for each in found if variable in variables_of(each)]
    if not counting or not all(tvm_ffi.structural_equal(e, counting[0]) for e in counting):
        return None
    every, progress = constant(counting[0].b), _progress(counting[0].a, loop)
    if every is None or progress is None:
        return None
    number = tirx.Var(variable.name, variable.ty)

    def numbered(each: tirx.FloorDiv) -> Expr:
        return number if variable in variables_of(each) else each

    parts = linear_in(mapped(place, (tirx.FloorDiv, numbered)), number)
    if parts is None or any(variable in variables_of(part) for part in parts):
        return None
    (step, rest), (times, phase, lead) = parts, progress
    return _Steps(step, rest + step * (phase // every), every, phase, times, lead)


def _progress(numerator: Expr, loop: Loop) -> tuple[int, Expr, Expr | None] | None:
    """(how often the iteration's number is in a sum, what is added, the same for all threads, what
    is added by each, if anything); None if it is no such sum."""
    parts = linear_in(numerator, loop.variable)
    times = None if parts is None else constant(parts[0])
    if parts is None or times is None or times < 1:
        return None
    terms = multiplied_out(parts[1])
    phase = total([term for term in terms if loop.is_uniform(term)], "int32")
    own = [term for term in terms if not loop.is_uniform(term)]
    if not own:
        return times, narrowed(phase), None
    lead = narrowed(total(own, "int32"))
    if int(loop.analyzer.const_int_bound(lead).min_value) < 0:
        return None
    return times, narrowed(phase), lead


def _has_negative_parts(own: Expr, loop: Loop) -> bool:
    """Whether something in a sum may be negative; a quotient that was read is lowered to one that
    is, and a constant that makes up for it."""
    return counts_down(own, loop.analyzer) or any(v in loop.gathered for v in variables_of(own))


def _apart(own: Expr, loop: Loop) -> tuple[Expr, int]:
    """A lane's place without the constant in it, and that constant; in whole words."""
    moving, number = parted(own)
    if number <= 0 or number % WORD or int(loop.analyzer.const_int_bound(moving).min_value) < 0:
        return own, 0
    return moving, number


def _span(run: Sequence[MemorySource], own: Expr, loop: Loop, counts_up: bool) -> Expr:
    """`counts_up` says that nothing that is added to a lane's own place is negative."""
    analyzer, known = loop.analyzer, {}
    for v in variables_of(own):
        if v.name in loop.symbols:
            continue
        if v.name not in loop.threads and counts_up:
            return bytes_of(run[0].buffer)  # of all workgroups, which together reach all of it
        bound = analyzer.const_int_bound(v)
        largest_of_type = (1 << bits_of(v.ty.dtype) - 1) - 1
        ends = (int(bound.min_value), min(int(bound.max_value), largest_of_type))
        known[v] = IntervalSet(*(tirx.const(end, str(v.ty.dtype)) for end in ends))
    # In 64 bits: TVM computes the ends in the type of the expression, and wraps around.
    most = analyzer.int_set(widened(own), known).max_value if known else widened(own)
    if constant(most) is None and not variables_of(most):
        raise NotUnderstoodError(f"`{run[0].buffer.name}[{own}]` has no upper bound")
    return analyzer.simplify((most + len(run)) * run[0].size)


def over_all_iterations(address: Address, buffer: Buffer, loop: Loop) -> Address:
    """The address with the span of all iterations together: all of the buffer, where workgroups
    have different numbers of them."""
    if any(v.name not in loop.symbols for v in variables_of(address.reach)):
        return replace(address, span=bytes_of(buffer))
    return replace(address, span=loop.analyzer.simplify(address.span + address.reach))


def check_span(span: Expr, source: MemorySource) -> None:
    """Raises NotUnderstoodError if it is known to be too long."""
    number = constant(span)
    if number is not None and number >= SPAN_LIMIT:
        raise NotUnderstoodError(
            f"a tile of `{source.buffer.name}` spans {number} bytes, which offsets of 31 bits "
            "cannot tell"
        )

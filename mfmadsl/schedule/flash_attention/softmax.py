"""The softmax of an attention's step, in the lanes that have the scores.

A lane has scores of one query, and so have a few others; only the largest is exchanged among them
in each step. The sum of exponentials stays apart in each lane up to the end.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, inf, log2

from tvm import tirx
from tvm.ir import TensorLoad
from tvm.script.ir_builder import tirx as script
from tvm.tirx import Buffer, Expr

from mfmadsl.passes.tir.device import device, intrinsic
from mfmadsl.passes.tir.walk import mapped
from mfmadsl.schedule.flash_attention.chain import at
from mfmadsl.schedule.flash_attention.definition import LOWEST
from mfmadsl.schedule.flash_attention.described import at_places
from mfmadsl.schedule.flash_attention.elements import divides
from mfmadsl.schedule.flash_attention.loops import loops
from mfmadsl.schedule.flash_attention.score import unmasked
from mfmadsl.schedule.flash_attention.wave import CHAINS, Cut, WavePlace, WaveRegisters
from mfmadsl.schedule.product.nest import same

_KNOWN = 28  # bits before the point of numbers that are rounded by at most 8


def clear(cut: Cut, held: WaveRegisters) -> None:
    """No score yet, and no sum."""
    sizes, zero = cut.sizes, tirx.const(0, "float32")
    with cut.lanes() as lane:
        for c, n, r in loops(sizes.columns, sizes.queries, cut.sums):
            script.buffer_store(held.o, zero, [c, n, lane, r])
        for (n,) in loops(sizes.queries):
            script.buffer_store(held.total, zero, [n, lane, 0])
            lowest = tirx.const(LOWEST, "float32")
            script.buffer_store(held.largest, lowest, [n, lane, 0])
            script.buffer_store(held.before, lowest, [n, lane, 0])
            if not cut.subtracts:
                script.buffer_store(held.off, zero, [n, lane, 0])


def rescale(cut: Cut, held: WaveRegisters) -> None:
    """Bring the sums so far in proportion to what the largest score is now."""
    sizes = cut.sizes
    with cut.lanes() as lane:
        for (n,) in loops(sizes.queries):
            less = held.total[n, lane, 0] * held.rescale[n, lane, 0]
            script.buffer_store(held.total, less + held.partial[n, lane, 0], [n, lane, 0])
        for c, n, r in loops(sizes.columns, sizes.queries, cut.sums):
            less = held.o[c, n, lane, r] * held.rescale[n, lane, 0]
            script.buffer_store(held.o, less, [c, n, lane, r])


def lower(cut: Cut, held: WaveRegisters) -> None:
    """Bring sums of exponentials that were raised to what they are."""
    sizes, factor = cut.sizes, tirx.const(2.0**-cut.raised, "float32")
    with cut.lanes() as lane:
        for (n,) in loops(sizes.queries):
            script.buffer_store(held.total, held.total[n, lane, 0] * factor, [n, lane, 0])
        for c, n, r in loops(sizes.columns, sizes.queries, cut.sums):
            script.buffer_store(held.o, held.o[c, n, lane, r] * factor, [c, n, lane, r])


def softmax(cut: Cut, place: WavePlace, held: WaveRegisters, start: Expr, masked: bool) -> None:
    """The exponentials of S, whose first key is `start`, as P; their sum, and the largest score."""
    with cut.lanes() as lane:
        make_scores(cut, place, held, start, lane, masked)
        for (n,) in loops(cut.sizes.queries):
            find_largest(cut, held, n, lane)
            make_exponentials(cut, held, n, lane)
            add_up(cut, held, n, lane)
            make_factors(cut, held, n, lane)


def make_scores(
    cut: Cut, place: WavePlace, held: WaveRegisters, start: Expr, lane: Expr, masked: bool
) -> None:
    """What the workload makes of the products in S."""
    if masked or not cut.score.is_plain:
        for x, n, r in loops(cut.sizes.keys, cut.sizes.queries, cut.sums):
            score = _score(cut, place, held, start, (x, n, lane, r), masked)
            script.buffer_store(held.s, score, [x, n, lane, r])


def find_largest(cut: Cut, held: WaveRegisters, n: Expr, lane: Expr) -> None:
    """The largest score of a query up to this step, and by what older sums become less."""
    own, factor = (n, lane, 0), tirx.const(cut.score.exponent, "float32")
    _largest_of_step(cut, held, n, lane)
    exchange(cut, held.partial, n, lane, largest_of)
    script.buffer_store(held.before, held.largest[own], list(own))
    new = largest_of(held.largest[own], held.partial[own])
    script.buffer_store(held.largest, new, list(own))
    less = held.before[own] - held.largest[own]
    if cut.subtracts:
        script.buffer_store(held.rescale, exp2(less * factor), list(own))
        return
    script.buffer_store(held.factor, _factor(cut, held.largest[own]), list(own))
    script.buffer_store(held.offset, -held.largest[own] * held.factor[own], list(own))
    script.buffer_store(held.off_before, held.off[own], list(own))
    off = multiplied_and_added(held.largest[own], held.factor[own], held.offset[own])
    script.buffer_store(held.off, off, list(own))
    power = multiplied_and_added(less, factor, held.off[own] - held.off_before[own])
    script.buffer_store(held.rescale, exp2(power), list(own))


def make_exponentials(cut: Cut, held: WaveRegisters, n: Expr, lane: Expr) -> None:
    """The exponentials of a query's scores, in their place."""
    own = n, lane, 0
    for x, r in loops(cut.sizes.keys, cut.sums):
        score = held.s[x, n, lane, r]
        if cut.subtracts:
            less = (score - held.largest[own]) * tirx.const(cut.score.exponent, "float32")
            power = less + tirx.const(cut.raised, "float32") if cut.raised else less
        else:
            power = multiplied_and_added(score, held.factor[own], held.offset[own])
        script.buffer_store(held.s, power, [x, n, lane, r])
    # Apart from the exponentials: so LLVM computes two of them at a time.
    for x, r in loops(cut.sizes.keys, cut.sums):
        script.buffer_store(held.s, exp2(held.s[x, n, lane, r]), [x, n, lane, r])


def add_up(cut: Cut, held: WaveRegisters, n: Expr, lane: Expr) -> None:
    """The sum of a lane's exponentials of a query, in several chains."""
    count = cut.sizes.keys * cut.sums
    _begin(cut, held, n, lane)
    for (y,) in loops(count - CHAINS):
        chain = tirx.floormod(y, CHAINS)
        more = held.s[_element(y + CHAINS, n, lane, cut.sums)]
        script.buffer_store(held.partial, held.partial[n, lane, chain] + more, [n, lane, chain])
    for (y,) in loops(CHAINS - 1):
        joined = held.partial[n, lane, 0] + held.partial[n, lane, y + 1]
        script.buffer_store(held.partial, joined, [n, lane, 0])


def make_factors(cut: Cut, held: WaveRegisters, n: Expr, lane: Expr) -> None:
    """P, of a query's exponentials: the elements of a lane stay in it."""
    factors = cut.chain.second.b.layout.elements_per_lane
    for (y,) in loops(cut.sizes.keys * cut.sums):
        power = held.s[_element(y, n, lane, cut.sums)]
        own = _element(y, n, lane, factors)
        script.buffer_store(held.p, power.astype(cut.found.dtype), list(own))


def _score(
    cut: Cut, place: WavePlace, held: WaveRegisters, start: Expr,
    element: tuple[Expr, Expr, Expr, Expr], masked: bool,
) -> Expr:  # fmt: skip
    """What the workload makes of an element of S, in which keys behind the last one are masked."""
    axes, (x, n, lane, r) = cut.found.axes, element
    row = at(cut.chain.row, lane=lane, register=r)
    key = start + cut.key_of(x * cut.chain.intrinsic.m + row)
    value = cut.score.value
    if not masked:
        value = unmasked(value, axes)

    def held_read(load: TensorLoad) -> Expr:
        for read in cut.score.reads:
            if same(load, read.load):
                register = held.reads[read.name]
                return register[x, n, lane, r] if read.of_keys else register[n, lane, 0]
        return load

    value = mapped(value, (TensorLoad, held_read))
    places = {
        cut.score.product: held.s[x, n, lane, r], axes.key.var: key,
        axes.row.var: cut.row(place, n, lane), **place.batch,
    }  # fmt: skip
    value = at_places(value, places)
    if masked and not divides(cut.tiling.keys, place.keys):
        value = tirx.Select(key < place.keys, value, tirx.const(-inf, "float32"))
    return value


def _largest_of_step(cut: Cut, held: WaveRegisters, n: Expr, lane: Expr) -> None:
    """The largest of a lane's scores of a query, in several chains of which each takes two more at
    a time."""
    count, both = cut.sizes.keys * cut.sums, 2 * CHAINS
    _begin(cut, held, n, lane)

    def score(y: Expr) -> Expr:
        return held.s[_element(y, n, lane, cut.sums)]

    for twice, chain in loops((count - CHAINS) // both, CHAINS):
        first = CHAINS + twice * both + chain
        new = largest_of(held.partial[n, lane, chain], score(first), score(first + CHAINS))
        script.buffer_store(held.partial, new, [n, lane, chain])
    left = (count - CHAINS) % both
    for (chain,) in loops(left):
        new = largest_of(held.partial[n, lane, chain], score(count - left + chain))
        script.buffer_store(held.partial, new, [n, lane, chain])
    for (y,) in loops(CHAINS // 2 - 1):
        chains = [held.partial[n, lane, each] for each in (0, 2 * y + 1, 2 * y + 2)]
        script.buffer_store(held.partial, largest_of(*chains), [n, lane, 0])
    last = largest_of(held.partial[n, lane, 0], held.partial[n, lane, CHAINS - 1])
    script.buffer_store(held.partial, last, [n, lane, 0])


def _begin(cut: Cut, held: WaveRegisters, n: Expr, lane: Expr) -> None:
    """Chains begin with a value each."""
    for (y,) in loops(CHAINS):
        script.buffer_store(held.partial, held.s[_element(y, n, lane, cut.sums)], [n, lane, y])


def largest_of(*values: Expr) -> Expr:
    """The largest of two or three numbers, in one instruction."""
    return device("float32", f"largest.of.{len(values)}", *values)


def exchange(
    cut: Cut, buffer: Buffer, n: Expr, lane: Expr, both: Callable[[Expr, Expr], Expr]
) -> None:
    """Reduce over the lanes that have a query: each of them gets the result."""
    for distance in cut.chain.distances:
        own, lanes = buffer[n, lane, 0], 2 * distance
        if cut.chip.swaps_halves:
            joined = both(_half(own, "first", lanes), _half(own, "second", lanes))
        else:
            joined = both(own, _half(own, "other", lanes))
        script.buffer_store(buffer, joined, [n, lane, 0])


def _half(value: Expr, which: str, lanes: int) -> Expr:
    """What one half of so many lanes has, each lane of which has the same."""
    bits = device("int32", f"{which}.half.of.{lanes}", tirx.reinterpret("int32", value))
    half: Expr = tirx.reinterpret("float32", bits)
    return half


def _element(y: Expr, n: Expr, lane: Expr, each: int) -> tuple[Expr, Expr, Expr, Expr]:
    """The place of a lane's element y, of so many in each tile."""
    return tirx.floordiv(y, each), n, lane, tirx.floormod(y, each)


def _factor(cut: Cut, largest: Expr) -> Expr:
    """What scores of a query are multiplied with, whose largest one is known.

    A multiple of that is subtracted from the same multiple of each score, in one instruction, which
    rounds once; but the multiple of the largest one has been rounded before, and is `off` by that:
    all exponentials of the query are, until their sum divides them. Where it would be off by more
    than 8, two scores that differ do so by 16 or more, and any greater factor says the same: there
    it is a power of two, of which the multiple is not off.
    """
    factor = cut.score.exponent
    power = 2.0 ** ceil(log2(factor))
    beyond: Expr = tirx.const(power, "float32")
    if power > 1:  # the multiple of a number that is as large as can be would be none
        beyond = tirx.Select(_is_below(largest, 2.0**126 / power), beyond, tirx.const(1, "float32"))
    known = _is_below(largest, 2.0**_KNOWN / factor)
    return tirx.Select(known, tirx.const(factor, "float32"), beyond)


def _is_below(value: Expr, bound: float) -> Expr:
    below: Expr = tirx.abs(value) < tirx.const(min(bound, 2.0**127), "float32")
    return below


def multiplied_and_added(value: Expr, factor: Expr, offset: Expr) -> Expr:
    """A product and a sum in one instruction, rounded once."""
    return intrinsic("float32", "llvm.fma.f32", value, factor, offset)


def exp2(value: Expr) -> Expr:
    """2 to a power in one instruction: what is less than the least normal number is zero."""
    return intrinsic("float32", "llvm.amdgcn.exp2.f32", value)

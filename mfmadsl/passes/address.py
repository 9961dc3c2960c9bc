"""Where neighbours in memory are loaded from: a base for all lanes, a lane's offset, a turn's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tvm import tirx
from tvm.sym import IntervalSet, detect_linear_equation

from mfmadsl.passes.element import Source
from mfmadsl.passes.error import NotUnderstoodError
from mfmadsl.passes.expression import (
    constant,
    i32,
    multiplied_out,
    narrowed,
    substitute,
    total,
    variables_of,
)
from mfmadsl.passes.linear import counts_down
from mfmadsl.passes.loop import Loop

SPAN_LIMIT = 1 << 31
"""Bytes that a tile may span: a lane's offset has 31 bits."""


@dataclass(frozen=True)
class Address:
    """In bytes: `origin` is the same for all lanes, `own` a lane's, and each turn adds `step`.

    `span` is from the first byte that a lane may reach in a turn to the end of the last one, and
    `reach` what all turns add together; both are of extents that are known at the launch, perhaps.
    """

    origin: Any
    own: Any
    step: Any
    span: Any
    reach: Any
    counts_down: bool

    def at(self, k: Any, as_scalar: bool = False) -> tuple[Any, Any]:
        """(origin, scalar offset) of turn `k`: a scalar if asked for, or if 31 bits have room."""
        number, reach = constant(self.step), constant(self.reach)
        if number == 0:
            return self.origin, i32(0)
        if as_scalar or (reach is not None and reach < SPAN_LIMIT):
            return self.origin, narrowed(k) * narrowed(self.step)
        far = tirx.Cast("int64", k) * tirx.Cast("int64", self.step)
        return self.origin + far, i32(0)


def address_of(run: Sequence[Source], loop: Loop, exchanged: Mapping[tirx.Var, Any]) -> Address:
    """That of neighbours, where lanes may have exchanged what they load.

    Raises NotUnderstoodError if it is not linear in the loop, or has no bounds.
    """
    first, size = run[0], run[0].size
    named = f"`{first.buffer.name}[{first.place}]`"
    parts = detect_linear_equation(first.place, [loop.variable])
    if len(parts) != 2:
        raise NotUnderstoodError(f"{named} is not linear in the loop")
    step, rest = parts
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
    number = constant(step)
    way = step if number is None else tirx.const(abs(number), str(step.ty.dtype))
    return Address(
        origin=(total(uniform, "int64") + least) * size,
        own=narrowed(substitute(own, exchanged)) * size,
        step=step * size,
        span=_span(run, own, loop),
        reach=loop.analyzer.simplify(loop.count * way * size),
        counts_down=counts_down(own, loop.analyzer),
    )


def _span(run: Sequence[Source], own: Any, loop: Loop) -> Any:
    known = {}
    for v in variables_of(own):
        if v.name not in loop.symbols:
            bound = loop.analyzer.const_int_bound(v)
            ends = (int(bound.min_value), int(bound.max_value))
            known[v] = IntervalSet(*(tirx.const(end, str(v.ty.dtype)) for end in ends))
    most = loop.analyzer.int_set(own, known).max_value if known else own
    if constant(most) is None and not variables_of(most):
        raise NotUnderstoodError(f"`{run[0].buffer.name}[{own}]` has no upper bound")
    return loop.analyzer.simplify((_wide(most) + len(run)) * run[0].size)


def over_all_turns(address: Address, loop: Loop) -> Address:
    """With the span of all turns together."""
    return replace(address, span=loop.analyzer.simplify(address.span + _wide(address.reach)))


def check_span(address: Address, source: Source) -> None:
    """Raises NotUnderstoodError if it is known to be too long."""
    number = constant(address.span)
    if number is not None and number >= SPAN_LIMIT:
        raise NotUnderstoodError(
            f"a tile of `{source.buffer.name}` spans {number} bytes, which offsets of 31 bits "
            "cannot tell"
        )


def _wide(value: Any) -> Any:
    """In 64 bits, which any number of bytes has room in."""
    number = constant(value)
    return tirx.const(number, "int64") if number is not None else tirx.Cast("int64", value)

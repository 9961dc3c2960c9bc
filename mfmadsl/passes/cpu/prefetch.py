"""What a loop reads, asked for some iterations ahead.

    for k in T.serial(n, annotations={"mfmadsl.prefetch": 16}):
        sums[0:16] = sums[0:16] + panel[k * 16:k * 16 + 16]

becomes

    for k in range(n):
        prefetch(panel[(k + 16) * 16])
        sums[0:16] = sums[0:16] + panel[k * 16:k * 16 + 16]

A panel goes from the second cache to the first one line after the other. A processor foresees that,
but not soon enough for a loop that takes a line every few cycles.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from tvm import tirx
from tvm.sym import Analyzer
from tvm.tirx import (
    AllocBuffer,
    Buffer,
    BufferStore,
    DeclBuffer,
    Evaluate,
    Expr,
    For,
    ForKind,
    PrimFunc,
    SeqStmt,
    Stmt,
)

from mfmadsl.passes.tir.error import LoweringError
from mfmadsl.passes.tir.expression import (
    bits_of,
    constant,
    loads_of,
    step_of,
    substitute,
    variables_of,
)
from mfmadsl.passes.tir.rewrite import with_body
from mfmadsl.passes.tir.walk import mapped, walk

Values: TypeAlias = dict[tirx.Var, Expr]

PREFETCH = "mfmadsl.prefetch"
"""The annotation of a loop whose vectors are prefetched: so many iterations ahead."""

_LINE = 64
"""Bytes of a cache line."""


def prefetch_vectors(function: PrimFunc) -> PrimFunc:
    """The function, with flat buffers and its vectors made, where such loops ask for their lines.

    Asked for are vectors of neighbours that move on by the same distance in each iteration; what is
    read element by element is not. Nothing is read past the end of a buffer: a prefetch never
    faults. Raises LoweringError for an annotation that is no number of iterations.
    """
    _check_annotations(function)

    def loop(node: For) -> For:
        ahead = constant(_asked(node))
        if ahead is None:
            return node
        iteration, own = node.loop_var, _own(node.body)
        read = [
            (load.source, substitute(place, {iteration: iteration + ahead}))
            for body, values in _unrolled(node.body, {})
            for load in loads_of(body)
            for place in _vector(load.indices[0], values)
            if step_of(place, iteration) not in (None, 0)
            and not own.intersection(v.__chandle__() for v in (load.source, *variables_of(place)))
        ]
        rest = {key: value for key, value in node.annotations.items() if key != PREFETCH}
        body = tirx.stmt_seq(*_prefetches(read), node.body)
        return For(iteration, node.min, node.extent, node.kind, body, None, rest)

    return with_body(function, mapped(function.body, (For, loop)))


def _asked(loop: For) -> Expr | None:
    """How many iterations ahead a loop asks; None of one that does not."""
    return (loop.annotations or {}).get(PREFETCH)


def _check_annotations(function: PrimFunc) -> None:
    found: list[Expr | None] = []
    walk(function.body, (For, lambda node: found.append(_asked(node))))
    for value in found:
        ahead = constant(value)
        if value is not None and (ahead is None or ahead < 1):
            raise LoweringError(
                f"annotation {PREFETCH}: is a number of iterations, 1 or more, not {value}"
            )


def _unrolled(body: Stmt, values: Values) -> Iterator[tuple[Stmt, Values]]:
    """The statements of each iteration, those of unrolled loops one by one, with loop values.

    What stands under a condition or in another loop is left out.
    """
    if isinstance(body, SeqStmt):
        for each in body.seq:
            yield from _unrolled(each, values)
    elif isinstance(body, For) and body.kind == ForKind.UNROLLED and constant(body.extent):
        for number in range(int(body.extent)):
            iteration = tirx.const(number, str(body.loop_var.ty.dtype))
            yield from _unrolled(body.body, {**values, body.loop_var: body.min + iteration})
    elif isinstance(body, BufferStore | Evaluate):
        yield body, values


def _own(body: Stmt) -> set[object]:
    """What is not there before an iteration: its values and buffers, by their handles."""
    own: set[object] = set()
    values, buffers = (tirx.Bind, tirx.Let), (AllocBuffer, DeclBuffer)
    walk(
        body,
        (values, lambda node: own.add(node.var.__chandle__())),
        (buffers, lambda node: own.add(node.buffer.__chandle__())),
    )
    return own


def _vector(index: Expr, values: Values) -> Iterator[Expr]:
    """The first element of a vector of neighbours, if an index is one."""
    if isinstance(index, tirx.Ramp) and constant(index.stride) == 1:
        yield substitute(index.base, values)


def _prefetches(places: Iterable[tuple[Buffer, Expr]]) -> list[Stmt]:
    """Ask for the lines of elements, each once, to be read, and kept in all caches."""
    taken: list[tuple[Buffer, Expr]] = []
    for buffer, place in places:
        if not any(_share_line(buffer, place, *other) for other in taken):
            taken.append((buffer, Analyzer().simplify(place)))
    addresses = [
        tirx.call_intrin("handle", "tirx.address_of", tirx.BufferLoad(buffer, [place]))
        for buffer, place in taken
    ]
    return [
        Evaluate(tirx.call_intrin("void", "tirx.prefetch", address, 0, 3, 1))
        for address in addresses
    ]


def _share_line(buffer: Buffer, place: Expr, other: Buffer, before: Expr) -> bool:
    """Whether an element lies less than a line behind another one."""
    if not buffer.same_as(other):
        return False
    distance = constant(Analyzer().simplify(place - before))
    return distance is not None and 0 <= distance * bits_of(buffer.dtype) // 8 < _LINE

"""Register steps that read each place of the LDS into one register.

What belongs to a row or a column of a tile, such as a scale, is the same for many of the sums that
a lane holds. A schedule may give each of them a register of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import tvm_ffi
from tvm import tirx
from tvm.ir import TensorLoad
from tvm.tirx import BufferStore, Expr

from mfmadsl.passes.tir.expression import constant, load_of, loads_of
from mfmadsl.passes.tir.walk import mapped

Step = tuple[list[BufferStore], list[BufferStore]]
"""Reads of the LDS, and what is computed then."""

_Register = tuple[int, int | None]


def read_once(steps: Sequence[Step]) -> list[Step]:
    """The register steps, each with one read of a place.

    Arrays stay as they are if a step uses an element that it does not read, or several at once, or
    fills one twice.
    """
    kept: set[int] = set()
    for reads, computing in steps:
        filled = Counter(_register(read) for read in reads)
        kept |= {
            handle
            for handle, place in (*_used(computing), *filled)
            if place is None or filled[handle, place] != 1
        }
    return [_step(reads, computing, kept) for reads, computing in steps]


def _step(reads: list[BufferStore], computing: list[BufferStore], kept: set[int]) -> Step:
    first: dict[tuple[int, str, tvm_ffi.StructuralKey], BufferStore] = {}
    instead: dict[_Register, BufferStore] = {}
    for read in reads:
        load = load_of(read)
        index = tvm_ffi.StructuralKey(load.indices[0])
        place = load.source.__chandle__(), str(read.buffer.dtype), index
        if read.buffer.__chandle__() not in kept and first.setdefault(place, read) is not read:
            instead[_register(read)] = first[place]
    if not instead:
        return reads, computing

    def taken(node: TensorLoad) -> Expr:
        other = instead.get((node.source.__chandle__(), constant(node.indices[0])))
        return node if other is None else tirx.BufferLoad(other.buffer, list(other.indices))

    return [read for read in reads if _register(read) not in instead], [
        BufferStore(s.buffer, mapped(s.value, (TensorLoad, taken)), list(s.indices))
        for s in computing
    ]


def _register(store: BufferStore) -> _Register:
    return store.buffer.__chandle__(), constant(store.indices[0])


def _used(computing: Sequence[BufferStore]) -> Iterator[_Register]:
    for statement in computing:
        for load in loads_of(statement.value):
            yield load.source.__chandle__(), constant(load.indices[0])

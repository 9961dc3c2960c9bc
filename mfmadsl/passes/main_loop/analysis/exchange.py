"""Reads of the LDS in which lanes exchange what they read, where the library describes such ones.

What the lanes want of a tile that lies the other way round is scattered: each register of a lane is
from another row. An instruction is right for it if there is an address for each lane such that what
comes back, by the instruction's description, is what was wanted.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import tvm_ffi
from tvm import tirx
from tvm.tirx import BufferStore, Expr

from mfmadsl.model import Read
from mfmadsl.model.closed_form import ClosedForm, closed_form
from mfmadsl.passes.tir.expression import (
    NotNumbersError,
    among,
    bits_of,
    constant,
    i32,
    load_of,
    multiple_of,
    numbers,
    of_length,
    ramp,
    terms_of,
    total,
    variables_of,
)

_RESULT = re.compile(r"\.v(\d+)i(\d+)$")


def exchanged(
    reads: Sequence[BufferStore], lane: tirx.Var | None, available: Sequence[Read], lanes: int
) -> list[BufferStore]:
    """Reads of single elements, those in a row replaced where one instruction brings them.

    `lane` is that of a wave of so many `lanes`, and `available` are the instructions of the chip.
    """
    found: list[BufferStore] = []
    waiting = list(reads)
    while waiting:
        made = None if lane is None else _first(waiting, lane, available, lanes)
        if made is None:
            found.append(waiting.pop(0))
        else:
            statement, count = made
            found.append(statement)
            del waiting[:count]
    return found


def _first(
    reads: Sequence[BufferStore], lane: tirx.Var, available: Sequence[Read], lanes: int
) -> tuple[BufferStore, int] | None:
    for read in available:
        group = reads[: read.registers]
        if len(group) == read.registers and _follow(group) and _fits(group[0], read):
            place = _address(group, lane, read, lanes)
            if place is not None:
                return _statement(group, place, read), read.registers
    return None


def _fits(store: BufferStore, read: Read) -> bool:
    return (
        bits_of(store.buffer.dtype) == read.bits
        and bits_of(load_of(store).source.dtype) == read.bits
    )


def _follow(group: Sequence[BufferStore]) -> bool:
    """Whether they fill registers in a row from one tile."""
    first = group[0]
    start = constant(first.indices[0])
    return start is not None and all(
        s.buffer.same_as(first.buffer)
        and load_of(s).source.same_as(load_of(first).source)
        and constant(s.indices[0]) == start + n
        for n, s in enumerate(group)
    )


def _address(group: Sequence[BufferStore], lane: tirx.Var, read: Read, lanes: int) -> Expr | None:
    """What each lane has to give as its address, in elements; None if nothing will do."""
    parts = [_parted(load_of(s).indices[0], lane) for s in group]
    first = parts[0][1]
    if not all(tvm_ffi.structural_equal(uniform, first) for _, uniform in parts):
        return None
    try:
        where = [numbers(own, {lane.name: np.arange(lanes)}) for own, _ in parts]
    except NotNumbersError:
        return None  # the lane's part depends on something else
    wanted = np.stack([np.broadcast_to(each, (lanes,)) for each in where], axis=1)
    sources, elements = _origins(read, lanes)
    given = np.zeros(lanes, np.int64)
    given[sources[elements == 0]] = wanted[elements == 0]
    if np.any(wanted != given[sources] + elements):
        return None
    form = closed_form(lambda x: int(given[x]), {"lane": lanes})
    if form is None:
        return None
    place = _expression(form, lane) + first
    # The chip takes addresses that are aligned to what a lane reads.
    return None if multiple_of(place) % read.registers else place


def _parted(place: Expr, lane: tirx.Var) -> tuple[Expr, Expr]:
    """The lane's part of a place, with what is constant, and that which all lanes share."""
    terms = [(term, variables_of(term)) for term in terms_of(place)]
    shared = [bool(found) and not among(lane, found) for _, found in terms]
    own = [term for (term, _), is_shared in zip(terms, shared, strict=True) if not is_shared]
    uniform = [term for (term, _), is_shared in zip(terms, shared, strict=True) if is_shared]
    return total(own), total(uniform)


@lru_cache(maxsize=16)
def _origins(read: Read, lanes: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The lane and the element from which each lane gets each register, (lanes, registers)."""
    found = [[read.origin(x, register) for register in range(read.registers)] for x in range(lanes)]
    origins = np.asarray(found, np.int64)
    return origins[..., 0], origins[..., 1]


def _expression(form: ClosedForm, lane: tirx.Var) -> Expr:
    value: Expr = i32(form.constant)
    for digit in form.digits:
        part = tirx.floordiv(lane, i32(digit.divisor))
        if digit.divisor * digit.modulus < digit.extent:
            part = tirx.floormod(part, i32(digit.modulus))
        value = value + part * i32(digit.scale)
    return value


def _statement(group: Sequence[BufferStore], place: Expr, read: Read) -> BufferStore:
    first = group[0]
    match = _RESULT.search(read.call)
    assert match is not None, "LLVM's reads of this kind give vectors of integers"
    result = of_length(f"int{match[2]}", int(match[1]))
    address = tirx.address_of(tirx.BufferLoad(load_of(first).source, [place]))
    # It reads memory: LLVM must not take it for a function of its address alone.
    value = tirx.call_llvm_intrin(result, read.call, address)
    kind = of_length(str(first.buffer.dtype), read.registers)
    return BufferStore(
        first.buffer, tirx.reinterpret(kind, value), [ramp(first.indices[0], read.registers)]
    )

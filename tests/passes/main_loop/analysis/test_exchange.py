"""Reads in which lanes exchange elements are taken where they bring what is wanted."""

from __future__ import annotations

from typing import Any

import pytest
from tvm import tirx
from tvm.tirx import BufferLoad, BufferStore

from mfmadsl.language import reads
from mfmadsl.model import Read
from mfmadsl.model.closed_form import closed_form
from mfmadsl.passes.main_loop.analysis.exchange import exchanged
from mfmadsl.passes.tir.expression import calls_of, load_of, name_of

LANE, STEP = tirx.Var("lane", "int32"), tirx.Var("step", "int32")


def expression(function: Any) -> Any:
    """An integer function of a lane as one of the variable."""
    form = closed_form(function, {"lane": 64})
    assert form is not None
    value: Any = tirx.const(form.constant, "int32")
    for digit in form.digits:
        part = tirx.floormod(tirx.floordiv(LANE, digit.divisor), digit.modulus)
        value = value + part * digit.scale
    return value


def wanted(read: Read, stride: int, off: int = 0) -> list[BufferStore]:
    """What the read brings if lane n reads from `n * stride` on; the last one `off` too far."""
    kind = f"int{read.bits}"
    tile = tirx.decl_buffer((1 << 14,), kind, "tile", scope="shared")
    held = tirx.decl_buffer((read.registers,), kind, "held", scope="local")

    def place(lane: int, register: int) -> int:
        source, element = read.origin(lane, register)
        return source * stride + element + (off if register == read.registers - 1 else 0)

    return [
        BufferStore(
            held,
            BufferLoad(tile, [expression(lambda lane, r=r: place(lane, r)) + STEP * 1024]),
            [tirx.const(r, "int32")],
        )
        for r in range(read.registers)
    ]


@pytest.mark.parametrize("read", list(reads().values()), ids=lambda read: read.name)
@pytest.mark.parametrize("stride", [8, 64])
def test_what_a_read_brings_is_read_by_it(read: Read, stride: int) -> None:
    (found,) = exchanged(wanted(read, stride), LANE, [read], 64)
    assert any(name_of(call).startswith("call_llvm") for call in calls_of(found.value))


def in_another_turn(stores: list[BufferStore]) -> list[BufferStore]:
    """The last of them from a place that goes on faster."""
    *others, last = stores
    load = load_of(last)
    place = load.indices[0] + STEP
    return [*others, BufferStore(last.buffer, BufferLoad(load.source, [place]), list(last.indices))]


@pytest.mark.parametrize("read", list(reads().values()), ids=lambda read: read.name)
def test_what_it_does_not_bring_is_not(read: Read) -> None:
    for statements, lane, available in (
        (wanted(read, 8, 1), LANE, [read]),
        (wanted(read, read.registers + 1), LANE, [read]),
        (wanted(read, 8)[::-1], LANE, [read]),
        (in_another_turn(wanted(read, 8)), LANE, [read]),
        (wanted(read, 8), None, [read]),
        (wanted(read, 8), STEP, [read]),
        (wanted(read, 8), LANE, []),
    ):
        assert exchanged(statements, lane, available, 64) == statements

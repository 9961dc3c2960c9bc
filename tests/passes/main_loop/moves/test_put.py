"""Fewer bytes than a word, taken out of the words that were fetched."""

from __future__ import annotations

from typing import Any

import pytest
import tvm_ffi
from tvm import tirx
from tvm.ir import Call, TensorLoad
from tvm.tirx import BufferStore

from mfmadsl.passes.main_loop.moves.element import Element, MemorySource
from mfmadsl.passes.main_loop.moves.fetch import fetch_of
from mfmadsl.passes.main_loop.moves.put import Put
from mfmadsl.passes.tir.expression import numbers
from tests.passes.main_loop.moves.test_fetch import LANE, K, facts

WORD = 0x1E2D3C4B


def stored(dtype: str, chosen: list[int]) -> int:
    """What is stored of the elements of a word that was fetched."""
    size = 2 if dtype == "float16" else 1
    memory = tirx.decl_buffer((4096,), dtype, "A")
    tile = tirx.decl_buffer((4096,), dtype, "tile", scope="shared")
    places = [LANE * (4 // size) + n for n in range(4 // size)]
    fetch = fetch_of([MemorySource(memory, place, ()) for place in places], facts(), 0)
    home = {
        (tile.__chandle__(), memory.__chandle__(), tvm_ffi.StructuralKey(place)): (fetch, n)
        for n, place in enumerate(places)
    }
    run = tuple(
        Element(tile, LANE * 8 + n, tirx.BufferLoad(memory, [places[number]]), ())
        for n, number in enumerate(chosen)
    )
    (store,) = Put(run, home, K, LANE * 8).statements(K, False)
    assert isinstance(store, BufferStore)

    def word(_: TensorLoad) -> Any:
        return tirx.const(WORD, "int32")

    value = tvm_ffi.structural_map(store.value, (TensorLoad, word))
    bits = value.args[0] if isinstance(value, Call) else value
    assert isinstance(bits, tirx.Cast)
    return int(numbers(bits.value, {}))


@pytest.mark.parametrize(
    ("dtype", "chosen", "expected"),
    [
        ("float16", [0], 0x3C4B),
        ("float16", [1], 0x1E2D),
        ("int8", [0], 0x4B),
        ("int8", [1], 0x3C),
        ("int8", [3], 0x1E),
        ("int8", [0, 1], 0x3C4B),
        ("int8", [1, 2], 0x2D3C),
        ("int8", [3, 0], 0x4B1E),
    ],
)
def test_elements_of_a_word_are_stored_where_they_belong(
    dtype: str, chosen: list[int], expected: int
) -> None:
    assert stored(dtype, chosen) == expected

"""Words of bytes from several rows: what becomes of a vectorized loop, and what it leaves alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from tvm.script import tirx as T
from tvm.tirx import PrimFunc

import mfmadsl
from mfmadsl.passes.cpu.interleave import interleave_rows

# mypy: disable-error-code="untyped-decorator,valid-type"
# ruff: noqa: N812 (TVMScript is `T`)


@T.prim_func(s_tir=True)
def bytes_of_four_rows(b: T.Buffer((512,), "int8"), own: T.Buffer((64,), "int8")) -> None:
    for lane in T.vectorized(64):
        own[lane] = b[lane % 4 * 128 + lane // 4 + 3]


@T.prim_func(s_tir=True)
def halves_of_two_rows(b: T.Buffer((256,), "int16"), own: T.Buffer((32,), "int16")) -> None:
    for lane in T.vectorized(32):
        own[lane] = b[lane % 2 * 128 + lane // 2]


@T.prim_func(s_tir=True)
def with_an_edge(b: T.Buffer((300,), "int8"), own: T.Buffer((64,), "int8")) -> None:
    for lane in T.vectorized(64):
        own[lane] = T.if_then_else(
            lane // 4 < 11 and lane % 4 < 3, b[lane % 4 * 100 + lane // 4], T.int8(5)
        )


@T.prim_func(s_tir=True)
def along_a_row(b: T.Buffer((128,), "int8"), own: T.Buffer((64,), "int8")) -> None:
    for lane in T.vectorized(64):
        own[lane] = b[lane + 1]


@T.prim_func(s_tir=True)
def words_of_a_column(b: T.Buffer((1024,), "int8"), own: T.Buffer((64,), "int8")) -> None:
    for lane in T.vectorized(64):
        own[lane] = b[lane // 4 * 64 + lane % 4]


@T.prim_func(s_tir=True)
def floats(b: T.Buffer((512,), "float32"), own: T.Buffer((64,), "float32")) -> None:
    for lane in T.vectorized(64):
        own[lane] = b[lane % 4 * 128 + lane // 4]


@T.prim_func(s_tir=True)
def no_whole_words(b: T.Buffer((512,), "int8"), own: T.Buffer((63,), "int8")) -> None:
    for lane in T.vectorized(63):
        own[lane] = b[lane % 4 * 128 + lane // 4]


@T.prim_func(s_tir=True)
def stored_apart(b: T.Buffer((512,), "int8"), own: T.Buffer((128,), "int8")) -> None:
    for lane in T.vectorized(64):
        own[lane * 2] = b[lane % 4 * 128 + lane // 4]


@T.prim_func(s_tir=True)
def one_after_the_other(b: T.Buffer((512,), "int8"), own: T.Buffer((64,), "int8")) -> None:
    for lane in range(64):
        own[lane] = b[lane % 4 * 128 + lane // 4]


CHANGED = (bytes_of_four_rows, halves_of_two_rows, with_an_edge)
LEFT = (
    along_a_row, words_of_a_column, floats, no_whole_words, stored_apart, one_after_the_other,
)  # fmt: skip


def ran(function: PrimFunc) -> npt.NDArray[Any]:
    """What a build leaves in `own`, of bytes that name their position."""
    source, target = function.params
    count = int(source.shape[0])
    data = (np.arange(count) * 37 % 251 - 125).astype(str(source.dtype))
    own = np.full(int(target.shape[0]), 99, str(target.dtype))
    mfmadsl.build_for_cpu(function.with_attr("global_symbol", "main"))(data, own)
    return own


@pytest.mark.parametrize("function", CHANGED, ids=lambda f: "")
def test_rows_are_loaded_and_words_are_made(function: PrimFunc) -> None:
    text = interleave_rows(function).script()
    assert "shift_left" in text or "<<" in text
    assert "% " not in text.split("reinterpret")[0].replace("%%", "")


@pytest.mark.parametrize("function", LEFT, ids=lambda f: "")
def test_other_loops_are_left_as_they_are(function: PrimFunc) -> None:
    assert interleave_rows(function).script() == function.script()


def test_bytes_of_four_rows_come_out_in_order() -> None:
    data = (np.arange(512) * 37 % 251 - 125).astype("int8")
    lanes = np.arange(64)
    np.testing.assert_array_equal(ran(bytes_of_four_rows), data[lanes % 4 * 128 + lanes // 4 + 3])


def test_halves_of_two_rows_come_out_in_order() -> None:
    data = (np.arange(256) * 37 % 251 - 125).astype("int16")
    lanes = np.arange(32)
    np.testing.assert_array_equal(ran(halves_of_two_rows), data[lanes % 2 * 128 + lanes // 2])


def test_past_an_edge_there_is_what_was_chosen() -> None:
    data = (np.arange(300) * 37 % 251 - 125).astype("int8")
    lanes = np.arange(64)
    inside = (lanes // 4 < 11) & (lanes % 4 < 3)
    places = np.where(inside, lanes % 4 * 100 + lanes // 4, 0)
    np.testing.assert_array_equal(ran(with_an_edge), np.where(inside, data[places], 5))


@pytest.mark.parametrize("function", [words_of_a_column, floats, no_whole_words, stored_apart])
def test_what_is_left_is_right_as_well(function: PrimFunc) -> None:
    source, target = function.params
    data = (np.arange(int(source.shape[0])) * 37 % 251 - 125).astype(str(source.dtype))
    count = 63 if function is no_whole_words else 64
    lanes = np.arange(count)
    column = function is words_of_a_column
    places = lanes // 4 * 64 + lanes % 4 if column else lanes % 4 * 128 + lanes // 4
    right = np.full(int(target.shape[0]), 99, str(target.dtype))
    right[lanes * (2 if function is stored_apart else 1)] = data[places]
    np.testing.assert_array_equal(ran(function), right)

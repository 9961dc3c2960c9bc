"""Batches of which each has as many keys as an argument says, also in pages."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tvm import tirx

import mfmadsl
from mfmadsl.error import ArgumentError
from tests.schedule.flash_attention.attended import Case

LENGTHS = Case(batch=4, heads=2, kv_heads=1, keys=192, lengths=(192, 77, 0, 1))
CASES = {
    "one query": replace(LENGTHS, queries=1),
    "several": replace(LENGTHS, queries=40),
    "causal": replace(LENGTHS, queries=70, causal=True),
    "the last keys": replace(LENGTHS, queries=70, window=50),
    "a bias": replace(LENGTHS, queries=33, bias=True),
    "any number": replace(LENGTHS, queries=40, symbolic="queries keys"),
    "any number of batches": replace(LENGTHS, queries=1, symbolic="batch keys"),
    "causal, any number": replace(LENGTHS, queries=5, symbolic="keys", causal=True),
    "no whole tile": replace(LENGTHS, keys=99, queries=20, lengths=(99, 98, 64, 2)),
}


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950"])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_each_batch_has_its_own(case: Case, arch: str) -> None:
    """Keys and values behind the last one are no numbers."""
    assert case.check(arch).remarks == ()


@pytest.mark.thorough
@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
@pytest.mark.parametrize("page_size", [1, 4, 16, 64])
@pytest.mark.parametrize("case", list(CASES.values())[:-1], ids=list(CASES)[:-1])
def test_pages_that_no_batch_has_are_never_read(case: Case, page_size: int, arch: str) -> None:
    assert replace(case, page_size=page_size).check(arch).remarks == ()


@pytest.mark.parametrize("splits", [1, 2, 7])
def test_parts_of_a_batch_that_has_fewer_keys_are_empty(splits: int) -> None:
    replace(CASES["one query"], page_size=16).check(splits=splits)


@pytest.mark.thorough
def test_lengths_beyond_the_keys_are_all_keys() -> None:
    case = replace(LENGTHS, queries=20, lengths=(192, 192, 192, 192))
    kernel = case.check()
    arguments, o, _ = case.arguments()
    arguments[3][:] = [193, 1 << 30, (1 << 31) - 1, 192]
    mfmadsl.sanitize(kernel, arguments)
    assert (o == case.arguments()[1]).sum() == 0  # all are written
    first = o.copy()
    arguments[3][:] = 192
    mfmadsl.sanitize(kernel, arguments)
    assert (o == first).all()


def test_lengths_below_zero_are_none() -> None:
    case = replace(LENGTHS, queries=20, lengths=(0, 0, 0, 0))
    kernel = case.check()
    arguments, o, _ = case.arguments()
    arguments[3][:] = [-1, -(1 << 31), 0, -7]
    mfmadsl.sanitize(kernel, arguments)
    assert (o == 0).all()


@pytest.mark.parametrize(
    ("keys", "told"),
    [(100, "100"), (tirx.Var("n", "int32"), "n"), (tirx.Var("n", "int32") * 8, r"n \* 8")],
)
def test_keys_that_are_not_whole_pages_are_refused(keys: object, told: str) -> None:
    message = rf"keys: is a multiple of page_size, 16, or a symbol .* `n \* 16`; not {told}"
    with pytest.raises(ArgumentError, match=message):
        mfmadsl.attention(1, 1, 1, keys, 64, pages=9)  # type: ignore[arg-type]


def test_keys_are_pages_in_either_order_of_the_factors() -> None:
    n = tirx.Var("n", "int32")
    for keys in (n * 16, tirx.Mul(tirx.const(16, "int32"), n)):
        function = mfmadsl.attention(1, 1, 1, keys, 64, pages=9)
        assert function.params[3].shape[1].same_as(n)


def test_an_odd_depth_in_pages_is_told_of() -> None:
    workload = mfmadsl.attention(1, 4, 40, 128, 63, pages=9, lengths=True)
    with pytest.warns(mfmadsl.SlowLoopWarning, match="no whole word: rows of an even number"):
        mfmadsl.build(mfmadsl.attention_schedule(workload))

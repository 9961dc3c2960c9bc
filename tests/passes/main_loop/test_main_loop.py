"""Loops of schedules of one's own: which ones the pipeline takes, and that they are right."""

from __future__ import annotations

from pathlib import Path
from runpy import run_path

import pytest

import mfmadsl
from tests.passes.own_product import assert_right, own_product


def test_a_loop_with_several_register_steps_is_taken() -> None:
    kernel = mfmadsl.build(own_product(32))
    assert not kernel.remarks
    assert_right(kernel)


def test_copies_may_come_after_reads_of_another_tile() -> None:
    path = Path(__file__).parents[3] / "examples" / "fused_chain" / "run.py"
    chain = run_path(str(path))
    kernel = mfmadsl.build(chain["chain_schedule"](chain["SMALL"]))
    assert not kernel.remarks


def test_copies_of_some_threads_only_are_taken() -> None:
    kernel = mfmadsl.build(own_product(16))  # 256 pieces for 512 threads
    assert not kernel.remarks
    assert_right(kernel)


def test_a_loop_without_copies_is_left_as_it_is() -> None:
    with pytest.warns(mfmadsl.SlowLoopWarning, match="has no place in it") as told:
        kernel = mfmadsl.build(own_product(32, copied=False))
    (remark,) = kernel.remarks
    assert [str(each.message) for each in told] == [f"{kernel.symbol}: {remark}"]
    assert told[0].filename == __file__
    assert_right(kernel)

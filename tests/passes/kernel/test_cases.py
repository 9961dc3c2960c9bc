"""The cases of a product: each under its condition, and annotations that leave it open refused."""

from __future__ import annotations

from typing import Any

import pytest
from tvm import te
from tvm.s_tir import Schedule

import mfmadsl
from mfmadsl.backend import LoweringError
from mfmadsl.passes.kernel.cases import REST, UP_TO
from mfmadsl.schedule import Case, Tiling
from tests.schedule.matrix_core.gemm.test_edges import plain

TILING = Tiling((16, 16), 64, (1, 1), "mfma_f32_16x16x16_f16", 2)


def scheduled() -> Schedule:
    cases = [Case(TILING, (16,)), Case(TILING, (32,)), Case(TILING)]
    return mfmadsl.gemm_schedule(plain(te.var("m"), 16, 64), tiling=cases)


def changed(case: str, key: str, value: Any) -> Schedule:
    sch = scheduled()
    block = sch.get_sblock(case)
    if key in sch.get(block).annotations:
        sch.unannotate(block, key)
    if value is not None:
        sch.annotate(block, key, value)
    return sch


def conditions(sch: Schedule) -> list[str]:
    return [str(kernel.condition) for kernel in mfmadsl.build(sch).chain()]


def test_each_case_has_its_extents() -> None:
    assert conditions(scheduled()) == [
        "int(m <= 16)", "(int(16 < m)) and (int(m <= 32))", "int(32 < m)"
    ]  # fmt: skip


def test_borders_are_moved_by_their_annotation() -> None:
    assert conditions(changed("C_case_1", UP_TO, [8])) == [
        "int(m <= 8)", "(int(8 < m)) and (int(m <= 32))", "int(32 < m)"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("case", "key", "value", "reason"),
    [
        ("C_case_2", UP_TO, [16], "both are for extents up to 16"),
        ("C_case_2", UP_TO, [0], "is a list of positive integers"),
        ("C_case_2", UP_TO, ["x"], "is a list of positive integers"),
        ("C_case_2", REST, 1, "2 cases of `C` take the rest"),
        ("C_case_3", REST, None, "0 cases of `C` take the rest"),
    ],
)
def test_what_leaves_it_open_is_refused(case: str, key: str, value: Any, reason: str) -> None:
    with pytest.raises(LoweringError, match=reason):
        mfmadsl.build(changed(case, key, value))

"""The cases of a product: each under its condition, and annotations that leave it open refused."""

from __future__ import annotations

from typing import Any

import pytest
import tvm_ffi
from tvm import te, tirx
from tvm.s_tir import SBlock, Schedule
from tvm.sym import Analyzer
from tvm.tirx import AttrStmt, PrimFunc

import mfmadsl
from mfmadsl.backend import LoweringError
from mfmadsl.passes.kernel.cases import REST, UP_TO, WHERE, marked_cases
from mfmadsl.passes.tir.block import with_parts
from mfmadsl.passes.tir.expression import constant, substitute, variables_of
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


def where(*cases: str) -> PrimFunc:
    """The product, some of whose cases ask for a flag."""
    flag = te.var("flag")

    def asking(block: SBlock) -> SBlock:
        told = {**block.annotations, WHERE: flag > 0}
        return with_parts(block, annotations=told) if block.name_hint in cases else block

    function = scheduled().mod["main"]
    return function.with_body(tvm_ffi.structural_map(function.body, (SBlock, asking)))


@pytest.mark.parametrize(("extent", "holds", "case"), [
    (1, 1, 0), (16, 1, 0), (17, 1, 1), (33, 1, 2), (1, 0, 2), (17, 0, 2), (33, 0, 2),
])  # fmt: skip
def test_where_a_condition_does_not_hold_the_rest_runs(extent: int, holds: int, case: int) -> None:
    found: list[AttrStmt] = []
    function = marked_cases(where("C_case_1", "C_case_2"))
    tvm_ffi.structural_walk(function.body, (AttrStmt, found.append))
    analyzer, values = Analyzer(), {"m": extent, "flag": holds}
    taken = []
    for each in (each for each in found if each.attr_key == "mfmadsl.case_condition"):
        known = {v: tirx.const(values[v.name], "int32") for v in variables_of(each.value)}
        taken.append(constant(analyzer.simplify(substitute(each.value, known))) == 1)
    assert taken == [n == case for n in range(3)]


def test_a_condition_of_one_case_alone_is_refused() -> None:
    with pytest.raises(LoweringError, match=r"have the same `mfmadsl\.case_where`, or none"):
        marked_cases(where("C_case_2"))

"""What the report says of several kernels of one function."""

from __future__ import annotations

import re

import pytest
from tvm import te

import mfmadsl
from mfmadsl.relax import MatrixCore
from mfmadsl.relax.report import ranges


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        ([()], [""]),
        ([(16,), ()], ["m <= 16", "m > 16"]),
        ([(16,), (64,), ()], ["m <= 16", "16 < m <= 64", "m > 64"]),
        ([(64,), (16, 256), ()], ["16 < m <= 64", "m <= 16, 64 < m <= 256", "m > 256"]),
        ([(16,), (64,), (32,)], ["m <= 16", "32 < m <= 64", "16 < m <= 32, m > 64"]),
    ],
)
def test_each_case_has_its_extents(limits: list[tuple[int, ...]], told: list[str]) -> None:
    assert ranges("m", limits) == told


def test_all_kernels_of_a_symbolic_extent_are_told() -> None:
    workload = mfmadsl.matmul(te.var("m"), 512, 256, "float16", "float32", b_transposed=True)
    rule = MatrixCore()
    rule.apply(workload.with_attr("global_symbol", "layer"), mfmadsl.target("gfx942"), False)
    (line,) = rule.report.functions
    cases = mfmadsl.gemm_cases(workload, arch="gfx942")
    assert [tiling for _, tiling in line.cases] == [case.tiling for case in cases]
    assert (line.tiling, len(cases) > 1) == (cases[-1].tiling, True)
    _, first, *rest = str(rule.report).splitlines()
    assert re.match(r"layer +mfmadsl  m <= \d+(, \d+ < m <= \d+)*: ", first)
    assert len(rest) == len(cases) - 1
    borders = [int(each) for case in cases for each in case.up_to]
    assert len(set(borders)) == len(borders)
    assert f"m > {max(borders)}: " in rest[-1]

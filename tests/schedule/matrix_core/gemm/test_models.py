"""The products of real language models build on every chip.

`make test` builds 110 shapes in the types that such models have, f16, bf16, fp8 and i8, with B in
both orders, and a few in f32, f64 and bf8; `make test-all` builds all shapes in all types.
"""

from __future__ import annotations

import pytest

import mfmadsl
from mfmadsl.model import ARCHITECTURES
from tests.cases import drawn
from tests.schedule.matrix_core.gemm.model_shapes import model_shapes
from tests.schedule.matrix_core.gemm.workloads import BF8, FP8, Workload

SHAPES = drawn(model_shapes(), 110)
OFTEN = ("float16", "bfloat16", "int8")


def workloads(arch: str, *types: str) -> list[Workload]:
    """The shapes in each of the types, with B as N x K and as K x N."""
    return [
        Workload(*shape, dtype, dtype, b_rows=b_rows)
        for shape in SHAPES
        for dtype in types
        for b_rows in (True, False)
    ]


def cases() -> list[tuple[str, Workload]]:
    found = []
    for arch in ARCHITECTURES:
        often = [*OFTEN, *(each[arch] for each in [FP8] if arch in each)]
        others = ["float32", *(each[arch] for each in [BF8] if arch in each)]
        if arch != "gfx908":
            others.append("float64")
        found += [(arch, each) for each in workloads(arch, *often)]
        seldom = workloads(arch, *others)
        found += [(arch, each) for each in drawn(seldom, 12)]
    return found


def name(case: object) -> str:
    if not isinstance(case, Workload):
        return str(case)
    order = "nk" if case.b_rows else "kn"
    return f"{case.m}x{case.n}x{case.k}-{case.a_type}-{order}"


def test_there_are_shapes_of_all_kinds() -> None:
    assert len(set(SHAPES)) == len(SHAPES) >= 110
    assert {m for m, _, _ in SHAPES} >= {1, 16, 128, 1000, 8192}
    assert len({(n, k) for _, n, k in SHAPES}) >= 55


@pytest.mark.parametrize(("arch", "workload"), cases(), ids=name)
def test_it_builds(arch: str, workload: Workload) -> None:
    kernel = mfmadsl.build(mfmadsl.gemm_schedule(workload.function(), arch=arch), arch)
    assert kernel.remarks == ()

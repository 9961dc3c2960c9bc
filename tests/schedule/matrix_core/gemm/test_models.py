"""The products of real language models build on every chip.

`make test` builds each shape on two chips, in a type and an order of B that go round, so that none
comes more often than others; `make test-all` builds each shape on all, in all types and orders.
"""

from __future__ import annotations

import random

import pytest

import mfmadsl
from mfmadsl.model import ARCHITECTURES
from tests.cases import ALL, SEED
from tests.schedule.matrix_core.gemm.model_shapes import model_shapes
from tests.schedule.matrix_core.gemm.workloads import BF8, FP8, Workload


def types_of(arch: str) -> list[str]:
    narrow = [each[arch] for each in (FP8, BF8) if arch in each]
    doubles = ["float64"] if arch != "gfx908" else []
    return ["float16", "bfloat16", "int8", "float32", *narrow, *doubles]


def workloads(arch: str, shape: tuple[int, int, int]) -> list[Workload]:
    """The shape in each of the types, with B as N x K and as K x N."""
    return [
        Workload(*shape, dtype, dtype, b_rows=b_rows)
        for dtype in types_of(arch)
        for b_rows in (True, False)
    ]


def cases() -> list[tuple[str, Workload]]:
    found = []
    for place, arch in enumerate(ARCHITECTURES):
        shapes = model_shapes()
        random.Random(SEED).shuffle(shapes)
        for number, shape in enumerate(shapes if ALL else shapes[place % 2 :: 2]):
            every = workloads(arch, shape)
            found += [(arch, each) for each in (every if ALL else [every[number % len(every)]])]
    return found


def name(case: object) -> str:
    if not isinstance(case, Workload):
        return str(case)
    order = "nk" if case.b_rows else "kn"
    return f"{case.m}x{case.n}x{case.k}-{case.a_type}-{order}"


def test_there_are_shapes_of_all_kinds() -> None:
    shapes = model_shapes()
    assert len(set(shapes)) == len(shapes) >= 110
    assert {m for m, _, _ in shapes} >= {1, 16, 128, 1000, 8192}
    assert len({(n, k) for _, n, k in shapes}) >= 55


@pytest.mark.parametrize(("arch", "workload"), cases(), ids=name)
def test_it_builds(arch: str, workload: Workload) -> None:
    kernel = mfmadsl.build(mfmadsl.gemm_schedule(workload.function(), arch=arch), arch)
    assert kernel.remarks == ()

"""The products of real language models build on every chip.

`make test` builds each shape on each chip, with a type and an order of B that are drawn: each type
and order in turn, so that none is drawn more often than others. `make test-all` builds all of them.
"""

from __future__ import annotations

import random

import pytest

import mfmadsl
from mfmadsl.model import ARCHITECTURES
from tests.cases import ALL, SEED
from tests.schedule.matrix_core.gemm.model_shapes import model_shapes
from tests.schedule.matrix_core.gemm.workloads import BF8, FP8, Workload

PLAIN = ("float16", "bfloat16", "float32", "int8")


def types_of(arch: str) -> list[str]:
    doubles = ["float64"] if arch != "gfx908" else []
    return [*PLAIN, *doubles, *(each[arch] for each in (FP8, BF8) if arch in each)]


def every(arch: str, shape: tuple[int, int, int]) -> list[Workload]:
    return [
        Workload(*shape, dtype, dtype, b_rows=b_rows)
        for dtype in types_of(arch)
        for b_rows in (True, False)
    ]


def cases() -> list[tuple[str, Workload]]:
    found = []
    for arch in ARCHITECTURES:
        shapes = model_shapes()
        random.Random(f"{SEED} {arch}").shuffle(shapes)
        for number, shape in enumerate(shapes):
            workloads = every(arch, shape)
            drawn = workloads if ALL else [workloads[number % len(workloads)]]
            found += [(arch, each) for each in drawn]
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

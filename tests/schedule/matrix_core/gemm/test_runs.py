"""Kernels run in the emulator, under the sanitizer, and give NumPy's numbers.

The emulator keeps every argument between guards: an access outside of one is an error. A random
part of all combinations is drawn, its seed in the name of each test and in the header of the run;
`make test-all` runs all of them.
"""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Iterator

import pytest

import mfmadsl
from mfmadsl.model import ARCHITECTURES
from mfmadsl.schedule import gemm_schedule
from tests.schedule.matrix_core.gemm.workloads import BF8, FP8, Workload

ALL = os.environ.get("MFMADSL_TESTS") == "all"
SEED = int(os.environ["MFMADSL_SEED"])
DRAWN = 48
EXTENTS = (1, 2, 3, 7, 13, 16, 17, 31, 32, 64, 65, 97, 128, 130, 192, 257)
DEPTHS = (1, 2, 5, 16, 31, 32, 64, 67, 96, 128, 200, 256, 509)
CHIPS = ("gfx90a", "gfx942", "gfx950")
Types = tuple[str, str]


def types_of(arch: str) -> list[Types]:
    plain = ["float16", "bfloat16", "int8", "float32", "float64"]
    pairs = [(name, name) for name in plain]
    if arch in FP8:
        narrow = FP8[arch], BF8[arch]
        pairs += itertools.product(narrow, narrow)
    return pairs


def shapes(draw: random.Random) -> Iterator[tuple[int, int, int]]:
    """Primes, ones, and multiples of tiles."""
    while True:
        yield draw.choice(EXTENTS), draw.choice(EXTENTS), draw.choice(DEPTHS)


def cases() -> list[tuple[str, Workload]]:
    draw = random.Random(SEED)
    shape = shapes(draw)
    found = [
        (arch, Workload(*next(shape), *types, *rows))
        for arch in CHIPS
        for types in types_of(arch)
        for rows in itertools.product((True, False), repeat=3)
        for _ in range(4 if ALL else 1)
    ]
    return found if ALL else draw.sample(found, DRAWN)


def name(case: object) -> str:
    if not isinstance(case, Workload):
        return str(case)
    lie = "".join("rc"[not rows] for rows in (case.a_rows, case.b_rows, case.c_rows))
    return f"{case.m}x{case.n}x{case.k}-{case.a_type}-{case.b_type}-{lie}-seed{SEED}"


@pytest.mark.parametrize(("arch", "workload"), cases(), ids=name)
def test_any_shape_type_and_layout(arch: str, workload: Workload) -> None:
    schedule = gemm_schedule(workload.function(), arch=arch)
    a, b, c = workload.operands()
    mfmadsl.sanitize(mfmadsl.build(schedule, arch), [a, b, c])
    assert workload.error(a, b, c) <= (0 if c.dtype.kind == "i" else 1)


def test_every_chip_is_tried() -> None:
    assert set(CHIPS) < set(ARCHITECTURES)


@pytest.mark.parametrize("arch", ["gfx908", "gfx942"])
def test_the_older_chip_and_its_own_instructions(arch: str) -> None:
    workload = Workload(70, 50, 90)
    a, b, c = workload.operands()
    mfmadsl.sanitize(mfmadsl.build(gemm_schedule(workload.function(), arch=arch), arch), [a, b, c])
    assert workload.error(a, b, c) <= 1

"""Every mutant of a correct kernel that is undefined or gives other numbers is caught.

Either the sanitizer finds what is undefined, or the result differs from the right one. Of a mutant
that neither tells, a chip that does everything as late as it may (see `late`) must give the right
numbers too, whatever the order of its waves: the fault that was planted is none.
"""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from mfmadsl.emulator import emulate
from mfmadsl.gemm import Gemm
from tests.emulator.sanitizer.late import emulate_late
from tests.emulator.sanitizer.mutants import Mutant, mutants
from tests.emulator.sanitizer.verdict import BUDGET, problem, verdict

SHARES = 8
SAMPLE = 30  # mutants of each share: 240 in all; `benchmarks/mutants.py` takes every one


@pytest.fixture(scope="module")
def planted() -> tuple[Gemm, list[Mutant], np.ndarray]:
    gemm, kernel = problem()
    a, b, c = gemm.operands()
    emulate(kernel, [a, b, c])
    return gemm, mutants(kernel), c


def test_the_right_kernel_is_right_on_the_late_chip() -> None:
    gemm, kernel = problem()
    for seed in range(3):
        a, b, c = gemm.operands()
        emulate_late(kernel, [a, b, c], seed, BUDGET)
        assert gemm.compare(a, b, c).agrees


@pytest.mark.parametrize("share", range(SHARES))
def test_no_mutant_escapes(share: int, planted: tuple[Gemm, list[Mutant], np.ndarray]) -> None:
    gemm, found, right = planted
    mine = random.Random(share).sample(found[share::SHARES], SAMPLE)
    seen = Counter[str]()
    for mutant in mine:
        caught = verdict(gemm, mutant, right)
        seen[caught] += 1
        if caught == "harmless":
            for seed in range(3):
                a, b, c = gemm.operands()
                emulate_late(mutant, [a, b, c], seed, BUDGET)
                assert gemm.compare(a, b, c).agrees, str(mutant)
    assert seen["harmless"] <= SAMPLE // 10, seen


def test_wrong_bounds_of_loops_are_caught() -> None:
    gemm, kernel = problem(512)
    a, b, c = gemm.operands()
    emulate(kernel, [a, b, c])
    bounds = [mutant for mutant in mutants(kernel) if mutant.kind == "bound wrong"]
    assert bounds
    assert "harmless" not in {verdict(gemm, mutant, c) for mutant in bounds}


def test_wait_states_that_are_dropped_are_told(
    planted: tuple[Gemm, list[Mutant], np.ndarray],
) -> None:
    gemm, found, right = planted
    dropped = [mutant for mutant in found if mutant.kind == "wait state dropped"]
    assert dropped
    assert {verdict(gemm, mutant, right) for mutant in dropped} == {"wait-states"}


def test_there_are_enough_of_every_kind(planted: tuple[Gemm, list[Mutant], np.ndarray]) -> None:
    kinds = Counter(mutant.kind for mutant in planted[1])
    assert SHARES * SAMPLE >= 200
    assert set(kinds) >= {
        "barrier dropped", "wait dropped", "wait weakened", "offset shifted", "register swapped",
        "operand swapped", "wait state dropped",
    }  # fmt: skip

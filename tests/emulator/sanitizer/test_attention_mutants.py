"""Faults planted in the machine code of attentions are caught, or do no harm.

A loop over keys has its copies an iteration ahead, as that of a GEMM has; what is new is what lanes
exchange of scores, the pages that are looked up ahead, and steps that only some workgroups take.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from functools import cache
from itertools import product

import numpy as np
import pytest

import mfmadsl
from mfmadsl import Kernel
from mfmadsl.emulator import EmulationError
from mfmadsl.emulator.sanitizer import sanitize
from tests.cases import drawn
from tests.conftest import ALL
from tests.emulator.sanitizer.late import emulate_late
from tests.emulator.sanitizer.mutants import Mutant, mutants
from tests.schedule.flash_attention.attended import Array, Case
from tests.schedule.flash_attention.packed_case import PackedCase

BUDGET = 200_000
SHARES, OF_EACH = 6, 60 if ALL else 12

CASES = {
    "causal": (Case(heads=2, queries=64, keys=150, depth=32, causal=True), "gfx942"),
    "pages": (Case(2, 2, 8, 192, 32, kv_heads=1, lengths=(190, 40), page_size=16), "gfx942"),
    "packed": (
        # What a query sees depends on its place, so that rows of another batch are wrong.
        PackedCase(
            2, 1, 70, 100, 32, lengths=(100, 40), q_lengths=(30, 70), packed="all", causal=True
        ),
        "gfx950",
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Right:
    """A kernel, and what it makes of the arguments."""

    kernel: Kernel
    results: tuple[Array, Array]


@cache
def right(name: str) -> Right:
    """The kernel of a case, in one launch."""
    case, arch = CASES[name]
    workload = case.workload()
    tiling = replace(mfmadsl.attention_tiling(workload, arch), splits=1)
    kernel = mfmadsl.build(mfmadsl.attention_schedule(workload, arch, tiling), arch)
    arguments, o, logarithm = case.arguments()
    sanitize(kernel, arguments)
    return Right(kernel, (o, logarithm))


@pytest.mark.parametrize(("name", "share"), drawn(product(CASES, range(SHARES)), 5))
def test_no_fault_escapes(name: str, share: int) -> None:
    planted = mutants(right(name).kernel, seed=share)
    chosen = random.Random(f"{name} {share}").sample(planted, OF_EACH)
    assert [str(mutant) for mutant in chosen if escapes(mutant, name)] == []


@pytest.mark.thorough
@pytest.mark.parametrize("name", list(CASES))
def test_it_is_right_on_the_late_chip(name: str) -> None:
    """So a mutant that is wrong there is no harmless one."""
    assert not any(differs_late(right(name).kernel, name, seed) for seed in range(2))


def escapes(mutant: Mutant, name: str) -> bool:
    """Whether nothing is found under the sanitizer, but a chip may be late enough for a fault."""
    arguments, *results = CASES[name][0].arguments()
    try:
        sanitize(mutant, arguments, budget=BUDGET)
    except EmulationError:
        return False
    if not same(results, right(name).results):
        return False
    return any(differs_late(mutant, name, seed) for seed in range(2))


def differs_late(kernel: Kernel | Mutant, name: str, seed: int) -> bool:
    """Whether results differ where a chip does everything as late as it may."""
    arguments, *results = CASES[name][0].arguments()
    emulate_late(kernel, arguments, seed, BUDGET)
    return not same(results, right(name).results)


def same(one: list[Array], other: tuple[Array, Array]) -> bool:
    """Whether results are alike, bit by bit."""
    return all(np.array_equal(a, b, equal_nan=True) for a, b in zip(one, other, strict=True))

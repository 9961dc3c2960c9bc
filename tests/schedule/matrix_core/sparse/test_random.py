"""Random products of a sparse A: right under the sanitizer, or refused.

A number stands for each of them: MFMADSL_FIRST=5000 takes those from there on, not the usual ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import mfmadsl
from mfmadsl import ArgumentError, ScheduleError
from mfmadsl.schedule.matrix_core.gemm import gemm_tilings
from mfmadsl.schedule.product.described import described_types
from tests.cases import FIRST
from tests.schedule.matrix_core.sparse.operands import numbers, sparse
from tests.schedule.matrix_core.sparse.test_gemm import kernel_of

SEEDS = range(FIRST, FIRST + 60)
EXTENTS = (1, 7, 16, 17, 33, 64, 100, 130)


@dataclass(frozen=True)
class Drawn:
    """A workload, and which of the tilings that are offered."""

    seed: int
    arch: str
    shape: tuple[int, int, int]
    types: tuple[str, str]
    batch: int | None
    b_transposed: bool
    index_order: str
    tiling: int

    @property
    def sound(self) -> bool:
        """Whether it has to be scheduled."""
        whole = self.shape[2] % (32 if self.index_order == "words" else 8) == 0
        return whole and self.types in described_types(sparse=True, arch=self.arch)


def drawn(seed: int) -> Drawn:
    rng = np.random.default_rng(seed + 10**8)

    def of(*choices: Any) -> Any:
        return choices[rng.integers(len(choices))]

    arch = of("gfx942", "gfx950")
    chip = arch if rng.random() < 0.9 else None  # any chip's
    types = of(*described_types(sparse=True, arch=chip))
    k = int(rng.integers(1, 60)) * of(8, 32, 32) + (4 if rng.random() < 0.1 else 0)
    return Drawn(
        seed, of(arch, arch, arch, "gfx90a"), (of(*EXTENTS), of(*EXTENTS), k), types,
        of(None, None, 2), bool(rng.random() < 0.5), of("rows", "words"), of(0, 0, 1, 4),
    )  # fmt: skip


def check(case: Drawn) -> None:
    """What is scheduled is right; only what is not sound is refused."""
    m, n, k = case.shape
    try:
        workload = mfmadsl.sparse_matmul(
            m, n, k, *case.types, case.b_transposed, case.batch, case.index_order
        )
        offered = gemm_tilings(workload, arch=case.arch)
        tiling = offered[min(case.tiling, len(offered) - 1)] if case.tiling else None
        kernel = kernel_of(workload, case.arch, tiling=tiling)
    except (ArgumentError, ScheduleError):
        if case.sound:
            raise
        return
    rng = np.random.default_rng(case.seed)
    lead = () if case.batch is None else (case.batch,)
    a = sparse(rng, (*lead, m, k), case.types[0])
    b = numbers(rng, (*lead, *((n, k) if case.b_transposed else (k, n))), case.types[1])
    index = a.index
    if case.index_order == "words":
        index = np.ascontiguousarray(np.moveaxis(index.reshape(*lead, m, k // 32, 4), -2, -3))
    c = np.full((*lead, m, n), 77, kernel.arguments[-1].dtype)
    mfmadsl.sanitize(kernel, [a.stored, index, b, c])
    y = b.astype(np.float64)
    y = np.swapaxes(y, -1, -2) if case.b_transposed else y
    bound = 0.0 if case.types[0] == "int8" else 2**-23 * k * (np.abs(a.values) @ np.abs(y))
    assert (np.abs(c - a.values @ y) <= bound).all(), case


@pytest.mark.parametrize("seed", SEEDS)
def test_workloads(seed: int) -> None:
    check(drawn(seed))


def test_most_workloads_have_to_be_scheduled() -> None:
    sound = sum(drawn(seed).sound for seed in SEEDS)
    assert 0.5 * len(SEEDS) < sound < 0.95 * len(SEEDS)

"""A kernel's numbers, as the interpreter computes them, against NumPy's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from b200 import Counts, Fault, execute
from examples.blackwell_gemm.ladder import Size, Step

ORDERS = ((0, True), (1, False), (2, False), (3, False), (4, True), (5, False))
"""Of warps, by a seed, and whether what is asynchronous ends late or at once: some mistakes show in
some orders only."""


@dataclass(frozen=True)
class Check:
    """How the interpreter's result differs from NumPy's, and what it has to complain of.

    `worst` is the largest error as a part of what rounding allows it to be.
    """

    size: Size
    worst: float
    faults: tuple[Fault, ...]
    counts: Counts

    @property
    def right(self) -> bool:
        return not self.faults and self.worst <= 1


def matrices(size: Size, seed: int = 0) -> list[Any]:
    """A, B (N x K), and C with what no kernel should leave there."""
    m, n, k = size
    generator = np.random.default_rng(seed)
    a, b = (generator.standard_normal((rows, k)).astype(np.float16) for rows in (m, n))
    return [a, b, np.full((m, n), np.nan, np.float16)]


def check(step: Step, sms: int) -> Check:
    """Run a step's kernel in the interpreter at its small size, on `sms` SMs, in several orders.

    Raises:
        ValueError: the kernel does not handle so many SMs.
    """
    worst = 0.0
    found: list[Fault] = []
    for seed, late in ORDERS:
        arrays = matrices(step.check)
        report = execute(step.kernel(step.check, sms), arrays, sms=sms, seed=seed, late=late)
        worst = max(worst, worst_error(*arrays))
        found += report.faults
    return Check(step.check, worst, tuple(dict.fromkeys(found)), report.counts)


def worst_error(a: Any, b: Any, c: Any) -> float:
    """Of C = A x B^T in float16, as a part of what rounding may do; infinite if one is no number.

    A sum of K products in float32 is off by at most K * 2^-24 of the sum of their magnitudes, and
    then rounded to float16, by half of its last place: 2^-11 of it, or 2^-25 below 2^-14.
    """
    if not np.isfinite(c).all():
        return float("inf")
    a, b, c = (x.astype(np.float64) for x in (a, b, c))
    magnitudes = np.abs(a) @ np.abs(b).T
    exact = a @ b.T
    allowed = a.shape[1] * 2.0**-24 * magnitudes
    allowed += 2.0**-11 * (np.abs(exact) + allowed) + 2.0**-25
    return float((np.abs(c - exact) / allowed).max())

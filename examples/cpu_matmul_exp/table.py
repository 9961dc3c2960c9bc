"""What was measured, as a table for people and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from examples.cpu_matmul_exp.chain import Size
from examples.cpu_matmul_exp.measure import Answer, Timed
from examples.text_table import aligned

LEGEND = (
    "s: median of all runs; least: the fastest. speed-up: over the step before. of NumPy: its time "
    "over the\nstep's. error: the largest, of what float32 arithmetic is allowed, beside float64."
)


def table(found: Answer, size: Size) -> str:
    """The steps with a number of threads, and NumPy."""
    rows = [["step", "s", "least", "runs", "GFLOP/s", "speed-up", "of NumPy", "error"]]
    before: Timed | None = None
    for each in (*found.steps, found.numpy):
        if each.refused is not None:
            continue
        rows.append([
            each.name, f"{each.seconds:.5f}", f"{min(each.runs):.5f}", f"{len(each.runs)}",
            f"{size.gigaflops / each.seconds:.1f}",
            f"{before.seconds / each.seconds:.2f}" if before and each is not found.numpy else "",
            f"{found.numpy.seconds / each.seconds:.3f}",
            f"{each.error:.3f}" if each.error is not None else "NaN",
        ])  # fmt: skip
        before = each
    threads = "1 thread" if found.threads == 1 else f"{found.threads} threads"
    return (
        f"{size} (M x K x N x P), {threads} of a {found.cpu}; NumPy has {found.blas}\n"
        f"{aligned(rows, ('step',))}"
    )


def as_json(answers: Sequence[Answer], size: Size) -> dict[str, Any]:
    """All of it, for programs: seconds of each run, and what the table has of them."""
    return {
        "size": asdict(size),
        "multiply_adds": size.multiply_adds,
        "threads": [
            {
                "threads": found.threads, "cpu": found.cpu, "blas": found.blas,
                "steps": [_timed(each, found, size) for each in found.steps],
                "numpy": _timed(found.numpy, found, size),
            }
            for found in answers
        ],
    }  # fmt: skip


def _timed(each: Timed, found: Answer, size: Size) -> dict[str, Any]:
    took = each.seconds if each.runs else None
    return asdict(each) | {
        "seconds": took,
        "gigaflops": size.gigaflops / took if took else None,
        "of_numpy": found.numpy.seconds / took if took else None,
    }

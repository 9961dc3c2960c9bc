"""What was measured, as tables for people and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from examples.mfma_gemm.measure import Measured
from examples.text_table import aligned
from mfmadsl.model import product_of

_WORDS = ("step", "what is new", "limited by")
_HEADER = [
    "step", "what is new", "MAC/cycle/CU", "one CU", "TFLOP/s", "limited by", "registers",
    "spilled", "LDS", "a CU", "conflicts", "far MB",
]  # fmt: skip


def predicted(measured: Sequence[Measured]) -> str:
    """The steps of one chip: rates, and what limits each."""
    step, found = measured[0].step, measured[0].prediction
    product = product_of(step.arch)
    layout = "N x K" if step.b_by_columns else "K x N"
    title = (
        f"{found.size} (M x N x K) of float16, B as {layout}, in the model of an {product.name} "
        f"({step.arch}, {product.compute_units} compute units)"
    )
    return f"{title}\n{aligned([_HEADER, *map(_row, measured)], _WORDS)}"


def _row(each: Measured) -> list[str]:
    found = each.prediction
    return [
        each.step.name, each.step.change, f"{found.rate:.1f}", f"{found.alone:.1f}",
        f"{found.tflops:.1f}", found.limit + (f" ({found.share:.0%})" if found.share else ""),
        f"{found.registers}", f"{found.spilled}", f"{found.lds_bytes}", f"{found.resident}",
        f"{found.conflicts / max(1, found.lds_cycles):.0%}", f"{found.far_bytes / 1e6:.0f}",
    ]  # fmt: skip


def as_json(chips: Sequence[Sequence[Measured]]) -> dict[str, Any]:
    """All of it, for programs: times in microseconds, rates in multiply-adds a cycle and unit."""
    return {"chips": [_chip_json(measured) for measured in chips]}


def _chip_json(measured: Sequence[Measured]) -> dict[str, Any]:
    step = measured[0].step
    return {
        "arch": step.arch,
        "product": product_of(step.arch).name,
        "b_by_columns": step.b_by_columns,
        "steps": [
            {
                "name": each.step.name,
                "change": each.step.change,
                "tiling": asdict(each.step.tiling),
                "right": each.wrong is None,
                "wrong": each.wrong,
                "prediction": asdict(each.prediction),
            }
            for each in measured
        ],
    }

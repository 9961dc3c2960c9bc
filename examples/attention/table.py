"""What was measured, as tables for people and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from examples.attention.measure import Measured
from examples.text_table import aligned
from mfmadsl.model import product_of

_WORDS = ("step", "what is new", "limited by")
_HEADER = [
    "step", "what is new", "us", "TFLOP/s", "work", "limited by", "registers", "spilled", "LDS",
    "far MB", "between MB",
]  # fmt: skip


def predicted(measured: Sequence[Measured]) -> str:
    """The steps of one chip: times, and what limits each."""
    arch, size = measured[0].step.arch, measured[0].prediction.size
    product = product_of(arch)
    title = (
        f"{size} (heads x queries x keys x depth) of float16, in the model of an {product.name} "
        f"({arch}, {product.compute_units} compute units)"
    )
    return f"{title}\n{aligned([_HEADER, *map(_row, measured)], _WORDS)}"


def _row(each: Measured) -> list[str]:
    found = each.prediction
    return [
        each.step.name, each.step.change, f"{found.microseconds:,.1f}", f"{found.tflops:.1f}",
        f"{found.work:.2f}", found.limit + (f" ({found.share:.0%})" if found.share else ""),
        f"{found.registers}", f"{found.spilled}", f"{found.lds_bytes}",
        f"{found.far_bytes / 1e6:,.0f}", f"{found.between_bytes / 1e6:,.0f}",
    ]  # fmt: skip


def as_json(chips: Sequence[Sequence[Measured]]) -> dict[str, Any]:
    """All of it, for programs."""
    return {"chips": [_chip_json(measured) for measured in chips]}


def _chip_json(measured: Sequence[Measured]) -> dict[str, Any]:
    arch = measured[0].step.arch
    return {
        "arch": arch,
        "product": product_of(arch).name,
        "steps": [
            {
                "name": each.step.name,
                "change": each.step.change,
                "causal": each.step.causal,
                "right": each.wrong is None,
                "wrong": each.wrong,
                "prediction": asdict(each.prediction),
            }
            for each in measured
        ],
    }

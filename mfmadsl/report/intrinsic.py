"""Intrinsics as lists and summaries."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mfmadsl.model import Intrinsic


def intrinsic_json(intrinsic: Intrinsic) -> dict[str, Any]:
    """What `list --json` says of one intrinsic."""
    return {
        "name": intrinsic.name,
        "m": intrinsic.m,
        "n": intrinsic.n,
        "k": intrinsic.k,
        "types": {o.name: o.type.name for o in (intrinsic.a, intrinsic.b, intrinsic.c)},
        "cycles": dict(intrinsic.cycles),
        "call": intrinsic.call,
        "aliases": list(intrinsic.aliases),
    }


def intrinsic_table(intrinsics: Iterable[Intrinsic]) -> str:
    """One line an intrinsic: name, shape, types, chips."""
    rows = [("NAME", "M x N x K", "A, B", "C, D", "CHIPS")]
    rows += [
        (i.name, f"{i.m}x{i.n}x{i.k}", _inputs(i), str(i.c.type), " ".join(i.chips))
        for i in intrinsics
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(f"{text:<{width}}" for text, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def intrinsic_summary(intrinsic: Intrinsic) -> str:
    """An intrinsic's entry in words: what it does, what each operand takes, and how long."""
    lines = [f"{intrinsic.name}: C[i, j] += A[i, k] * B[k, j]"]
    if intrinsic.doc:
        lines += ["", *intrinsic.doc.splitlines()]
    lines += [
        "",
        f"shape   m={intrinsic.m} n={intrinsic.n} k={intrinsic.k}",
        f"call    {intrinsic.call}",
        "cycles  " + ", ".join(f"{chip} {cycles}" for chip, cycles in intrinsic.cycles),
    ]
    for operand, (row, column) in zip(
        (intrinsic.a, intrinsic.b, intrinsic.c), (("i", "k"), ("k", "j"), ("i", "j")), strict=True
    ):
        lane, element = operand.layout.forward(row, column)
        registers = f"{operand.register_count} register{'s' * (operand.register_count > 1)}"
        lines.append(
            f"{operand.name:<7} {operand.type}[{row}, {column}] in {registers} a lane: "
            f"lane = {lane}, element = {element}"
        )
    return "\n".join(lines)


def _inputs(intrinsic: Intrinsic) -> str:
    a, b = intrinsic.a.type, intrinsic.b.type
    return str(a) if a == b else f"{a}, {b}"

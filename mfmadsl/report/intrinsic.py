"""Intrinsics as lists and summaries."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mfmadsl.columns import columns
from mfmadsl.model import EXTENT_OF, INDICES, Fragment, Intrinsic, NoClosedFormError, Operand


def intrinsic_json(intrinsic: Intrinsic) -> dict[str, Any]:
    """What `list --format json` says of one intrinsic."""
    return {
        "kind": "intrinsic",
        "name": intrinsic.name,
        "m": intrinsic.m,
        "n": intrinsic.n,
        "k": intrinsic.k,
        "blocks": intrinsic.blocks,
        "types": {o.name: o.type.name for o in (intrinsic.a, intrinsic.b, intrinsic.c)},
        "sparse": intrinsic.sparse,
        "scaled": bool(intrinsic.scales),
        "modifiers": list(intrinsic.modifiers),
        "cycles": dict(intrinsic.cycles),
        "call": intrinsic.call,
        "in_llvm": intrinsic.in_llvm,
        "aliases": list(intrinsic.aliases),
    }


def intrinsic_table(intrinsics: Iterable[Intrinsic]) -> str:
    """One line an intrinsic: name, shape, types, chips."""
    rows = [("NAME", "M x N x K", "A, B", "C, D", "CHIPS")]
    rows += [(i.name, _shape(i), _inputs(i), str(i.c.type), " ".join(i.chips)) for i in intrinsics]
    return columns(rows)


def intrinsic_summary(intrinsic: Intrinsic) -> str:
    """An intrinsic's entry in words: what it does, what each operand takes, and how long."""
    lines = [f"{intrinsic.name}: C[i, j] += A[i, k] * B[k, j]"]
    blocks = f" blocks={intrinsic.blocks}" if intrinsic.blocks > 1 else ""
    if intrinsic.doc:
        lines += ["", *intrinsic.doc.splitlines()]
    lines += [
        "",
        f"shape   m={intrinsic.m} n={intrinsic.n} k={intrinsic.k}{blocks}",
        f"call    {intrinsic.call}{'' if intrinsic.in_llvm else ', which LLVM does not have'}",
        "cycles  " + ", ".join(f"{chip} {cycles}" for chip, cycles in intrinsic.cycles),
    ]
    lines += [operand_line(operand, intrinsic) for operand in intrinsic.operands.values()]
    if intrinsic.modifiers:
        lines.append(f"takes   {', '.join(intrinsic.modifiers)}")
    return "\n".join(lines)


def fragment_summary(fragment: Fragment) -> str:
    """A fragment's entry in words: what it holds, and where."""
    operand = fragment.operand
    indices = INDICES[operand.name]
    extents = dict(zip(indices, operand.shape, strict=True))
    shape = " ".join(f"{EXTENT_OF[index]}={extent}" for index, extent in extents.items())
    lines = [f"{fragment.name}: a tile that {fragment.lanes} lanes hold"]
    if fragment.doc:
        lines += ["", *fragment.doc.splitlines()]
    lines += ["", f"shape   {shape} lanes={fragment.lanes}"]
    return "\n".join([*lines, f"holds   {_held(operand, *indices)}"])


def operand_line(operand: Operand, intrinsic: Intrinsic) -> str:
    """An operand's type and registers, and where its elements lie, as formulas."""
    row, column = INDICES[operand.name]
    counted = ""
    if operand.sparse:
        column, counted = "s", "; s counts the stored k"
    elif operand.name.startswith("scale"):
        group = intrinsic.k // min(operand.shape)
        row, column = (x if x != "k" else "g" for x in (row, column))
        counted = f"; g counts groups of {group} k"
    return f"{operand.name:<7} {_held(operand, row, column)}{counted}"


def _held(operand: Operand, row: str, column: str) -> str:
    """Its type and indices, and where an element lies."""
    count = operand.register_count
    held = f"{operand.type}[{row}, {column}] in {count} register{'s' * (count > 1)} a lane"
    try:
        lane, element = operand.layout.forward(row, column, "block")
    except NoClosedFormError:
        return f"{held}, where no sum of digits says"
    return f"{held}: lane = {lane}, element = {element}"


def _shape(intrinsic: Intrinsic) -> str:
    times = f"{intrinsic.blocks} * " if intrinsic.blocks > 1 else ""
    return f"{times}{intrinsic.m}x{intrinsic.n}x{intrinsic.k}"


def _inputs(intrinsic: Intrinsic) -> str:
    a, b = intrinsic.a.type, intrinsic.b.type
    return str(a) if a == b else f"{a}, {b}"

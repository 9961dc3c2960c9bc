"""Micro-kernels of CPUs, for people and programs to read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mfmadsl.columns import columns
from mfmadsl.model import INDICES, TILE_ROWS, Microkernel, NoClosedFormError, VectorOperand


def microkernel_json(microkernel: Microkernel) -> dict[str, Any]:
    """What `list --format json` says of one micro-kernel."""
    return {
        "kind": "microkernel",
        "name": microkernel.name,
        "m": microkernel.m,
        "n": microkernel.n,
        "k": microkernel.k,
        "types": {o.name: o.type.name for o in microkernel.operands.values()},
        "call": microkernel.call or None,
        "features": list(microkernel.features),
        "register_bits": microkernel.bits,
        "registers": microkernel.registers_needed,
        "tiles": microkernel.tiles,
    }


def microkernel_table(microkernels: Iterable[Microkernel]) -> str:
    """One line a micro-kernel: name, shape, types, features."""
    rows = [("NAME", "M x N x K", "A, B", "C", "FEATURES")]
    for x in microkernels:
        a, b = x.a.type, x.b.type
        inputs = str(a) if a == b else f"{a}, {b}"
        rows.append(
            (x.name, f"{x.m}x{x.n}x{x.k}", inputs, str(x.c.type), " ".join(x.features))
        )  # fmt: skip
    return columns(rows)


def microkernel_summary(microkernel: Microkernel) -> str:
    """A micro-kernel's entry in words: what it does, what it needs, and where elements lie."""
    lines = [f"{microkernel.name}: C[i, j] += A[i, k] * B[k, j]"]
    if microkernel.doc:
        lines += ["", *microkernel.doc.splitlines()]
    count = len(microkernel.steps)
    times = f", {count} times" if count > 1 else ""
    kind = "tile" if microkernel.tiles else "vector"
    size = f"{TILE_ROWS} rows of " if microkernel.tiles else ""
    lines += [
        "",
        f"shape      m={microkernel.m} n={microkernel.n} k={microkernel.k}",
        f"call       {microkernel.call}{times}"
        if microkernel.call
        else f"expression c + a * b{times}",
        f"features   {' '.join(microkernel.features)}",
        f"registers  {microkernel.registers_needed} {kind} registers of {size}"
        f"{microkernel.bits} bits",
    ]
    lines += [vector_line(operand, microkernel) for operand in microkernel.operands.values()]
    return "\n".join(lines)


def vector_line(operand: VectorOperand, microkernel: Microkernel) -> str:
    """An operand's type and registers, and where its elements lie, as formulas."""
    row, column = INDICES[operand.name]
    line = f"{operand.name:<10} {operand.type}[{row}, {column}] in {_held(operand, microkernel)}"
    try:
        register, element = operand.layout.forward(row, column)
    except NoClosedFormError:
        return f"{line}, where no sum of digits says"
    return f"{line}: register = {register}, element = {element}"


def vectors_json(microkernel: Microkernel, operand: VectorOperand) -> dict[str, Any]:
    """Every element's register and its place in it, in the order row, column."""
    rows, count = operand.shape
    elements = []
    for row in range(rows):
        for column in range(count):
            register, element = operand.slot(row, column)
            elements.append(
                {"row": row, "column": column, "register": register, "element": element}
            )  # fmt: skip
    return {
        "kind": "microkernel",
        "name": microkernel.name,
        "operand": operand.name,
        "shape": [rows, count],
        "registers": operand.registers,
        "elements_per_register": operand.elements,
        "broadcast": operand.broadcast,
        "elements": elements,
    }


def _held(operand: VectorOperand, microkernel: Microkernel) -> str:
    count = operand.registers
    if operand.broadcast:
        return f"{count} broadcast register{'s' * (count > 1)} of {operand.elements}"
    rows = "row" if microkernel.tiles else "register"
    return f"{count} {rows}{'s' * (count > 1)} of {operand.elements}"

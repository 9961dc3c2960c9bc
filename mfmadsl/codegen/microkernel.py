"""A micro-kernel's module: registers, steps and operands as text."""

from __future__ import annotations

from typing import Any

from mfmadsl.codegen.limits import ModuleError
from mfmadsl.codegen.names import named
from mfmadsl.codegen.render import rendered
from mfmadsl.model import (
    TILE_ROWS,
    Microkernel,
    NoClosedFormError,
    VectorOperand,
    closed_form,
    numbered_up,
)

_NAMES = (
    "M", "N", "K", "A_DTYPE", "B_DTYPE", "OUT_DTYPE", "FEATURES", "LLVM_INTRINSIC", "NAMES",
    "a_slot", "b_slot", "c_slot", "index_map_A", "index_map_B", "index_map_C", "fill", "compute",
    "register",
)  # fmt: skip
"""What the module of a micro-kernel exports, besides its TensorIntrins."""


def microkernel_text(microkernel: Microkernel) -> str:
    """The source of its module. Raises ModuleError where something is no sum of digits."""
    try:
        values = _values(microkernel)
        pairs = named(microkernel.name, [("FILL", ["fill"]), ("COMPUTE", ["compute"])])
        return rendered("microkernel.py.jinja", pairs, _NAMES, **values)
    except NoClosedFormError as error:
        raise ModuleError(f"{microkernel.name}: {error}") from None


def _values(microkernel: Microkernel) -> dict[str, Any]:
    """What the template takes."""
    for operand in microkernel.operands.values():
        if numbered_up(operand.layout) is not operand.layout:
            raise ModuleError(
                f"{microkernel.name}: registers or elements of {operand.name.upper()} count down "
                "along an index, which TVM's index maps cannot"
            )
    a, b, c = microkernel.a, microkernel.b, microkernel.c
    return {
        "kernel": microkernel,
        "a": a,
        "b": b,
        "c": c,
        "places": _steps(microkernel),
        "arguments": [_argument(microkernel, name) for name in microkernel.arguments],
        "left": _argument(microkernel, "a"),
        "right": _argument(microkernel, "b"),
        "tiles": [_tiles(microkernel, name) for name in "cab"] if microkernel.tiles else [],
        "result": f"{c.type.dtype}x{c.elements}",
    }


def _steps(microkernel: Microkernel) -> dict[str, str]:
    """The register of each operand in a step, which is numbered by `step`."""
    steps = microkernel.steps
    found = {}
    for name, registers in zip("cab", zip(*steps, strict=True), strict=True):
        form = closed_form(registers.__getitem__, {"step": len(steps)})
        if form is None:
            raise NoClosedFormError("the registers of its steps are no sums of digits")
        found[name] = str(form)
    return found


def _argument(microkernel: Microkernel, name: str) -> str:
    """A register of an operand as one step takes it: a vector of the machine's width."""
    operand = microkernel.operand(name)
    buffer, register = name.upper(), _steps(microkernel)[name]
    if operand.broadcast:
        return f"mfma.repeated({buffer}, {register}, {microkernel.c.elements})"
    return f"{buffer}[{register}, T.ramp(0, 1, {operand.elements})]"


def _tiles(microkernel: Microkernel, name: str) -> list[tuple[VectorOperand, int, int]]:
    """(operand, number of the tile register, first row) of each tile that it fills."""
    first = 0
    for other in "cab":
        operand = microkernel.operand(other)
        count = operand.registers // TILE_ROWS
        if other == name:
            return [(operand, first + tile, tile * TILE_ROWS) for tile in range(count)]
        first += count
    raise AssertionError(name)

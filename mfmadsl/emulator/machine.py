"""What of a chip and its mode instructions depend on."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mfmadsl.emulator.assembly import Program
from mfmadsl.emulator.row import Row
from mfmadsl.emulator.wave import Array

_SMALLEST_NORMAL = {2: 2.0**-14, 4: 2.0**-126, 8: 2.0**-1022}


@dataclass(frozen=True)
class Machine:
    """A chip, and the float types whose denormals it takes for 0 and never gives."""

    arch: str
    flushed: tuple[str, ...] = ()

    def flushing(self, row: Row) -> Row:
        """A row of the instruction table, with that done to its sources and its result."""
        if not {kind for kind in row.kinds if kind in self.flushed}:
            return row
        compute = row.compute

        def flushed(*sources: Array) -> Array:
            return without_denormals(np.asarray(compute(*map(without_denormals, sources))))

        return replace(row, compute=flushed)


def without_denormals(values: Array) -> Array:
    """Denormal floats made 0 of their sign; anything else as it is."""
    if values.dtype.kind != "f":
        return values
    smallest = _SMALLEST_NORMAL[values.itemsize]
    zero = np.copysign(values.dtype.type(0), values)
    return np.where(np.abs(values) < smallest, zero, values)


def machine_of(program: Program) -> Machine:
    """The chip of a program, in the mode that its descriptor asks for (0: flush)."""
    flushed = []
    if program.directives.get("float_denorm_mode_32", 3) == 0:
        flushed.append("f32")
    if program.directives.get("float_denorm_mode_16_64", 3) == 0:
        flushed += ["f16", "f64"]
    return Machine(program.arch, tuple(flushed))

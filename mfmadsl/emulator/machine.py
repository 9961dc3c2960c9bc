"""What of a chip and its mode instructions depend on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from mfmadsl.emulator.assembly import Program
from mfmadsl.emulator.row import Row
from mfmadsl.emulator.wave import Array
from mfmadsl.model import Intrinsic

_SMALLEST_NORMAL = {2: 2.0**-14, 4: 2.0**-126, 8: 2.0**-1022}


@dataclass(frozen=True)
class Machine:
    """A chip, and the float types whose denormals it takes for 0 and never gives.

    `described` has the matrix instructions, by mnemonic, whose meaning is that of a `.mfma` entry.
    """

    arch: str
    flushed: tuple[str, ...] = ()
    described: Mapping[str, tuple[Intrinsic, ...]] = field(default_factory=dict)

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


def machine_of(program: Program, trusted: Sequence[Intrinsic] = ()) -> Machine:
    """The chip of a program, in the mode that its descriptor asks for (0: flush).

    `trusted` are the entries whose meaning is taken for that of their instructions.
    """
    flushed = []
    if program.directives.get("float_denorm_mode_32", 3) == 0:
        flushed.append("f32")
    if program.directives.get("float_denorm_mode_16_64", 3) == 0:
        flushed += ["f16", "f64"]
    described: dict[str, tuple[Intrinsic, ...]] = {}
    for intrinsic in trusted:
        for mnemonic in intrinsic.mnemonics:
            described[mnemonic] = (*described.get(mnemonic, ()), intrinsic)
    return Machine(program.arch, tuple(flushed), described)

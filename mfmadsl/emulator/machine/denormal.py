"""Denormal floats, made zero where a chip does that."""

from __future__ import annotations

import numpy as np

from mfmadsl.emulator.machine.bits import Array, Compute

_SMALLEST_NORMAL = {2: 2.0**-14, 4: 2.0**-126, 8: 2.0**-1022}


def without_denormals(values: Array) -> Array:
    """Denormal floats made 0 of their sign; anything else as it is."""
    if values.dtype.kind != "f":
        return values
    smallest = _SMALLEST_NORMAL[values.itemsize]
    zero = np.copysign(values.dtype.type(0), values)
    return np.where(np.abs(values) < smallest, zero, values)


def flushing(compute: Compute, *kinds: str) -> Compute:
    """A function with denormals of some float types made 0 in its sources and in its result."""
    sizes = {int(kind[1:]) // 8 for kind in kinds}

    def flush(values: Array) -> Array:
        return without_denormals(values) if values.itemsize in sizes else values

    return lambda *sources: flush(np.asarray(compute(*map(flush, sources))))

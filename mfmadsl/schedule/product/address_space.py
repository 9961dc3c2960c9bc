"""Arrays that no machine has addresses for, refused before TVM loses itself in their extents."""

from __future__ import annotations

from math import prod

from tvm.tirx import PrimFunc

from mfmadsl.passes.tir.expression import bits_of, constant
from mfmadsl.schedule.error import ScheduleError

_ADDRESS_BITS = 48
"""Bits of a virtual address: GPUs (CDNA3 ISA, 9.1.4: a buffer's base) and x86-64."""


def check_addresses(function: PrimFunc) -> None:
    """Raise ScheduleError for an argument of more bytes than there are addresses."""
    for parameter in function.params:
        shape = [constant(extent) for extent in getattr(parameter, "shape", ())]
        known = [extent for extent in shape if extent is not None]
        if len(known) == len(shape) and known:
            size = prod(known) * bits_of(parameter.dtype) // 8
            if size > 1 << _ADDRESS_BITS:
                extents = " x ".join(map(str, known))
                raise ScheduleError(
                    f"workload: `{parameter.name}`, {extents} of {parameter.dtype}, has {size:.3g}"
                    f" bytes, and addresses have {_ADDRESS_BITS} bits: make extents smaller"
                )

"""Scaled instructions as what they are without scales: plain products of eight-bit floats."""

from __future__ import annotations

from dataclasses import replace

from mfmadsl.error import ArgumentError
from mfmadsl.model.intrinsic import Intrinsic


def unscaled(intrinsic: Intrinsic) -> Intrinsic:
    """C[m, n] += A[m, k] x B[k, n] of a scaled instruction, under a name of its own.

    Called with scales that are the constant 0, it is the instruction that has none. A and B have
    their own types, and several of it make a deeper tile (`packed`). One without scales comes back
    as it is.

    Raises ArgumentError for elements of six and four bits, of which TVM has no plain arrays.
    """
    if not intrinsic.scales:
        return intrinsic
    for operand in (intrinsic.a, intrinsic.b):
        if operand.type.bits != 8:
            raise ArgumentError(
                f"{intrinsic.name}: `{operand.name}` is {operand.type}, and only of elements of "
                "eight bits there is a product without scales"
            )
    return replace(intrinsic, name=f"{intrinsic.name}_unscaled", scales=(), unscaled=True)

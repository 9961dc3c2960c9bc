"""What a product may draw, and what its work takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Power:
    """Watts, and picojoules of an operation or a byte at the highest clock.

    The letters in brackets are the sources of `GpuProduct`.

    - `watts`: what the board may draw (I).
    - `idle`: what it draws without work (S).
    - `matrix`: of an operation of the matrix cores, by the wider type of A and B (S).
    - `lds`: of a byte that goes into the LDS or out of it (R: a small SRAM, and 2 mm).
    - `l2`: of a byte from an L2 to a compute unit, or back (R: a small SRAM, and 10 mm).
    - `beyond`: of a byte from the other dies (R: 20 mm), at any clock.
    - `memory`: of a byte of HBM (T), at any clock.
    """

    watts: float
    idle: float
    matrix: Mapping[str, float]
    lds: float
    l2: float
    beyond: float
    memory: float

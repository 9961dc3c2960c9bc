"""How one operand of a matrix instruction lies in a wave, as far as a GEMM needs to know.

A lane holds a row of the operand and some k of it. Which k is nobody's business as long as A and B
agree: a product does not change when both are permuted along k alike. So a lane may take for its
registers whatever lies together in the LDS, and one wide read may feed several instructions: that
is k-packing.
"""

from __future__ import annotations

from dataclasses import dataclass

from mfmadsl.model import Intrinsic, Operand
from mfmadsl.model.architecture import WAVE_SIZE
from mfmadsl.schedule.error import ScheduleError


@dataclass(frozen=True)
class Fragment:
    """Lane l holds row l % `rows`, and `lane_bytes` of k of it in group l // `rows`."""

    rows: int
    lane_bytes: int

    @property
    def groups(self) -> int:
        """Groups of lanes, that hold different k of the same rows."""
        return WAVE_SIZE // self.rows


def fragments(intrinsic: Intrinsic) -> tuple[Fragment, Fragment]:
    """Those of A (m rows) and of B (n rows).

    Raises ScheduleError for an instruction that is no plain product of one block, or whose A and B
    take their k in another order from each other.
    """
    if intrinsic.blocks > 1 or intrinsic.sparse:
        kind = "is sparse" if intrinsic.sparse else f"multiplies {intrinsic.blocks} blocks at once"
        raise ScheduleError(f"{intrinsic.name} {kind}: no GEMM is made of it")
    a, order_a = _fragment(intrinsic, intrinsic.a, True)
    b, order_b = _fragment(intrinsic, intrinsic.b, False)
    if order_a != order_b:
        raise ScheduleError(f"{intrinsic.name}: A and B hold their k in different orders")
    return a, b


def makes_gemm(intrinsic: Intrinsic) -> bool:
    """Whether `fragments` knows what to do with it."""
    try:
        fragments(intrinsic)
    except ScheduleError:
        return False
    return True


def _fragment(
    intrinsic: Intrinsic, operand: Operand, is_a: bool
) -> tuple[Fragment, dict[tuple[int, int], int]]:
    rows = intrinsic.m if is_a else intrinsic.n
    order: dict[tuple[int, int], int] = {}
    for row in range(rows):
        for k in range(intrinsic.k):
            lane, register = operand.layout.slot(*((row, k) if is_a else (k, row)))
            if lane % rows != row or order.setdefault((lane // rows, register), k) != k:
                raise ScheduleError(
                    f"{intrinsic.name}: lane {lane} of {operand.name.upper()} does not hold row "
                    f"{lane % rows} alone"
                )
    bits = operand.layout.registers * operand.type.bits
    if rows not in (16, 32) or bits % 32 or operand.type.bits < 8:
        raise ScheduleError(f"{intrinsic.name}: no GEMM is made of {operand.type} in {bits} bits")
    return Fragment(rows, bits // 8), order

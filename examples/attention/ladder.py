"""The steps in their order, and the size at which they are compared."""

from __future__ import annotations

from collections.abc import Callable

from tvm.s_tir import Schedule

from examples.attention import (
    causal_order,
    fused,
    masked,
    naive,
    online,
    pipelined,
    registers,
    skewed,
    skipped,
    two_workgroups,
)
from examples.attention.size import Size
from examples.attention.step import Step

FULL = Size(64, 2048, 2048, 128)
"""Of 1024 workgroups."""

CHIPS = ("gfx942", "gfx950")

_STEPS: tuple[tuple[str, str, bool, Callable[[Size, str], Schedule]], ...] = (
    ("naive", "two products and a softmax, scores in memory", False, naive.schedule),
    ("fused", "one kernel, which makes the scores twice", False, fused.schedule),
    ("online", "once, and makes older sums less", False, online.schedule),
    ("registers", "weights stay in the lanes that made them", False, registers.schedule),
    ("pipelined", "the next keys and values come meanwhile", False, pipelined.schedule),
    ("skewed", "the next scores before this product with V", False, skewed.schedule),
    ("two_workgroups", "less in registers: two on a compute unit", False,
     two_workgroups.schedule),
    ("masked", "causal: keys behind the diagonal count nothing", True, masked.schedule),
    ("skipped", "and are not visited", True, skipped.schedule),
    ("causal_order", "the longest workgroups begin first", True, causal_order.schedule),
)  # fmt: skip

NAMES = tuple(name for name, *_ in _STEPS)


def ladder(arch: str) -> tuple[Step, ...]:
    """The steps on gfx942 or gfx950."""
    return tuple(
        Step(name, change, arch, causal, schedule) for name, change, causal, schedule in _STEPS
    )

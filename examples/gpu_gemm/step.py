"""What a step of the ladder is: a schedule, and what it changes of the step before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from tvm.s_tir import Schedule

import mfmadsl
from examples.product import Size

ThreadSchedule: TypeAlias = Callable[[Schedule], object]
MatrixSchedule: TypeAlias = Callable[[Size, str], Schedule]


@dataclass(frozen=True)
class Step:
    """A step; `dtype` is that of A and B, and C is float32.

    `threads` changes a plain product's schedule, whatever chip it is for; `matrix` makes a schedule
    of matrix instructions for a size and an AMD chip. A step has one of them; a tuned one has
    neither, since its schedule is searched for each size.
    """

    name: str
    change: str
    threads: ThreadSchedule | None = None
    matrix: MatrixSchedule | None = None
    dtype: str = "float32"

    @property
    def tuned(self) -> bool:
        return self.threads is None and self.matrix is None

    def schedule(self, size: Size, arch: str) -> Schedule:
        """The schedule of a product of that size. Raises ValueError for a tuned step."""
        if self.matrix is not None:
            return self.matrix(size, arch)
        if self.threads is None:
            raise ValueError(f"{self.name} has no schedule of its own: it is searched for")
        return scheduled(self.threads, size)


def plain(size: Size) -> Schedule:
    """The product as three loops around one multiplication, in float32."""
    return Schedule(mfmadsl.matmul(size.m, size.n, size.k, "float32", "float32"))


def scheduled(threads: ThreadSchedule, size: Size) -> Schedule:
    """The product of that size, with what `threads` does to it."""
    sch = plain(size)
    threads(sch)
    return sch

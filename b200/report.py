"""What an execution tells: faults, and how much of what was done."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class NotUnderstood(Exception):  # noqa: N818, it is no error of the kernel
    """A statement or an expression whose meaning the interpreter does not know."""


class Kind(Enum):
    """What kind of mistake a fault is."""

    DEADLOCK = "deadlock"
    RACE = "race"
    BARRIER = "barrier"
    UNINITIALISED = "uninitialised"
    OUT_OF_BOUNDS = "out of bounds"
    TENSOR_MEMORY = "tensor memory"
    LIFETIME = "lifetime"
    DIVERGENCE = "divergence"
    REGISTER = "register"


@dataclass(frozen=True)
class Fault:
    """One mistake of the kernel.

    Attributes:
        kind: of mistake.
        message: a sentence that says what is wrong.
        where: who executed which statement.
    """

    kind: Kind
    message: str
    where: str

    def __str__(self) -> str:
        return f"{self.kind.value}: {self.message} ({self.where})"


@dataclass(frozen=True)
class Counts:
    """How much the kernel did, over all CTAs.

    Attributes:
        loaded: bytes that TMA loads brought into shared memory.
        stored: bytes that TMA stores brought to global memory.
        mmas: tile products, each as one statement states it.
        multiply_adds: of those products.
        read: bytes that `tcgen05.ld` brought from tensor memory to registers.
        phases: of mbarriers, that ended.
        waits: for mbarriers, by a warp each.
    """

    loaded: int = 0
    stored: int = 0
    mmas: int = 0
    multiply_adds: int = 0
    read: int = 0
    phases: int = 0
    waits: int = 0


@dataclass(frozen=True)
class Report:
    """What an execution found. Without faults the results are right to be compared."""

    faults: tuple[Fault, ...]
    counts: Counts

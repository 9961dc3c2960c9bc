"""What goes wrong in a kernel, and where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from mfmadsl.error import MfmadslError


class OperandError(MfmadslError, ValueError):
    """An operand is not what its instruction takes; it becomes an EmulationError with the line."""


@dataclass(frozen=True)
class EarlierAccess:
    """The access that another one collides with: by which wave of the workgroup, at which line."""

    line: int
    instruction: str
    wave: int


@dataclass(frozen=True)
class Fault:
    """One thing that a kernel did wrong.

    `kind` is a stable name such as `out-of-bounds`. `wave` counts the waves of its workgroup;
    workgroup, wave and lane are None where the fault is not that of one. `earlier` is what a race
    collides with, if that was not long ago; `source` is `file:line` of the source, where that is
    known.
    """

    kind: str
    message: str
    line: int | None = None
    instruction: str | None = None
    workgroup: tuple[int, int, int] | None = None
    wave: int | None = None
    lane: int | None = None
    earlier: EarlierAccess | None = None
    source: str | None = None

    def __str__(self) -> str:
        instruction = f"`{self.instruction}`: " if self.instruction else ""
        source = f" ({self.source})" if self.source else ""
        where = f"line {self.line}{source}: {instruction}" if self.line is not None else ""
        parts = []
        if self.workgroup is not None:
            parts.append("workgroup ({}, {}, {})".format(*self.workgroup))
        parts += [
            f"{n} {v}" for n, v in (("wave", self.wave), ("lane", self.lane)) if v is not None
        ]
        told = f"{where}{self.message}" + (f" ({', '.join(parts)})" if parts else "")
        if self.earlier is None:
            return told
        return f"{told}; before, line {self.earlier.line}: `{self.earlier.instruction}`"


class EmulationError(MfmadslError, RuntimeError):
    """The kernel does something undefined, or something that is not emulated."""

    def __init__(
        self,
        message: str,
        line: int | None = None,
        instruction: str | None = None,
        kind: str = "not-emulated",
    ) -> None:
        self.fault = Fault(kind, message, line, instruction)
        super().__init__(str(self.fault))

    @property
    def line(self) -> int | None:
        """The line of the assembly, if it is known."""
        return self.fault.line

    @classmethod
    def of(cls, fault: Fault) -> EmulationError:
        """The exception that tells a fault."""
        error = cls(fault.message)
        error.fault = fault
        error.args = (str(fault),)
        return error

    def from_source(self, sources: Mapping[int, str]) -> EmulationError:
        """This error with the line of the source that it is of, by that of the text."""
        source = sources.get(self.fault.line or 0)
        return EmulationError.of(replace(self.fault, source=source)) if source else self

    def at(self, line: int, instruction: str) -> EmulationError:
        """This error with its place in the text, unless it has one already."""
        if self.fault.line is not None:
            return self
        return EmulationError.of(replace(self.fault, line=line, instruction=instruction))

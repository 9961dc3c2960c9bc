"""What makes one piece of native code: an instruction without the numbers of its registers.

Instructions that differ in those alone share their code. Their numbers are the values of a step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mfmadsl.emulator.instructions.source import LanePattern, SourceOperand
from mfmadsl.emulator.instructions.target import Target
from mfmadsl.emulator.machine.bits import constant, width_of
from mfmadsl.emulator.text.operand import Literal, Register

_MEMORY = frozenset(
    {
        "lds", "global", "buffer", "scalar-load", "lds-places", "global-places", "buffer-places",
        "lds-load-check", "lds-store-check", "memory-load-check", "memory-store-check",
    }
)  # fmt: skip
_SPLIT_CHECKS = frozenset({"lds-places", "global-places", "buffer-places", "lds-load-check"})


@dataclass(frozen=True)
class LaneForm:
    """DPP: whose number each lane takes, which of those exist, and which lanes write."""

    source: tuple[int, ...]
    exists: tuple[bool, ...]
    writes: tuple[bool, ...]
    zero_fill: bool


@dataclass(frozen=True)
class SourceForm:
    """A source: its bank (v, a, s, or c for a constant), its type, and what of it counts."""

    bank: str
    kind: str
    low: int = 0
    width: int = 0
    signed: bool = False
    negate: bool = False
    absolute: bool = False
    lanes: LaneForm | None = None


@dataclass(frozen=True)
class TargetForm:
    """Where a result goes."""

    bank: str
    low: int = 0
    width: int = 0
    preserve: bool = False
    lanes: LaneForm | None = None


@dataclass(frozen=True)
class CodeForm:
    """A piece of code: who writes it, what it computes, and whatever else that depends on."""

    writer: str
    name: str
    sources: tuple[SourceForm, ...] = ()
    target: TargetForm | None = None
    options: tuple[Any, ...] = ()

    @property
    def splits(self) -> bool:
        """Whether threads may share its waves although it reaches memory, each workgroup's being
        those of one thread. If it is refused for some, it is done again for all."""
        if self.writer in ("global", "buffer", "lds"):
            is_load, *_, moves_address = self.options
            return bool(is_load and not moves_address) or (self.writer == "lds" and not is_load)
        return self.writer in _SPLIT_CHECKS

    @property
    def is_on_registers(self) -> bool:
        """Whether it reaches no memory: then waves are independent, and nothing goes wrong."""
        return self.writer not in _MEMORY


@dataclass(frozen=True)
class NativeStep:
    """An instruction as native code: its form, and the values that the code reads.

    `changes_exec` and `changes_scc` say what Python has to look at afterwards.
    """

    form: CodeForm
    values: tuple[int, ...] = ()
    changes_exec: bool = False
    changes_scc: bool = False


def lanes_form(pattern: LanePattern | None) -> LaneForm | None:
    """A DPP pattern as a part of a form."""
    if pattern is None:
        return None
    return LaneForm(
        tuple(pattern.source.tolist()),
        tuple(pattern.exists.tolist()),
        tuple(pattern.writes.tolist()),
        pattern.zero_fill,
    )


def source_form(source: SourceOperand) -> tuple[SourceForm, int] | None:
    """A source's form and value; None if no native code reads such a one."""
    operand = source.operand
    if isinstance(operand, Literal):
        if source.width or source.lanes is not None:
            return None
        bits = constant(operand, source.kind)
        value = int(bits.view(f"u{bits.itemsize}"))
        return SourceForm("c", source.kind), value - (1 << 64) * (value >> 63)
    if not isinstance(operand, Register):
        return None
    form = SourceForm(
        operand.bank, source.kind, source.low, source.width, source.signed,
        operand.negate, operand.absolute, lanes_form(source.lanes),
    )  # fmt: skip
    if operand.bank == "s" and (source.lanes is not None):
        return None
    if width_of(source.kind) == 64 and (source.width or source.lanes is not None):
        return None
    return form, operand.index


def target_form(target: Target) -> tuple[TargetForm, int]:
    """A target's form and value."""
    register = target.register
    lanes = lanes_form(target.lanes)
    return (
        TargetForm(register.bank, target.low, target.width, target.preserve, lanes),
        register.index,
    )

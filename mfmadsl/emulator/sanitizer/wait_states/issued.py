"""An executed instruction, as far as it matters to those behind it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal as OneOf

from mfmadsl.emulator.instructions.modifier import base_name, encoding_of
from mfmadsl.emulator.machine.operation import Operation
from mfmadsl.emulator.text.assembly import Instruction
from mfmadsl.emulator.text.operand import EXEC, M0, VCC, Register

Place = tuple[str, int]
"""What two instructions may meet in: a register's bank and index, or a state that has a name."""

Places = frozenset[Place]
NOWHERE: Places = frozenset()

_NAMES = {VCC: "vcc_lo", VCC + 1: "vcc_hi", M0: "m0", EXEC: "exec_lo", EXEC + 1: "exec_hi"}
_HARDWARE_REGISTER = re.compile(r"hwreg\(\s*(\w+)")
_SINGLES = re.compile(r"v_mfma_f32_\d+x\d+x\d+(_\d+b)?_?f32")
_LONGEST_NOP = 0xF  # the bits of its operand that count


def places(registers: Iterable[Register], banks: str) -> Places:
    """The registers of some banks, one by one."""
    return frozenset(
        (register.bank, index)
        for register in registers
        if register.bank in banks
        for index in register.indices
    )


def spelled(place: Place) -> str:
    """A place as a reader calls it."""
    bank, index = place
    if bank == "s" and index in _NAMES:
        return _NAMES[index]
    return f"{bank}{index}" if bank in "vsa" else bank


@dataclass(frozen=True)
class Issued:
    """An instruction with what it reads and writes; one that only passes does neither.

    `name` is the mnemonic without its encoding, `unit` what executes it, or nothing. It takes
    so many wait `states`, and of a matrix core so many `passes`. A `is_dpp` one moves its first
    source between lanes.
    """

    instruction: Instruction
    name: str
    unit: str
    states: int
    passes: int
    is_dpp: bool
    reads: tuple[Register, ...]
    writes: tuple[Register, ...]
    vectors_read: Places
    vectors_written: Places
    scalars_read: Places
    scalars_written: Places

    # What executes it.

    @property
    def is_vector(self) -> bool:
        """Whether the vector ALU or the matrix core executes it."""
        return self.unit in ("valu", "matrix")

    @property
    def is_memory(self) -> bool:
        """Whether it accesses global, scratch or flat memory, by vector registers."""
        return self.unit in ("vmem", "flat")

    @property
    def takes_lanes(self) -> bool:
        """Whether it reads or writes memory or LDS of the lanes."""
        return self.is_memory or self.unit == "lds"

    @property
    def is_matrix(self) -> bool:
        """Whether the matrix core executes it, for as many passes as the manuals say.

        Nobody knows them of an instruction that only a `.mfma` entry describes.
        """
        return self.unit == "matrix" and self.passes > 1

    @property
    def is_plain_vector(self) -> bool:
        """Whether the vector ALU executes it."""
        return self.unit == "valu"

    @property
    def is_dot(self) -> bool:
        """Whether it is a dot product of the vector ALU."""
        return self.name.startswith("v_dot")

    @property
    def hardware_register(self) -> Places:
        """The hardware register that it names."""
        found = _HARDWARE_REGISTER.match(self.instruction.modifiers.get("hwreg", ""))
        return NOWHERE if found is None else frozenset({(found[1], 0)})

    # Of a matrix instruction.

    @property
    def core(self) -> OneOf["double", "single", "narrow"]:
        """What a matrix instruction multiplies: doubles (DGEMM), floats (SGEMM), less (XDL)."""
        if self.name.startswith("v_mfma_f64"):
            return "double"
        return "single" if _SINGLES.fullmatch(self.name) else "narrow"

    @property
    def addend(self) -> Places:
        """C of a matrix instruction; of a sparse one its target."""
        if self.name.startswith("v_smfmac"):
            return self.vectors_written
        c = self.instruction.operands[3:4]
        return places([r for r in c if isinstance(r, Register)], "va")

    @property
    def factors(self) -> tuple[Places, ...]:
        """A, B and what else a matrix instruction reads, but for C."""
        others = [*self.instruction.operands[1:3], *self.instruction.operands[4:]]
        if self.name.startswith("v_smfmac"):
            others += self.instruction.operands[3:4]
        return tuple(places([r], "va") for r in others if isinstance(r, Register))


def issue_of(instruction: Instruction, operation: Operation | None) -> Issued:
    """The step of an instruction; without an operation it only passes."""
    reads = () if operation is None else tuple(read.register for read in operation.reads)
    writes = () if operation is None else operation.writes
    unit = "" if operation is None else operation.unit
    return Issued(
        instruction,
        base_name(instruction.name),
        unit,
        _states(instruction),
        _passes(operation),
        unit == "valu" and encoding_of(instruction) == "dpp",
        reads,
        writes,
        *(places(registers, banks) for banks in ("va", "s") for registers in (reads, writes)),
    )


def _passes(operation: Operation | None) -> int:
    """Of a matrix core; 0 of all that others execute."""
    if operation is None or operation.unit != "matrix":
        return 0
    assert isinstance(operation.slots, int)  # as the matrix core's always are
    return operation.slots


def _states(instruction: Instruction) -> int:
    """One wait state, or as many as an `s_nop` says."""
    if instruction.name != "s_nop":
        return 1
    return (int(instruction.modifiers["argument"], 0) & _LONGEST_NOP) + 1

"""What the cycle model needs to know of an instruction, whoever executes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mfmadsl.emulator.machine.operation import Operation
from mfmadsl.emulator.machine.wait import Counter as WaitCounter
from mfmadsl.emulator.machine.wait import wait_counts
from mfmadsl.emulator.machine.wave import LANES
from mfmadsl.emulator.profiler.cost import SLOT, busy_cycles, issue_cycles
from mfmadsl.emulator.profiler.vector_cache import Policy, clears_cache, policy_of, writes_back
from mfmadsl.emulator.text.assembly import Instruction
from mfmadsl.model import Architecture

_WORD = 4  # bytes
SLEEP, _SLEEP_BITS = 64, 0x7F
"""Cycles of each unit that a wave sleeps, and the bits that count them (CDNA3 ISA, S_SLEEP)."""


@dataclass(frozen=True)
class TimedStep:
    """What of an instruction the model needs."""

    kind: str  # valu, matrix, salu, lds, vmem, smem, wait, barrier, end
    issue: int
    busy: int
    touches: tuple[tuple[str, int], ...] = ()
    writes: tuple[tuple[str, int], ...] = ()
    waits: Mapping[WaitCounter, int] = field(default_factory=dict)
    priority: int | None = None
    stores: bool = False
    loads: bool = False
    policy: Policy = "keep"
    clears: bool = False
    writes_back: bool = False


def timed_step(
    chip: Architecture, instruction: Instruction, operation: Operation | None
) -> TimedStep:
    """What of an instruction the model needs."""
    name = instruction.name
    if name == "s_waitcnt":
        return TimedStep("wait", SLOT, 0, waits=wait_counts(instruction.modifiers["argument"]))
    if name == "s_barrier":
        return TimedStep("barrier", SLOT, 0)
    if name == "s_nop":
        return TimedStep("wait", SLOT * (int(instruction.modifiers["argument"], 0) + 1), 0)
    if name == "s_sleep":
        asked = int(instruction.modifiers["argument"], 0) & _SLEEP_BITS
        return TimedStep("wait", max(SLOT, asked * SLEEP), 0)
    if name == "s_setprio":
        return TimedStep("wait", SLOT, 0, priority=int(instruction.modifiers["argument"], 0))
    if operation is None:
        return TimedStep(
            "salu", SLOT, SLOT, clears=clears_cache(instruction),
            writes_back=writes_back(instruction),
        )  # fmt: skip
    kind = "vmem" if operation.unit == "flat" else operation.unit
    reads = tuple((r.register.bank, i) for r in operation.reads for i in r.register.indices)
    writes = tuple((r.bank, i) for r in operation.writes for i in r.indices)
    touches = tuple(dict.fromkeys((*reads, *writes)))
    issue = issue_cycles(chip, operation)
    if name.startswith("ds_write"):
        issue += (len(reads) - 1) * _WORD * LANES // chip.lds_store_bytes  # the first is an address
    return TimedStep(
        kind, issue, busy_cycles(chip, operation), touches, writes,
        stores="_store" in name, loads="_load" in name, policy=policy_of(instruction),
    )  # fmt: skip

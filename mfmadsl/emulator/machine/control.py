"""Instructions that change no register and no memory: branches, waits, barriers and hints."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mfmadsl.emulator.machine.bits import Mask
from mfmadsl.emulator.machine.wave import Waves
from mfmadsl.emulator.text.assembly import Instruction, Program
from mfmadsl.emulator.text.operand import EXEC, VCC, AssemblySymbol

NO_EFFECT = frozenset(
    [
        "s_nop",
        "s_setprio",
        "s_sleep",
        "s_waitcnt_depctr",
        "s_icache_inv",
        "s_dcache_inv",
        "s_dcache_inv_vol",
        "s_dcache_wb",
        "s_dcache_wb_vol",
        "buffer_wbl2",
        "buffer_inv",
        "buffer_invl2",
        "buffer_wbinvl1",
        "buffer_wbinvl1_vol",
        "s_wakeup",
        "s_dcache_discard",
        "s_dcache_discard_x2",
        "v_clrexcp",
        "v_clrexcp_e32",
        "v_clrexcp_e64",
        "ds_nop",
        "s_ttracedata",
        "s_incperflevel",
        "s_decperflevel",
    ]
)
"""Instructions that change no register and no memory that a kernel can see."""

PASSED = NO_EFFECT | {"s_endpgm", "s_barrier", "s_waitcnt"}
"""Instructions that only pass: what runs next depends on them at most."""


COMPUTED = ("s_setpc_b64", "s_swappc_b64", "s_call_b64")
"""Instructions that lead to an address of a register, or leave one to come back to."""

BRANCHES = ("s_branch", "s_cbranch")
"""How the mnemonics of branches to labels begin."""


def is_control(instruction: Instruction) -> bool:
    """Whether it changes no register and no memory: it only passes, or branches to a label."""
    return instruction.name in PASSED or instruction.name.startswith(BRANCHES)


def _never(waves: Waves) -> Mask:
    return np.zeros(waves.count, np.bool_)


def _any_lane(register: int) -> Callable[[Waves], Mask]:
    return lambda waves: (waves.scalar[register] | waves.scalar[register + 1]) != 0


CONDITIONS: dict[str, Callable[[Waves], Mask]] = {
    "scc0": lambda waves: ~waves.scc,
    "scc1": lambda waves: waves.scc,
    "vccz": lambda waves: ~_any_lane(VCC)(waves),
    "vccnz": _any_lane(VCC),
    "execz": lambda waves: ~_any_lane(EXEC)(waves),
    "execnz": _any_lane(EXEC),
    # No debugger has set what these ask for.
    "cdbgsys": _never,
    "cdbguser": _never,
    "cdbgsys_or_user": _never,
    "cdbgsys_and_user": _never,
}
"""Which waves take a conditional branch, by the end of its mnemonic."""


def branch_label(instruction: Instruction) -> str | None:
    """The label that a branch names, or None if it names none or is no branch."""
    if not instruction.name.startswith(BRANCHES):
        return None
    labels = [o.name for o in instruction.operands if isinstance(o, AssemblySymbol)]
    return labels[0] if len(labels) == 1 else None


def branch_target(program: Program, instruction: Instruction) -> int | None:
    """The place that a branch leads to, or None if it leads nowhere or is no branch."""
    label = branch_label(instruction)
    return None if label is None else program.labels.get(label)

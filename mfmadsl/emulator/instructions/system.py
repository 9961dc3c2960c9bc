"""Instructions for what surrounds a kernel: clocks, traps, and messages to the host.

Sources: CDNA3 ISA, chapter 12 (S_MEMTIME, S_MEMREALTIME, S_TRAP, S_SENDMSG) and section 4.2; LLVM,
"User Guide for AMDGPU Backend", section "Trap Handler ABI".
"""

from __future__ import annotations

import numpy as np

from mfmadsl.emulator.error import OperandError
from mfmadsl.emulator.instructions.smem import check_scalar_data
from mfmadsl.emulator.machine.mode import Machine
from mfmadsl.emulator.machine.operation import Operation
from mfmadsl.emulator.machine.wave import Waves
from mfmadsl.emulator.text.assembly import Instruction
from mfmadsl.emulator.text.operand import Literal, parse_integer

_CYCLES = 4
"""Of an instruction, for the clock: what the shortest takes."""
_CYCLES_OF_A_TICK = 21
"""Of the clock of 100 MHz, at the 2100 MHz of an MI300X."""
_DEBUGGERS = 3
"""The trap that does nothing where no debugger waits for it (`llvm.debugtrap`)."""
_INTERRUPT = ("sendmsg(MSG_INTERRUPT)", "1")


def compile_system(instruction: Instruction, machine: Machine) -> Operation | None:
    """What reads a clock, traps or tells the host, or None if it is something else."""
    del machine
    name = instruction.name
    if name == "s_sendmsg":
        return _message(instruction)
    if instruction.modifiers:
        return None
    if name in ("s_memtime", "s_memrealtime"):
        return _clock(instruction, 1 if name == "s_memtime" else _CYCLES_OF_A_TICK)
    return _trap(instruction) if name == "s_trap" else None


def _clock(instruction: Instruction, divisor: int) -> Operation:
    """A wave's clock counts its own instructions: it says nothing of how long they take."""
    (first,) = instruction.taking(1)
    target = check_scalar_data(first, 2)

    def execute(waves: Waves) -> None:
        time = np.uint64(_CYCLES * waves.steps // divisor)
        waves.write_scalar(target, np.full(waves.count, time))

    return Operation(execute, "smem", (), (target,))


def _trap(instruction: Instruction) -> Operation:
    (operand,) = instruction.taking(1)
    number = parse_integer(operand.text) if isinstance(operand, Literal) else None
    if number is None or not 0 <= number < 256:
        raise OperandError("the number of a trap has 8 bits")

    def execute(waves: Waves) -> None:
        if number != _DEBUGGERS:
            said = waves.memory.host.said if waves.memory.host is not None else ""
            why = f": {said}" if said else ", as a failed assertion or `__builtin_trap` does"
            waves.fault("trap", f"the kernel stops itself by trap {number}{why}", 0)

    return Operation(execute, "salu")


def _message(instruction: Instruction) -> Operation:
    """An interrupt of the host, which answers at once where a kernel calls it."""
    if instruction.modifiers.get("argument") not in _INTERRUPT:
        raise OperandError("of messages, only MSG_INTERRUPT has somebody to read it")

    def execute(waves: Waves) -> None:
        if waves.memory.host is not None:
            waves.memory.host.serve()

    return Operation(execute, "salu")

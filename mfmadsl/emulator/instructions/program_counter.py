"""Instructions on the program counter: where code lies, jumps to there and calls.

Source: CDNA3 ISA, section 4.7 (program flow control) and chapter 12, S_GETPC_B64, S_SETPC_B64,
S_SWAPPC_B64 and S_CALL_B64. What counts is the byte address of the instruction behind.
"""

from __future__ import annotations

import numpy as np

from mfmadsl.emulator.error import OperandError
from mfmadsl.emulator.machine.mode import Machine
from mfmadsl.emulator.machine.operation import Operation, reads_of
from mfmadsl.emulator.machine.wave import Waves
from mfmadsl.emulator.text.assembly import Instruction
from mfmadsl.emulator.text.operand import AssemblySymbol, check_registers, check_target

_NAMES = ("s_getpc_b64", "s_setpc_b64", "s_swappc_b64", "s_call_b64")


def compile_program_counter(instruction: Instruction, machine: Machine) -> Operation | None:
    """What reads or sets the program counter, or None if it is something else.

    Raises OperandError where no comment tells the addresses of code, which text alone does not.
    """
    del machine
    name = instruction.name
    if name not in _NAMES or instruction.modifiers:
        return None
    if instruction.address is None:
        raise OperandError(
            "text does not tell where code lies: take the code object, whose text does"
        )
    behind = np.uint64(instruction.address + instruction.size)
    if name == "s_setpc_b64":
        (operand,) = instruction.taking(1)
        source = check_registers(operand, 2, "s")
        return Operation(
            lambda waves: None, "salu", reads_of(source),
            leads_to=lambda waves: waves.read_scalar(source, "u64"),
        )  # fmt: skip
    first, *rest = instruction.taking(1 if name == "s_getpc_b64" else 2)
    target = check_target(first, 2, "s")

    def execute(waves: Waves) -> None:
        waves.write_scalar(target, np.full(waves.count, behind))

    if name == "s_getpc_b64":
        return Operation(execute, "salu", writes=(target,))
    if name == "s_call_b64":
        if not isinstance(rest[0], AssemblySymbol):
            raise OperandError("it calls a label")
        return Operation(execute, "salu", writes=(target,))
    source = check_registers(rest[0], 2, "s")
    return Operation(
        execute, "salu", reads_of(source), (target,),
        leads_to=lambda waves: waves.read_scalar(source, "u64"),
    )  # fmt: skip

"""A line of assembly to what it does, by the tables of its kind of instruction."""

from __future__ import annotations

from mfmadsl.emulator.error import EmulationError, OperandError
from mfmadsl.emulator.instructions.chip import not_of_chip
from mfmadsl.emulator.instructions.lds import compile_lds
from mfmadsl.emulator.instructions.matrix import compile_matrix
from mfmadsl.emulator.instructions.modifier import has_source_modifiers
from mfmadsl.emulator.instructions.packed import compile_packed
from mfmadsl.emulator.instructions.program_counter import compile_program_counter
from mfmadsl.emulator.instructions.scalar import compile_scalar
from mfmadsl.emulator.instructions.smem import compile_smem
from mfmadsl.emulator.instructions.smem_write import compile_smem_write
from mfmadsl.emulator.instructions.vector import compile_vector
from mfmadsl.emulator.instructions.vector_mode import compile_vector_mode
from mfmadsl.emulator.instructions.vmem import compile_vmem
from mfmadsl.emulator.machine.mode import Machine
from mfmadsl.emulator.machine.operation import Operation
from mfmadsl.emulator.text.assembly import Instruction
from mfmadsl.model import assumed

_VECTOR_COMPILERS = (
    compile_vector,
    compile_packed,
)
"""Those whose sources may be negated, or extended."""

_PLAIN_COMPILERS = (
    compile_matrix,
    compile_lds,
    compile_vmem,
    compile_smem,
    compile_smem_write,
    compile_scalar,
    compile_program_counter,
    compile_vector_mode,
)


def compile_instruction(instruction: Instruction, machine: Machine) -> Operation:
    """What an instruction does to waves of a chip. Raises EmulationError if it is not known."""
    plain = () if has_source_modifiers(instruction) else _PLAIN_COMPILERS
    reason = ""
    for compile_one in (*_VECTOR_COMPILERS, *plain):
        try:
            operation = compile_one(instruction, machine)
        except OperandError as error:  # its operands are not what the manual gives it
            reason = f": {error}"
            break
        if operation is not None:
            reason = not_of_chip(instruction, assumed(machine.arch))
            if reason:
                break
            return operation
    raise EmulationError(f"unknown instruction{reason}", instruction.line, instruction.text)

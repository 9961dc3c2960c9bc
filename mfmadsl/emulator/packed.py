"""Packed instructions: two 32-bit results a lane (CDNA3 ISA, section 6.6, "packed math")."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mfmadsl.emulator.assembly import Instruction
from mfmadsl.emulator.operand import Literal, Operand, Register
from mfmadsl.emulator.vector import fused_multiply_add
from mfmadsl.emulator.wave import Array, Waves

Execute = Callable[[Waves], None]

_OPERATIONS: dict[str, Callable[..., Array]] = {
    "v_pk_add_f32": lambda a, b: a + b,
    "v_pk_mul_f32": lambda a, b: a * b,
    "v_pk_fma_f32": fused_multiply_add(np.float32),
}
_MODIFIERS = {"op_sel", "op_sel_hi", "neg_lo", "neg_hi"}


def compile_packed(instruction: Instruction) -> Execute | None:
    """What a packed instruction does, or None if it is not one that is known."""
    if set(instruction.modifiers) - _MODIFIERS:
        return None
    if instruction.name == "v_pk_mov_b32":
        return _move(instruction)
    if instruction.name in _OPERATIONS:
        return _packed(instruction, _OPERATIONS[instruction.name])
    return None


def _move(instruction: Instruction) -> Execute:
    """The low result is a word of the first source, the high one of the second."""
    target, *sources = instruction.operands
    chosen = instruction.flags("op_sel", len(sources))
    words = [_word(source, which) for source, which in zip(sources, chosen, strict=True)]

    def execute(waves: Waves) -> None:
        low, high = (waves.read_vector(word, "u32").astype(np.uint64) for word in words)
        waves.write_vector(target, np.asarray(low | high << np.uint64(32)))

    return execute


def _packed(instruction: Instruction, operation: Callable[..., Array]) -> Execute:
    """The same operation twice; op_sel picks the words for the low result, op_sel_hi the others."""
    target, *sources = instruction.operands
    halves = []
    for select, negate, default in (("op_sel", "neg_lo", 0), ("op_sel_hi", "neg_hi", 1)):
        words = instruction.flags(select, len(sources), default)
        signs = instruction.flags(negate, len(sources))
        halves.append([(_word(s, w), n) for s, w, n in zip(sources, words, signs, strict=True)])

    def execute(waves: Waves) -> None:
        results = []
        for half in halves:
            values = (waves.read_vector(word, "f32") for word, _ in half)
            signed = (-v if negate else v for v, (_, negate) in zip(values, half, strict=True))
            results.append(np.asarray(operation(*signed)).view(np.uint32).astype(np.uint64))
        waves.write_vector(target, np.asarray(results[0] | results[1] << np.uint64(32)))

    return execute


def _word(operand: Operand, which: int) -> Operand:
    """The low or high word of a pair; a constant is both."""
    if isinstance(operand, Literal):
        return operand
    assert isinstance(operand, Register)
    return Register(operand.bank, operand.index + which, 1)

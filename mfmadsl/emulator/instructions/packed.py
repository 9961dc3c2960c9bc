"""Packed instructions: two numbers at once (CDNA3 ISA, VOP3P)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from mfmadsl.emulator.error import OperandError
from mfmadsl.emulator.instructions.dot import DOT_PRODUCTS, compile_dot
from mfmadsl.emulator.instructions.floating import (
    fused_multiply_add,
    largest,
    maximum3,
    minimum3,
    smallest,
)
from mfmadsl.emulator.instructions.integer import arithmetic
from mfmadsl.emulator.instructions.modifier import base_name, has_source_modifiers
from mfmadsl.emulator.instructions.row import Row, flushed_row, row
from mfmadsl.emulator.instructions.source import SourceOperand, half_of, reads_of_sources
from mfmadsl.emulator.machine.bits import Array, beside, pair_of_halves, pair_of_words
from mfmadsl.emulator.machine.mode import Machine
from mfmadsl.emulator.machine.operation import Operation
from mfmadsl.emulator.machine.wave import Waves
from mfmadsl.emulator.text.assembly import Instruction
from mfmadsl.emulator.text.operand import (
    Literal,
    Operand,
    check_registers,
    check_source,
    check_target,
)

PAIRS_OF_F32: dict[str, Row] = {
    "v_pk_add_f32": row("f32 f32", lambda a, b: a + b),
    "v_pk_mul_f32": row("f32 f32", lambda a, b: a * b),
    "v_pk_fma_f32": row("f32 f32 f32", fused_multiply_add("f32")),
}


def _shifted(kind: str, right: bool) -> Row:
    def compute(a: Array, b: Array) -> Array:
        amount = (a & a.dtype.type(15)).astype(b.dtype)
        return b >> amount if right else b << amount

    return row(f"{kind} {kind}", compute)


PAIRS_OF_HALVES: dict[str, Row] = {
    "v_pk_add_f16": row("f16 f16", lambda a, b: a + b),
    "v_pk_mul_f16": row("f16 f16", lambda a, b: a * b),
    "v_pk_fma_f16": row("f16 f16 f16", fused_multiply_add("f16")),
    "v_pk_max_f16": row("f16 f16", largest),
    "v_pk_min_f16": row("f16 f16", smallest),
    "v_pk_minimum3_f16": row("f16 f16 f16", minimum3),
    "v_pk_maximum3_f16": row("f16 f16 f16", maximum3),
    "v_pk_add_u16": arithmetic("u16", lambda a, b: a + b),
    "v_pk_sub_u16": arithmetic("u16", lambda a, b: a - b),
    "v_pk_add_i16": arithmetic("i16", lambda a, b: a + b),
    "v_pk_sub_i16": arithmetic("i16", lambda a, b: a - b),
    "v_pk_mul_lo_u16": row("u16 u16", lambda a, b: a * b),
    "v_pk_mad_u16": arithmetic("u16", lambda a, b, c: a * b + c, 3),
    "v_pk_mad_i16": arithmetic("i16", lambda a, b, c: a * b + c, 3),
    "v_pk_max_u16": row("u16 u16", np.maximum),
    "v_pk_min_u16": row("u16 u16", np.minimum),
    "v_pk_max_i16": row("i16 i16", np.maximum),
    "v_pk_min_i16": row("i16 i16", np.minimum),
    "v_pk_lshlrev_b16": _shifted("u16", right=False),
    "v_pk_lshrrev_b16": _shifted("u16", right=True),
    "v_pk_ashrrev_i16": _shifted("i16", right=True),
}  # fmt: skip

MIXED: Mapping[str, str] = {f"v_fma_{form}": form for form in ("mix_f32", "mixlo_f16", "mixhi_f16")}


def compile_packed(instruction: Instruction, machine: Machine) -> Operation | None:
    """What a packed instruction does, or None if it is not one that is known."""
    name = base_name(instruction.name)
    if name == "v_pk_mov_b32":
        return _move(instruction)
    if name in PAIRS_OF_F32:
        return _pair(instruction, machine, PAIRS_OF_F32[name], _word)
    if name in PAIRS_OF_HALVES:
        return _pair(instruction, machine, PAIRS_OF_HALVES[name], half_of)
    if name == "v_pk_fmac_f16":
        return _accumulating(instruction, machine)
    if name in DOT_PRODUCTS:
        return compile_dot(instruction, machine)
    if name in MIXED:
        return _mixed(instruction, machine, MIXED[name])
    return None


def _move(instruction: Instruction) -> Operation | None:
    """The low result is a word of the first source, the high one of the second."""
    if set(instruction.modifiers) - {"op_sel"}:
        return None
    register, *sources = instruction.taking(3)
    target = check_target(register, 2)
    chosen = instruction.flags("op_sel", 2)
    words = [_word(s, "b32", bool(which)) for s, which in zip(sources, chosen, strict=True)]

    def moved(_: Waves, data: Waves) -> Array:
        return pair_of_words(*(word.read(data) for word in words))

    def execute(waves: Waves) -> None:
        waves.write_vector(target, moved(waves, waves))

    reads = tuple(replace(read, moved=True) for read in reads_of_sources(words))
    return Operation(execute, "valu", reads, (target,), flow=moved)


def _pair(
    instruction: Instruction,
    machine: Machine,
    row: Row,
    part_of: Callable[[Operand, str, bool], SourceOperand],
) -> Operation | None:
    """One operation on two parts of the sources.

    op_sel picks the parts for the low result, op_sel_hi the others. neg_lo and neg_hi negate them,
    where they are floats; clamp works on each result.
    """
    floating = row.kinds[0][0] == "f"
    allowed = {"op_sel", "op_sel_hi"} | ({"neg_lo", "neg_hi"} if floating else set())
    clamp = "clamp" in instruction.modifiers
    if floating or row.saturating:
        allowed.add("clamp")
    if set(instruction.modifiers) - allowed or has_source_modifiers(instruction):
        return None
    register, *operands = instruction.taking(1 + len(row.kinds))
    bits = 8 * row.result.itemsize
    target = check_target(register, bits // 16)
    pair_of = pair_of_halves if bits == 16 else pair_of_words
    halves = []
    for select, negate, default in (("op_sel", "neg_lo", 0), ("op_sel_hi", "neg_hi", 1)):
        chosen = zip(
            operands,
            row.kinds,
            instruction.flags(select, len(row.kinds), default),
            instruction.flags(negate, len(row.kinds)),
            strict=True,
        )
        halves.append([(part_of(o, kind, part == 1), sign) for o, kind, part, sign in chosen])
    compute = flushed_row(row, machine).compute
    if clamp and row.saturating:
        compute = row.saturating

    def half(waves: Waves, sources: list[tuple[SourceOperand, int]]) -> Array:
        values = (source.read(waves) for source, _ in sources)
        signed = (-v if sign else v for v, (_, sign) in zip(values, sources, strict=True))
        value = np.asarray(compute(*signed))
        return machine.clamped(value) if clamp and floating else value

    def execute(waves: Waves) -> None:
        low, high = (half(waves, sources) for sources in halves)
        waves.write_vector(target, pair_of(low, high))

    reads = reads_of_sources([source for sources in halves for source, _ in sources])
    return Operation(execute, row.unit, reads, (target,), slots=row.cost)


def _accumulating(instruction: Instruction, machine: Machine) -> Operation | None:
    """v_pk_fmac_f16, which adds to its target; of constants no manual says what their upper half
    is."""
    if instruction.modifiers:
        return None
    target, *sources = instruction.taking(3)
    for source in sources:
        check_registers(source, 1, "vs")
    fused = replace(instruction, operands=(target, *sources, target))
    return _pair(fused, machine, PAIRS_OF_HALVES["v_pk_fma_f16"], half_of)


def _mixed(instruction: Instruction, machine: Machine, form: str) -> Operation | None:
    """v_fma_mix: each source is an f32, or one half of a register if its op_sel_hi is set."""
    if set(instruction.modifiers) - {"op_sel", "op_sel_hi", "clamp"}:
        return None
    register, *operands = instruction.taking(4)
    target = check_target(register, 1)
    sources = []
    for operand, narrow, high in zip(
        operands,
        instruction.flags("op_sel_hi", 3),
        instruction.flags("op_sel", 3),
        strict=True,
    ):
        if high and not narrow:
            raise OperandError("op_sel chooses among halves")
        check_source(operand, "f16" if narrow else "f32")
        whole = SourceOperand(operand, "f32")
        sources.append(half_of(operand, "f16", high == 1) if narrow else whole)
    fused = machine.flushed_compute(fused_multiply_add("f32"))
    clamp = "clamp" in instruction.modifiers

    def execute(waves: Waves) -> None:
        values = (source.read(waves).astype(np.float32) for source in sources)
        result = fused(*values)
        result = machine.clamped(result) if clamp else result
        if form == "mix_f32":
            waves.write_vector(target, result)
            return
        half = result.astype(np.float16).view(np.uint16).astype(np.uint32)
        place = "hi" if form == "mixhi_f16" else "lo"
        waves.write_vector(target, beside(waves.read_vector(target, "u32"), half, place))

    reads = reads_of_sources(sources)
    return Operation(execute, "valu", reads, (target,))


def _word(operand: Operand, kind: str, high: bool) -> SourceOperand:
    """The low or high word of a pair.

    Raises OperandError for the high word of a constant: LLVM uses none, and no manual says what it
    is.
    """
    if isinstance(operand, Literal):
        if high or not operand.is_inline:
            raise OperandError(f"what is the high word of {operand.text}?")
        check_source(operand, kind)
        return SourceOperand(operand, kind)
    pair = check_registers(operand, 2, "vs")
    return SourceOperand(replace(pair, index=pair.index + high, count=1), kind)

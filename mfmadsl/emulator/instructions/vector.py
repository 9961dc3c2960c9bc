"""Vector ALU instructions: one value a lane (CDNA3 ISA, section 6, and chapter 12 per opcode)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache

import numpy as np

from mfmadsl.emulator.instructions.block import BLOCKS
from mfmadsl.emulator.instructions.carry import CARRIES
from mfmadsl.emulator.instructions.compare import COMPARE, write_comparison
from mfmadsl.emulator.instructions.convert import CONVERT
from mfmadsl.emulator.instructions.differences import DIFFERENCES, WIDE_DIFFERENCES
from mfmadsl.emulator.instructions.division import DIVISION
from mfmadsl.emulator.instructions.floating import FLOATING
from mfmadsl.emulator.instructions.graphics import GRAPHICS
from mfmadsl.emulator.instructions.integer import INTEGER
from mfmadsl.emulator.instructions.lanes import LANE_INSTRUCTIONS
from mfmadsl.emulator.instructions.modifier import (
    base_name,
    encoding_of,
    has_register_modifiers,
    known_modifiers,
    known_special_modifiers,
)
from mfmadsl.emulator.instructions.narrow import narrow_rows
from mfmadsl.emulator.instructions.row import Row, Special, flushed_row, undefined_bits
from mfmadsl.emulator.instructions.select import SELECT
from mfmadsl.emulator.instructions.source import reads_of_sources, sources_of
from mfmadsl.emulator.instructions.target import target_of
from mfmadsl.emulator.instructions.undocumented import refuse
from mfmadsl.emulator.machine.bits import Array
from mfmadsl.emulator.machine.mode import Machine
from mfmadsl.emulator.machine.operation import Operation
from mfmadsl.emulator.machine.wave import EXEC_PAIR, Waves
from mfmadsl.emulator.text.assembly import Instruction
from mfmadsl.emulator.text.operand import (
    MODE,
    Register,
    check_apart,
    check_source,
    check_target,
)
from mfmadsl.model import assumed


@cache
def vector_rows(arch: str) -> Mapping[str, Row]:
    """The rows of a chip's instruction table."""
    rows = {**INTEGER, **FLOATING, **DIFFERENCES, **GRAPHICS, **CONVERT, **narrow_rows(arch)}
    if assumed(arch).family == "CDNA1":  # later chips have another one at its place in VOP2
        rows["v_mul_legacy_f32"] = replace(rows["v_mul_legacy_f32"], short=True)
    return rows


def compile_vector(instruction: Instruction, machine: Machine) -> Operation | None:
    """What a vector ALU instruction does, or None if it is not one of these."""
    name = base_name(instruction.name)
    if name in SPECIAL:
        special = SPECIAL[name]
        known = known_special_modifiers(instruction, special)
        return special.compile_one(instruction) if known else None
    rows = vector_rows(machine.arch)
    if name in rows:
        row = rows[name]
        return _plain(instruction, row, machine) if known_modifiers(instruction, row) else None
    if name in COMPARE:
        return _compare(instruction, COMPARE[name], machine, to_exec=name.startswith("v_cmpx"))
    return None


def _plain(instruction: Instruction, plain: Row, machine: Machine) -> Operation:
    row = flushed_row(plain, machine)
    first, *operands = instruction.taking(1 + row.source_count - row.accumulates)
    bank, banks = row.banks
    register = check_target(first, plain.result_words, bank)
    if row.accumulates:
        operands.append(register)
    for operand, kind in zip(operands, row.kinds, strict=False):
        check_source(operand, "u32" if kind == "u8" else kind, banks)
    if row.in_passes:
        check_apart(register, *operands)
    if row.reads_mode:
        operands.append(Register("s", MODE, 1))
    sources = sources_of(instruction, row.kinds, operands)
    target = target_of(instruction, register, row.source_count, row.part)
    finish = _finisher(instruction, row, machine)
    compute = row.saturating if "clamp" in instruction.modifiers and row.saturating else row.compute
    what, unknown = row.undocumented or ("", None)
    unknown = machine.flushed_compute(unknown) if unknown else None

    def execute(waves: Waves) -> None:
        values = [source.read(waves) for source in sources]
        if unknown is not None:
            refuse(waves, unknown(*values), what)
        target.write(waves, finish(np.asarray(compute(*values))))

    def flow(waves: Waves, undefined: Waves) -> Array:
        values = [source.read(waves) for source in sources]
        bits = [source.read_bits(undefined) for source in sources]
        return target.flow(undefined, undefined_bits(row, values, bits))

    reads = [
        replace(read, moved=i in row.moves)
        for i, source in enumerate(sources)
        if (read := source.register_read()) is not None
    ]
    plainly = row.banks == ("v", "vs") and not (row.accumulates or row.bare or row.reads_mode)
    return Operation(
        execute, row.unit, (*reads, *target.reads()), (target.register,), flow=flow,
        indexable=plainly and encoding_of(instruction) in ("e32", "e64"), slots=plain.cost,
    )  # fmt: skip


def _finisher(instruction: Instruction, row: Row, machine: Machine) -> Callable[[Array], Array]:
    """The output modifiers: omod, then clamp, which for floats is to [0, 1]."""
    modifiers = instruction.modifiers
    factor = float(modifiers.get("mul", 1)) / float(modifiers.get("div", 1))
    clamp = "clamp" in modifiers and row.saturating is None
    if factor == 1 and not clamp:
        return lambda value: value

    def finish(value: Array) -> Array:
        scaled = machine.scaled(value, factor)
        return machine.clamped(scaled) if clamp else scaled

    return finish


def _compare(
    instruction: Instruction, row: Row, machine: Machine, to_exec: bool
) -> Operation | None:
    encoding = encoding_of(instruction)
    selects = encoding == "sdwa" and not row.is_wide
    allowed = {"src0_sel", "src1_sel"} if selects else set()
    if encoding == "e64" and row.on_floats and "class" not in instruction.name:
        # It asks for an exception where there is NaN, and no kernel traps (CDNA3 ISA, section 6.2).
        allowed = {"clamp"}
    if set(instruction.modifiers) - allowed or encoding == "dpp":
        return None
    if row.is_wide and encoding == "sdwa":
        return None
    if encoding == "e32" and has_register_modifiers(instruction):
        return None
    register, *operands = instruction.taking(3)
    target = check_target(register, 2, "s")
    for operand, kind in zip(operands, row.kinds, strict=True):
        check_source(operand, kind)
    sources = sources_of(instruction, row.kinds, operands)
    compare = machine.flushed_compute(row.compute)

    def execute(waves: Waves) -> None:
        left, right = (source.read(waves) for source in sources)
        write_comparison(waves, target, np.asarray(compare(left, right)), to_exec)

    writes = (target, EXEC_PAIR) if to_exec else (target,)
    reads = reads_of_sources(sources)
    return Operation(execute, row.unit, reads, writes, slots=row.cost)


SPECIAL: dict[str, Special] = {
    **LANE_INSTRUCTIONS, **CARRIES, **DIVISION, **SELECT, **WIDE_DIFFERENCES, **BLOCKS,
}  # fmt: skip
"""The vector instructions that are no rows."""

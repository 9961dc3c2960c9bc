"""Vector ALU instructions: one value a lane (CDNA3 ISA, section 6, and chapter 12 per opcode)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache

import numpy as np

from mfmadsl.emulator.error import OperandError
from mfmadsl.emulator.instructions.carry import CARRIES
from mfmadsl.emulator.instructions.compare import COMPARE, write_comparison
from mfmadsl.emulator.instructions.convert import CONVERT, narrow_rows
from mfmadsl.emulator.instructions.division import DIVISION
from mfmadsl.emulator.instructions.floating import FLOATING
from mfmadsl.emulator.instructions.integer import INTEGER
from mfmadsl.emulator.instructions.lanes import LANE_INSTRUCTIONS
from mfmadsl.emulator.instructions.modifier import (
    base_name,
    encoding_of,
    has_register_modifiers,
    has_source_modifiers,
    is_extended,
    known_dpp,
    known_modifiers,
    known_sub_words,
)
from mfmadsl.emulator.instructions.row import Row, flushed_row, undefined_bits
from mfmadsl.emulator.instructions.source import reads_of_sources, sources_of
from mfmadsl.emulator.instructions.target import target_of
from mfmadsl.emulator.machine.bits import Array, width_of
from mfmadsl.emulator.machine.mode import Machine
from mfmadsl.emulator.machine.operation import Operation, reads_of
from mfmadsl.emulator.machine.wave import VCC_PAIR, Waves
from mfmadsl.emulator.text.assembly import Instruction
from mfmadsl.emulator.text.operand import (
    EXEC,
    MODE,
    Literal,
    Register,
    check_source,
    check_target,
)

_HALF_RESULTS = {  # two bytes: the other half of the target stays
    f"v_cvt_{form}_{source}"
    for kind in ("fp8", "bf8")
    for form, sources in ((f"pk_{kind}", ["f32"]), (f"scalef32_pk_{kind}", ["f32", "f16", "bf16"]))
    for source in sources
}


@cache
def vector_rows(arch: str) -> Mapping[str, Row]:
    """The rows of a chip's instruction table."""
    return {**INTEGER, **FLOATING, **CONVERT, **narrow_rows(arch)}


def compile_vector(instruction: Instruction, machine: Machine) -> Operation | None:
    """What a vector ALU instruction does, or None if it is not one of these."""
    name = base_name(instruction.name)
    if name in SPECIAL:
        return SPECIAL[name](instruction) if _known_special(instruction) else None
    rows = vector_rows(machine.arch)
    if name in rows:
        row = rows[name]
        return _plain(instruction, row, machine) if known_modifiers(instruction, row) else None
    if name in COMPARE:
        return _compare(instruction, name, machine)
    return None


def _known_special(instruction: Instruction) -> bool:
    """Whether an instruction that is no row has modifiers that it knows."""
    name, encoding = base_name(instruction.name), encoding_of(instruction)
    if name in SUB_WORD_SPECIAL and encoding in ("sdwa", "dpp"):
        return known_dpp(instruction) if encoding == "dpp" else known_sub_words(instruction, 2)
    if encoding in ("sdwa", "dpp") or set(instruction.modifiers) - SPECIAL_MODIFIERS.get(
        name, set()
    ):
        return False
    return not has_source_modifiers(instruction) or (
        name in SIGNED_SPECIAL and encoding != "e32" and not is_extended(instruction)
    )


def _plain(instruction: Instruction, plain: Row, machine: Machine) -> Operation:
    name, row = base_name(instruction.name), flushed_row(plain, machine)
    first, *operands = instruction.operands
    bank, banks = _BANKS.get(name, ("v", "vs"))
    register = check_target(first, plain.result_words, bank)
    if row.accumulates:
        operands.append(register)
    for operand, kind in zip(operands, row.kinds, strict=False):
        check_source(operand, "u32" if kind == "u8" else kind, banks)
    if row.reads_mode:
        operands.append(Register("s", MODE, 1))
    sources = sources_of(instruction, row.kinds, operands)
    target = target_of(
        instruction, register, len(row.kinds) - row.reads_mode, name in _HALF_RESULTS
    )
    finish = _finisher(instruction, row, machine)
    compute = row.saturating if "clamp" in instruction.modifiers and row.saturating else row.compute

    def execute(waves: Waves) -> None:
        values = (source.read(waves) for source in sources)
        target.write(waves, finish(np.asarray(compute(*values))))

    def flow(waves: Waves, undefined: Waves) -> Array:
        values = [source.read(waves) for source in sources]
        bits = [source.read_bits(undefined) for source in sources]
        return target.placed(undefined, undefined_bits(row, values, bits))

    reads = [
        replace(read, moved=i in row.moves)
        for i, source in enumerate(sources)
        if (read := source.register_read()) is not None
    ]
    return Operation(execute, "valu", (*reads, *target.reads()), (target.register,), flow=flow)


_BANKS = {  # of the target and of the sources, where they are not the usual ones
    "v_accvgpr_read_b32": ("v", "a"),
    "v_accvgpr_write_b32": ("a", "vs"),
    "v_accvgpr_mov_b32": ("a", "a"),
}


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


def _compare(instruction: Instruction, name: str, machine: Machine) -> Operation | None:
    kinds, function = COMPARE[name]
    encoding = encoding_of(instruction)
    wide = width_of(kinds[0]) == 64
    allowed = {"src0_sel", "src1_sel"} if encoding == "sdwa" and not wide else set()
    if set(instruction.modifiers) - allowed or encoding == "dpp" or (wide and encoding == "sdwa"):
        return None
    if encoding == "e32" and has_register_modifiers(instruction):
        return None
    register, *operands = instruction.operands
    target = check_target(register, 2, "s")
    to_exec = name.startswith("v_cmpx")
    for operand, kind in zip(operands, kinds, strict=True):
        check_source(operand, kind)
    sources = sources_of(instruction, kinds, operands)
    compare = machine.flushed_compute(function)

    def execute(waves: Waves) -> None:
        left, right = (source.read(waves) for source in sources)
        write_comparison(waves, target, np.asarray(compare(left, right)), to_exec)

    writes = (target, Register("s", EXEC, 2)) if to_exec else (target,)
    return Operation(execute, "valu", reads_of_sources(sources), writes)


def _conditional_move(instruction: Instruction) -> Operation:
    """v_cndmask_b32: the second source where the mask is set, else the first."""
    first, left, right, *mask = instruction.operands
    register = check_target(first, 1)
    (condition,) = mask or (VCC_PAIR,)
    check_source(condition, "b64", "s")
    # The bits move as they are, unless modifiers change the sign of a float.
    kinds = ["f32" if isinstance(o, Register | Literal) and (o.negate or o.absolute) else "u32"
             for o in (left, right)]  # fmt: skip
    for operand, kind in zip((left, right), kinds, strict=True):
        check_source(operand, kind)
    sources = sources_of(instruction, kinds, (left, right))
    target = target_of(instruction, register, 2)

    def execute(waves: Waves) -> None:
        a, b = (source.read(waves).view(np.uint32) for source in sources)
        target.write(waves, np.where(waves.read_mask(condition), b, a))

    def flow(waves: Waves, undefined: Waves) -> Array:
        a, b = (source.read_bits(undefined) for source in sources)
        return target.placed(undefined, np.where(waves.read_mask(condition), b, a))

    moved = tuple(replace(read, moved=True) for read in reads_of_sources(sources))
    reads = (*reads_of(condition), *moved, *target.reads())
    return Operation(execute, "valu", reads, (target.register,), flow=flow)


def _truth_table(instruction: Instruction) -> Operation:
    """v_bitop3_b32 (gfx950): any function of three bits, given as a table of eight."""
    register, *sources = instruction.operands
    target = check_target(register, 1)
    table = int(instruction.modifiers.get("bitop3", "0"), 0)
    if table not in range(256) or len(sources) != 3:
        raise OperandError("bitop3 has three sources and a table of eight bits")
    kind = "u16" if "b16" in instruction.name else "u32"
    for source in sources:
        check_source(source, kind)

    def execute(waves: Waves) -> None:
        a, b, c = (waves.read_vector(source, kind) for source in sources)
        result = np.zeros(np.broadcast_shapes(a.shape, b.shape, c.shape), dtype=a.dtype)
        for row in range(8):
            if table >> row & 1:
                term = a if row & 4 else ~a
                term = term & (b if row & 2 else ~b)
                result |= term & (c if row & 1 else ~c)
        waves.write_vector(target, result)

    return Operation(execute, "valu", reads_of(*sources), (target,))


SUB_WORD_SPECIAL = frozenset(["v_cndmask_b32", *(name for name in CARRIES if "_co_" in name)])
"""Those that are no rows and have SDWA and DPP."""

SIGNED_SPECIAL = frozenset(["v_cndmask_b32", *DIVISION])
"""Those that are no rows and take negated floats."""

SPECIAL_MODIFIERS = {"v_bitop3_b32": {"bitop3"}, "v_bitop3_b16": {"bitop3"}}
SPECIAL: dict[str, Callable[[Instruction], Operation]] = {
    **LANE_INSTRUCTIONS,
    **CARRIES,
    **DIVISION,
    "v_cndmask_b32": _conditional_move,
    "v_bitop3_b32": _truth_table,
    "v_bitop3_b16": _truth_table,
}

"""Vector ALU instructions: one value a lane (CDNA3 ISA, section 6, and chapter 12 per opcode)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from mfmadsl.emulator.assembly import Instruction
from mfmadsl.emulator.compare import COMPARE, write_comparison
from mfmadsl.emulator.convert import CONVERT, narrow_rows
from mfmadsl.emulator.floating import FLOATING, division_scale, scaled_multiply_add
from mfmadsl.emulator.integer import INTEGER
from mfmadsl.emulator.lanes import LANE_INSTRUCTIONS
from mfmadsl.emulator.machine import Machine
from mfmadsl.emulator.operand import EXEC, MODE, Operand, Register
from mfmadsl.emulator.operation import ALL_BITS, Operation, Read, reads_of
from mfmadsl.emulator.row import Row, undefined_bits, upward
from mfmadsl.emulator.source import (
    DPP_MODIFIERS,
    LanePattern,
    Source,
    lane_pattern,
    selection,
)
from mfmadsl.emulator.wave import VCC_PAIR, Array, Mask, Waves, width_of

_SUB_WORD = {"dst_sel", "dst_unused", "src0_sel", "src1_sel"}
_MODIFIERS = {"clamp", "mul", "div", "op_sel", *_SUB_WORD, *DPP_MODIFIERS}
_HALF_RESULTS = {  # two bytes: the other half of the target stays
    f"v_cvt_{form}pk_{kind}_f32" for form in ("", "scalef32_") for kind in ("fp8", "bf8")
}
_ENCODINGS = ("e32", "e64", "sdwa", "dpp")


def base_name(name: str) -> str:
    """The mnemonic without its encoding: v_add_u32_e32 is v_add_u32."""
    for encoding in _ENCODINGS:
        if name.endswith(f"_{encoding}"):
            return base_name(name.removesuffix(f"_{encoding}"))
    return name


@cache
def vector_rows(arch: str) -> Mapping[str, Row]:
    """The rows of a chip's instruction table."""
    return {**INTEGER, **FLOATING, **CONVERT, **narrow_rows(arch)}


def compile_vector(instruction: Instruction, machine: Machine) -> Operation | None:
    """What a vector ALU instruction does, or None if it is not one of these."""
    name = base_name(instruction.name)
    if name in SPECIAL and not set(instruction.modifiers) - SPECIAL_MODIFIERS.get(name, set()):
        return SPECIAL[name](instruction)
    if set(instruction.modifiers) - _MODIFIERS:
        return None
    rows = vector_rows(machine.arch)
    if name in rows:
        return _plain(instruction, machine.flushing(rows[name]))
    if name in COMPARE:
        return _compare(instruction, name)
    return None


@dataclass(frozen=True)
class _Target:
    """Where a result goes: bits of a register, of which the others stay or become 0."""

    register: Register
    low: int = 0
    width: int = 0
    preserve: bool = False
    lanes: LanePattern | None = None

    def write(self, waves: Waves, value: Array) -> None:
        only = None if self.lanes is None else self.lanes.written(waves)
        waves.write_vector(self.register, self.placed(waves, value), only)

    def placed(self, waves: Waves, value: Array) -> Array:
        """The value at its bits of the register, with those that stay."""
        if not self.width:
            return value
        bits = value.view(f"u{value.itemsize}").astype(np.uint32) & np.uint32((1 << self.width) - 1)
        placed = bits << np.uint32(self.low)
        if self.preserve:
            placed = placed | waves.read_vector(self.register, "u32") & np.uint32(self._kept)
        return placed

    @property
    def _kept(self) -> int:
        return ~(((1 << self.width) - 1) << self.low) & ALL_BITS

    def reads(self) -> tuple[Read, ...]:
        """What of the register stays, and so is read."""
        if self.lanes is not None and not self.lanes.zero_fill:
            return (Read(self.register, moved=True),)
        if self.width and self.preserve:
            return (Read(self.register, self._kept, moved=True),)
        return ()


def _sources(
    instruction: Instruction, kinds: Sequence[str], operands: Sequence[Operand]
) -> list[Source]:
    """The sources with their op_sel, SDWA selections and DPP pattern."""
    modifiers, pattern = instruction.modifiers, lane_pattern(instruction.modifiers)
    high = [*instruction.flags("op_sel", len(kinds) + 1), 0]
    sources = []
    for i, (operand, kind) in enumerate(zip(operands, kinds, strict=True)):
        low, width = 0, 0
        if kind == "u8":  # a byte of a word, which op_sel counts
            low, width = (8 * (2 * high[1] + high[0]) if "op_sel" in modifiers else 0), 8
        elif high[i] and width_of(kind) == 16:
            low, width = 16, 16
        if name := modifiers.get(f"src{i}_sel"):
            low, width = selection(name)
        signed = isinstance(operand, Register) and operand.extend
        typed = "u32" if kind == "u8" else kind
        sources.append(Source(operand, typed, low, width, signed, pattern if i == 0 else None))
    return sources


def _target(instruction: Instruction, register: Operand, sources: int) -> _Target:
    assert isinstance(register, Register)
    modifiers = instruction.modifiers
    if modifiers.get("dst_sel", "DWORD") != "DWORD":
        low, width = selection(modifiers["dst_sel"])
        preserve = modifiers.get("dst_unused", "UNUSED_PAD") == "UNUSED_PRESERVE"
        return _Target(register, low, width, preserve)
    high = instruction.flags("op_sel", sources + 1)[sources]
    if high or base_name(instruction.name) in _HALF_RESULTS:
        return _Target(register, 16 * high, 16, preserve=True)
    return _Target(register, lanes=lane_pattern(modifiers))


def _plain(instruction: Instruction, row: Row) -> Operation | None:
    register, *operands = instruction.operands
    if row.accumulates:
        operands.append(register)
    if row.reads_mode:
        operands.append(Register("s", MODE, 1))
    sources = _sources(instruction, row.kinds, operands)
    target = _target(instruction, register, len(row.kinds) - row.reads_mode)
    finish = _finisher(instruction, row)
    if finish is None:
        return None
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


def _finisher(instruction: Instruction, row: Row) -> Callable[[Array], Array] | None:
    """The output modifiers: omod, then clamp, which for floats is to [0, 1]."""
    modifiers = instruction.modifiers
    factor = float(modifiers.get("mul", 1)) / float(modifiers.get("div", 1))
    clamp = "clamp" in modifiers and row.saturating is None
    if factor == 1 and not clamp:
        return lambda value: value
    if not row.kinds[0].startswith("f"):
        return None

    def finish(value: Array) -> Array:
        scaled = value * value.dtype.type(factor)
        return np.fmin(np.fmax(scaled, 0), 1).astype(value.dtype) if clamp else scaled

    return finish


def _compare(instruction: Instruction, name: str) -> Operation:
    kinds, compare = COMPARE[name]
    target, *operands = instruction.operands
    assert isinstance(target, Register)
    to_exec = name.startswith("v_cmpx")
    sources = _sources(instruction, kinds, operands)

    def execute(waves: Waves) -> None:
        left, right = (source.read(waves) for source in sources)
        write_comparison(waves, target, np.asarray(compare(left, right)), to_exec)

    writes = (target, Register("s", EXEC, 2)) if to_exec else (target,)
    return Operation(execute, "valu", _reads(sources), writes)


def _reads(sources: Sequence[Source]) -> tuple[Read, ...]:
    return tuple(read for source in sources if (read := source.register_read()) is not None)


def _conditional_move(instruction: Instruction) -> Operation:
    """v_cndmask_b32: the second source where the mask is set, else the first."""
    register, left, right, *mask = instruction.operands
    condition: Operand = mask[0] if mask else VCC_PAIR
    # The bits move as they are, unless modifiers change the sign of a float.
    kinds = ["f32" if isinstance(o, Register) and (o.negate or o.absolute) else "u32"
             for o in (left, right)]  # fmt: skip
    sources = _sources(instruction, kinds, (left, right))
    target = _target(instruction, register, 2)

    def execute(waves: Waves) -> None:
        a, b = (source.read(waves).view(np.uint32) for source in sources)
        target.write(waves, np.where(waves.read_mask(condition), b, a))

    def flow(waves: Waves, undefined: Waves) -> Array:
        a, b = (source.read_bits(undefined) for source in sources)
        return target.placed(undefined, np.where(waves.read_mask(condition), b, a))

    moved = tuple(replace(read, moved=True) for read in _reads(sources))
    reads = (*reads_of(condition), *moved, *target.reads())
    return Operation(execute, "valu", reads, (target.register,), flow=flow)


def _carry(instruction: Instruction) -> Operation:
    """v_add_co, v_sub_co and their forms that take a carry in."""
    name = base_name(instruction.name)
    register, carry_out, left, right, *carry = instruction.operands
    assert isinstance(carry_out, Register)
    sources = _sources(instruction, ("u32", "u32"), (left, right))
    target = _target(instruction, register, 2)
    subtract, reverse = "sub" in name, "rev" in name

    def execute(waves: Waves) -> None:
        a, b = (source.read(waves).astype(np.int64) for source in sources)
        if reverse:
            a, b = b, a
        carried = waves.read_mask(carry[0]) if carry else 0
        total = a - b - carried if subtract else a + b + carried
        # The sources may be the target: write after reading.
        target.write(waves, np.asarray(total).astype(np.uint32))
        waves.write_mask(carry_out, np.asarray((total < 0) | (total > 0xFFFF_FFFF)))

    reads = (*_reads(sources), *reads_of(*carry), *target.reads())
    return Operation(execute, "valu", reads, (target.register, carry_out))


def _multiply_add_wide(instruction: Instruction) -> Operation:
    """v_mad_u64_u32 and v_mad_i64_i32: 32 x 32 + 64 bits, with the carry out."""
    target, carry_out, left, right, addend = instruction.operands
    assert isinstance(target, Register)
    assert isinstance(carry_out, Register)
    signed = "i64" in instruction.name
    narrow, kind = ("i32", "i64") if signed else ("u32", "u64")
    wide = np.int64 if signed else np.uint64

    def execute(waves: Waves) -> None:
        product = waves.read_vector(left, narrow).astype(wide)
        product = product * waves.read_vector(right, narrow).astype(wide)
        total = np.asarray(product + waves.read_vector(addend, kind))
        waves.write_vector(target, total)
        waves.write_mask(carry_out, total < product)

    def flow(_: Waves, undefined: Waves) -> Array:
        # LLVM uses this for 32 bits too, with nothing in the upper half of the addend.
        return upward(Source(addend, kind).read_bits(undefined))

    reads = reads_of(left, right)
    if isinstance(addend, Register):
        reads = (*reads, Read(addend, moved=True))
    return Operation(execute, "valu", reads, (target, carry_out), flow=flow)


def _truth_table(instruction: Instruction) -> Operation:
    """v_bitop3_b32 (gfx950): any function of three bits, given as a table of eight."""
    target, *sources = instruction.operands
    assert isinstance(target, Register)
    table = int(instruction.modifiers.get("bitop3", "0"), 0)
    kind = "u16" if "b16" in instruction.name else "u32"

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


def _division_scale(instruction: Instruction) -> Operation:
    target, flag, *operands = instruction.operands
    assert isinstance(target, Register)
    assert isinstance(flag, Register)
    kind = instruction.name.split("_")[3]
    sources = [Source(operand, kind) for operand in operands]

    def execute(waves: Waves) -> None:
        value, denominator, numerator = (
            np.broadcast_to(source.read(waves), (waves.count, 64)) for source in sources
        )
        result, scaled = division_scale(value, denominator, numerator)
        waves.write_vector(target, result)
        waves.write_mask(flag, scaled)

    return Operation(execute, "valu", _reads(sources), (target, flag))


def _division_step(instruction: Instruction) -> Operation:
    target, *operands = instruction.operands
    assert isinstance(target, Register)
    name = base_name(instruction.name)
    sources = [Source(operand, name[-3:]) for operand in operands]

    def execute(waves: Waves) -> None:
        values = (source.read(waves) for source in sources)
        scale: Mask = waves.read_mask(VCC_PAIR)
        waves.write_vector(target, scaled_multiply_add[name](*values, scale))

    return Operation(execute, "valu", (*_reads(sources), Read(VCC_PAIR)), (target,))


_CARRIES = [f"v_{name}_co_u32" for name in ("add", "sub", "subrev", "addc", "subb", "subbrev")]
SPECIAL_MODIFIERS: dict[str, set[str]] = {
    **dict.fromkeys(["v_cndmask_b32", *_CARRIES], _SUB_WORD | DPP_MODIFIERS),
    "v_bitop3_b32": {"bitop3"},
    "v_bitop3_b16": {"bitop3"},
}
SPECIAL: dict[str, Callable[[Instruction], Operation]] = {
    **LANE_INSTRUCTIONS,
    "v_cndmask_b32": _conditional_move,
    "v_mad_u64_u32": _multiply_add_wide,
    "v_mad_i64_i32": _multiply_add_wide,
    "v_bitop3_b32": _truth_table,
    "v_bitop3_b16": _truth_table,
    "v_div_scale_f32": _division_scale,
    "v_div_scale_f64": _division_scale,
    **dict.fromkeys(scaled_multiply_add, _division_step),
    **dict.fromkeys(_CARRIES, _carry),
}

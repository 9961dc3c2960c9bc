"""Scalar ALU instructions: one value a wave (CDNA3 ISA, section 5, and chapter 12 per opcode)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mfmadsl.emulator.error import OperandError
from mfmadsl.emulator.instructions.integer import (
    field_mask,
    leading_signs,
    leading_zeros,
    lowest_set,
    multiply_high,
    population,
    reversed_bits,
)
from mfmadsl.emulator.instructions.mode_register import MODE_INSTRUCTIONS, compile_mode
from mfmadsl.emulator.instructions.row import Row, undefined_bits
from mfmadsl.emulator.machine.bits import Array, Compute, width_of
from mfmadsl.emulator.machine.mode import Machine
from mfmadsl.emulator.machine.operation import ALL_BITS, OperandRead, Operation, moves_of, reads_of
from mfmadsl.emulator.machine.wave import EXEC_PAIR, Waves
from mfmadsl.emulator.text.assembly import Instruction
from mfmadsl.emulator.text.operand import (
    Literal,
    Operand,
    Register,
    check_source,
    check_target,
)


def compile_scalar(instruction: Instruction, machine: Machine) -> Operation | None:
    """What a scalar instruction does, or None if it is not one of these."""
    name = instruction.name
    if name in MODE_INSTRUCTIONS:
        return compile_mode(instruction, machine)
    if instruction.modifiers:
        return None
    if name in SCALAR:
        return _plain(instruction, SCALAR[name])
    if name in SCALAR_COMPARE:
        return _compare(instruction, SCALAR_COMPARE[name])
    if name in SAVE_EXEC:
        return _save_exec(instruction, SAVE_EXEC[name])
    return None


def _row(kinds: str, compute: Compute, scc: Compute | None = None, **more: Any) -> Row:
    return Row(tuple(kinds.split()), compute, scc=scc, unit="salu", slots=1, **more)


def _nonzero(*values: Array) -> Array:
    return values[-1] != 0


def _add_overflows(a: Array, b: Array, result: Array) -> Array:
    return ((a ^ result) & (b ^ result)) < 0


def _subtract_overflows(a: Array, b: Array, result: Array) -> Array:
    return ((a ^ b) & (a ^ result)) < 0


def _field(a: Array, control: Array) -> Array:
    """Bits control[5:0] and up, control[22:16] of them, sign-extended in a signed type."""
    bits = 8 * a.itemsize
    offset = (control & np.uint32(bits - 1)).astype(np.uint64)
    width = np.minimum(control >> np.uint32(16) & np.uint32(127), bits).astype(np.uint64)
    one, whole = np.uint64(1), np.asarray(a.view(f"u{a.itemsize}").astype(np.uint64))
    if a.dtype.kind == "i":  # the bits above the number repeat its sign
        whole = a.astype(np.int64).view(np.uint64)
        value = (a.astype(np.int64) >> offset.astype(np.int64)).view(np.uint64)
    else:
        value = whole >> offset
    mask = np.where(width >= 64, ~np.uint64(0), (one << np.minimum(width, np.uint64(63))) - one)
    value = value & mask
    if a.dtype.kind == "i":
        sign = np.where(width == 0, np.uint64(0), one << np.maximum(width, one) - one)
        value = (value ^ sign) - sign
    return value.astype(f"u{a.itemsize}").view(a.dtype)


def _low(a: Array) -> Array:
    return a & 0xFFFF


def _carry(total: Array) -> Array:
    return (total < 0) | (total > 0xFFFF_FFFF)


def _add_carry(a: Array, b: Array, scc: Array) -> Array:
    return (a.astype(np.int64) + b + scc).astype(np.uint32)


def _subtract_borrow(a: Array, b: Array, scc: Array) -> Array:
    return (a.astype(np.int64) - b - scc).astype(np.uint32)


def _shift(direction: str) -> Callable[..., Array]:
    def compute(a: Array, b: Array) -> Array:
        amount = (b & (8 * a.itemsize - 1)).astype(a.dtype)
        return a << amount if direction == "left" else a >> amount

    return compute


def _cast(dtype: type) -> Callable[..., Array]:
    return lambda a: a.astype(dtype).astype(np.int32)


def _shift_add(shift: int) -> Row:
    """The row of (a << shift) + b and its carry."""
    return _row(
        "u32 u32",
        lambda a, b: (a << np.uint32(shift)) + b,
        lambda a, b, _: (a.astype(np.uint64) << np.uint64(shift)) + b > 0xFFFF_FFFF,
    )


def _choose(a: Array, b: Array, scc: Array) -> Array:
    return np.where(scc, a, b)


SCALAR: dict[str, Row] = {
    "s_mov_b32": _row("b32", lambda a: a, moves=(0,)),
    "s_mov_b64": _row("b64", lambda a: a, moves=(0,)),
    "s_movk_i32": _row("k16", lambda a: a),
    "s_cmov_b32": _row("b32 b32", _choose,
                       takes_scc=True, accumulates=True, moves=(0, 1)),
    "s_cmov_b64": _row("b64 b64", _choose,
                       takes_scc=True, accumulates=True, moves=(0, 1)),
    "s_cmovk_i32": _row("k16 i32", _choose,
                        takes_scc=True, accumulates=True, moves=(1,)),
    "s_cselect_b32": _row("b32 b32", _choose, takes_scc=True, moves=(0, 1)),
    "s_cselect_b64": _row("b64 b64", _choose, takes_scc=True, moves=(0, 1)),
    "s_add_u32": _row("u32 u32", lambda a, b: a + b, lambda a, b, r: r < a),
    "s_sub_u32": _row("u32 u32", lambda a, b: a - b, lambda a, b, r: b > a),
    "s_addc_u32": _row("u32 u32", _add_carry, lambda a, b, scc, _: _carry(
        a.astype(np.int64) + b + scc), takes_scc=True),
    "s_subb_u32": _row("u32 u32", _subtract_borrow, lambda a, b, scc, _: _carry(
        a.astype(np.int64) - b - scc), takes_scc=True),
    "s_add_i32": _row("i32 i32", lambda a, b: a + b, _add_overflows),
    "s_sub_i32": _row("i32 i32", lambda a, b: a - b, _subtract_overflows),
    "s_addk_i32": _row("k16 i32", lambda a, b: a + b, _add_overflows, accumulates=True),
    "s_mulk_i32": _row("k16 i32", lambda a, b: a * b, accumulates=True),
    "s_mul_i32": _row("i32 i32", lambda a, b: a * b),
    "s_mul_hi_u32": _row("u32 u32", lambda a, b: multiply_high(np.uint64, a, b)),
    "s_mul_hi_i32": _row("i32 i32", lambda a, b: multiply_high(np.int64, a, b)),
    "s_absdiff_i32": _row("i32 i32", lambda a, b: np.abs(a - b), _nonzero),
    "s_min_u32": _row("u32 u32", np.minimum, lambda a, b, r: a < b),
    "s_max_u32": _row("u32 u32", np.maximum, lambda a, b, r: a > b),
    "s_min_i32": _row("i32 i32", np.minimum, lambda a, b, r: a < b),
    "s_max_i32": _row("i32 i32", np.maximum, lambda a, b, r: a > b),
    "s_bfm_b32": _row("u32 u32", field_mask(32)),
    "s_bfm_b64": _row("u32 u32", field_mask(64)),
    "s_bfe_u32": _row("u32 u32", _field, _nonzero),
    "s_bfe_i32": _row("i32 u32", _field, _nonzero),
    "s_bfe_u64": _row("u64 u32", _field, _nonzero),
    "s_bfe_i64": _row("i64 u32", _field, _nonzero),
    "s_pack_ll_b32_b16": _row("u32 u32", lambda a, b: _low(a) | b << 16,
                              moves=(0, 1)),
    "s_pack_lh_b32_b16": _row("u32 u32", lambda a, b: _low(a) | (b & 0xFFFF0000),
                              moves=(0, 1)),
    "s_pack_hh_b32_b16": _row("u32 u32", lambda a, b: a >> 16 | (b & 0xFFFF0000),
                              moves=(0, 1)),
    "s_abs_i32": _row("i32", np.abs, _nonzero),
    "s_sext_i32_i16": _row("b32", _cast(np.int16)),
    "s_sext_i32_i8": _row("b32", _cast(np.int8)),
    "s_bitset0_b32": _row("u32 u32", lambda a, old: old & ~(np.uint32(1) << (a & 31)),
                          accumulates=True),
    "s_bitset1_b32": _row("u32 u32", lambda a, old: old | np.uint32(1) << (a & 31),
                          accumulates=True),
    **{f"s_lshl{shift}_add_u32": _shift_add(shift) for shift in range(1, 5)},
}  # fmt: skip
for _bits in ("b32", "b64"):
    _kind = "u" + _bits[1:]
    SCALAR |= {
        f"s_{_name}_{_bits}": _row(f"{_bits} {_bits}", _compute, _nonzero, moves=(0, 1))
        for _name, _compute in {
            "and": lambda a, b: a & b,
            "or": lambda a, b: a | b,
            "xor": lambda a, b: a ^ b,
            "andn2": lambda a, b: a & ~b,
            "orn2": lambda a, b: a | ~b,
            "nand": lambda a, b: ~(a & b),
            "nor": lambda a, b: ~(a | b),
            "xnor": lambda a, b: ~(a ^ b),
        }.items()
    }
    SCALAR |= {
        f"s_lshl_{_bits}": _row(f"{_kind} u32", _shift("left"), _nonzero, moves=(0,)),
        f"s_lshr_{_bits}": _row(f"{_kind} u32", _shift("right"), _nonzero, moves=(0,)),
        f"s_ashr_i{_bits[1:]}": _row(f"i{_bits[1:]} u32", _shift("right"), _nonzero, moves=(0,)),
        f"s_not_{_bits}": _row(_bits, lambda a: ~a, _nonzero, moves=(0,)),
        f"s_brev_{_bits}": _row(_bits, reversed_bits, moves=(0,)),
        f"s_bcnt0_i32_{_bits}": _row(_bits, lambda a: population(~a), _nonzero),
        f"s_bcnt1_i32_{_bits}": _row(_bits, population, _nonzero),
        f"s_ff0_i32_{_bits}": _row(_bits, lambda a: lowest_set(~a)),
        f"s_ff1_i32_{_bits}": _row(_bits, lowest_set),
        f"s_flbit_i32_{_bits}": _row(_bits, leading_zeros),
    }
SCALAR["s_flbit_i32"] = _row("i32", leading_signs)
SCALAR["s_flbit_i32_i64"] = _row("i64", leading_signs)

_RELATIONS: dict[str, Callable[[Array, Array], Array]] = {
    "eq": np.equal,
    "lg": np.not_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "lt": np.less,
    "le": np.less_equal,
}


def _bit_is(expected: int) -> Callable[[Array, Array], Array]:
    def compare(value: Array, position: Array) -> Array:
        bit = (position & (8 * value.itemsize - 1)).astype(value.dtype)
        return (value >> bit & value.dtype.type(1)) == expected

    return compare


SCALAR_COMPARE: dict[str, Row] = {
    **{f"s_cmp_{name}_{kind}": _row(f"{kind} {kind}", compare)
       for name, compare in _RELATIONS.items() for kind in ("u32", "i32")},
    **{f"s_cmpk_{name}_{kind}": _row(f"{kind} {'k16' if kind == 'i32' else 'n16'}", compare)
       for name, compare in _RELATIONS.items() for kind in ("u32", "i32")},
    "s_cmp_eq_u64": _row("u64 u64", np.equal),
    "s_cmp_lg_u64": _row("u64 u64", np.not_equal),
    **{f"s_bitcmp{bit}_b{bits}": _row(f"u{bits} u32", _bit_is(bit))
       for bit in (0, 1) for bits in (32, 64)},
}  # fmt: skip
SAVE_EXEC: dict[str, Row] = {
    f"s_{name}_saveexec_b64": _row("b64 b64", combine, moves=(0,))
    for name, combine in {
        "and": lambda s, e: s & e,
        "or": lambda s, e: s | e,
        "xor": lambda s, e: s ^ e,
        "andn1": lambda s, e: ~s & e,
        "andn2": lambda s, e: s & ~e,
        "orn1": lambda s, e: ~s | e,
        "orn2": lambda s, e: s | ~e,
        "nand": lambda s, e: ~(s & e),
        "nor": lambda s, e: ~(s | e),
        "xnor": lambda s, e: ~(s ^ e),
    }.items()
}
"""How the new EXEC follows from the source and EXEC; the old one goes to the target."""


def _read(waves: Waves, operand: Operand, kind: str) -> Array:
    if kind in ("k16", "n16"):  # the constant of a SOPK instruction, sign-extended or not
        return np.asarray(_short_constant(operand, kind))
    return waves.read_scalar(operand, kind)


def _short_constant(operand: Operand, kind: str) -> np.int32 | np.uint32:
    if not isinstance(operand, Literal):
        raise OperandError("the constant is missing")
    bits = operand.bits(16, floating=False)
    if kind == "k16":
        return np.int32(np.uint16(bits).view(np.int16))
    if operand.is_negative_integer:
        raise OperandError("the constant has no sign")
    return np.uint32(bits)


def _check(operand: Operand, kind: str) -> None:
    """Whether an operand can be a scalar source. Raises OperandError if it cannot."""
    if kind in ("k16", "n16"):
        _short_constant(operand, kind)
    else:
        check_source(operand, kind, "s")


def _field_reads(
    source: Operand, control: Operand, reads: tuple[OperandRead, ...]
) -> tuple[OperandRead, ...]:
    """Of a field whose place is a constant only its bits count: LLVM extends 16 bits of a pair of
    which nobody has written the second."""
    if not isinstance(source, Register) or not isinstance(control, Literal):
        return reads
    place = control.bits(32, floating=False)
    offset, width = place & (32 * source.count - 1), place >> 16 & 127
    field = ((1 << width) - 1 << offset) & ((1 << 32 * source.count) - 1)
    words = [field >> 32 * word & ALL_BITS for word in range(source.count)]
    return tuple(
        OperandRead(Register(source.bank, source.index + word, 1), bits)
        for word, bits in enumerate(words)
        if bits
    )


def _plain(instruction: Instruction, row: Row) -> Operation:
    first, *operands = instruction.taking(1 + len(row.kinds) - row.accumulates)
    target = check_target(first, row.result_words, "s")
    if row.accumulates:
        operands.append(target)
    typed = list(zip(operands, row.kinds, strict=True))
    for operand, kind in typed:
        _check(operand, kind)

    def execute(waves: Waves) -> None:
        values = [_read(waves, operand, kind) for operand, kind in typed]
        if row.takes_scc:
            values.append(waves.scc)
        result = np.broadcast_to(np.asarray(row.compute(*values)), (waves.count,))
        if row.scc is not None:
            waves.scc = np.broadcast_to(row.scc(*values, result), (waves.count,))
        waves.write_scalar(target, np.ascontiguousarray(result))

    def flow(waves: Waves, undefined: Waves) -> Array:
        values = [_read(waves, operand, kind) for operand, kind in typed]
        bits = [_read(undefined, operand, f"u{width_of(kind)}") for operand, kind in typed]
        given = [*values, waves.scc] if row.takes_scc else values
        return np.broadcast_to(undefined_bits(row, given, bits), (waves.count,))

    reads = tuple(
        OperandRead(operand, moved=i in row.moves)
        for i, (operand, _) in enumerate(typed)
        if isinstance(operand, Register)
    )
    if row.compute is _field:
        reads = _field_reads(operands[0], operands[1], reads)
    return Operation(
        execute, row.unit, reads, (target,), flow=flow if row.moves else None,
        takes_scc=row.takes_scc, gives_scc=row.scc is not None,
    )  # fmt: skip


def _compare(instruction: Instruction, row: Row) -> Operation:
    a, b = instruction.taking(2)
    left, right = row.kinds
    _check(a, left)
    _check(b, right)

    def execute(waves: Waves) -> None:
        result = row.compute(_read(waves, a, left), _read(waves, b, right))
        waves.scc = np.broadcast_to(result, (waves.count,))

    return Operation(execute, row.unit, reads_of(a, b), gives_scc=True)


def _save_exec(instruction: Instruction, row: Row) -> Operation:
    first, source = instruction.taking(2)
    target = check_target(first, 2, "s")
    check_source(source, "b64", "s")

    def execute(waves: Waves) -> None:
        active = waves.read_scalar(EXEC_PAIR, "b64")
        result = row.compute(waves.read_scalar(source, "b64"), active)
        waves.write_scalar(target, active)
        waves.write_scalar(EXEC_PAIR, result)
        waves.scc = _nonzero(result)

    def flow(waves: Waves, undefined: Waves) -> Array:
        values = [waves.read_scalar(operand, "b64") for operand in (source, EXEC_PAIR)]
        bits = [undefined.read_scalar(operand, "u64") for operand in (source, EXEC_PAIR)]
        return np.broadcast_to(undefined_bits(row, values, bits), (waves.count,))

    reads = (*moves_of(source), *reads_of(EXEC_PAIR))
    return Operation(execute, row.unit, reads, (EXEC_PAIR, target), flow=flow, gives_scc=True)

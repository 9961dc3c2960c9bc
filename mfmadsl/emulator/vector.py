"""Vector ALU instructions: one value a lane (CDNA3 ISA, section 6, and chapter 12 per opcode)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mfmadsl.emulator.assembly import Instruction
from mfmadsl.emulator.operand import Operand, Register
from mfmadsl.emulator.wave import VCC_PAIR, Array, Waves

Execute = Callable[[Waves], None]
Operation = Callable[..., Array]


def compile_vector(instruction: Instruction) -> Execute | None:
    """What a vector ALU instruction does, or None if it is not one of these."""
    name, encoding = _base_name(instruction.name)
    if encoding == "sdwa":
        return _sub_word(instruction, name)
    if set(instruction.modifiers) - _PLAIN_MODIFIERS:
        return None
    if name in _OPERATIONS:
        return _plain(instruction, *_OPERATIONS[name])
    if name.startswith("v_cmp_"):
        return _compare(instruction, name)
    if name in _SPECIAL:
        return _SPECIAL[name](instruction)
    return None


_PLAIN_MODIFIERS = {"bitop3"}


def _base_name(name: str) -> tuple[str, str]:
    """The mnemonic without its encoding: v_add_u32_e32 is v_add_u32."""
    for encoding in ("e32", "e64", "sdwa"):
        if name.endswith(f"_{encoding}"):
            return name.removesuffix(f"_{encoding}"), encoding
    return name, ""


def _shift(amount: Array, width: int) -> Array:
    return amount & np.asarray(width - 1, dtype=amount.dtype)


def _multiply_high(wide: type, a: Array, b: Array) -> Array:
    return np.asarray(a.astype(wide) * b.astype(wide) >> wide(32)).astype(a.dtype)


def _multiply_24(a: Array, b: Array) -> Array:
    return (a & 0xFFFFFF) * (b & 0xFFFFFF)


def _signed_24(a: Array) -> Array:
    return a << 8 >> 8


def _multiply_high_24(a: Array, b: Array) -> Array:
    return _multiply_high(np.uint64, a & 0xFFFFFF, b & 0xFFFFFF)


def _align_bit(a: Array, b: Array, c: Array) -> Array:
    pair = a.astype(np.uint64) << np.uint64(32) | b
    return np.asarray(pair >> _shift(c, 32)).astype(np.uint32)


def _align_byte(a: Array, b: Array, c: Array) -> Array:
    return _align_bit(a, b, (c & 3) << 3)


def _extract_unsigned(a: Array, b: Array, c: Array) -> Array:
    width = _shift(c, 32)
    return (a >> _shift(b, 32)) & ((np.uint32(1) << width) - np.uint32(1))


def _extract_signed(a: Array, b: Array, c: Array) -> Array:
    width = _shift(c, 32)
    field = _extract_unsigned(a.view(np.uint32), b, c)
    sign = np.where(width == 0, 0, np.uint32(1) << (np.maximum(width, 1) - 1)).astype(np.uint32)
    return ((field ^ sign) - sign).view(np.int32)


def _permute(a: Array, b: Array, selector: Array) -> Array:
    """v_perm_b32: each byte of the selector picks one of the eight bytes of (a, b)."""
    pair = a.astype(np.uint64) << np.uint64(32) | b
    result = np.zeros(np.broadcast_shapes(pair.shape, selector.shape), dtype=np.uint32)
    for byte in range(4):
        choice = selector >> np.uint32(8 * byte) & np.uint32(0xFF)
        shift = (choice & 7).astype(np.uint64) << np.uint64(3)
        picked = np.asarray(pair >> shift).astype(np.uint32) & np.uint32(0xFF)
        sign = 2 * np.maximum(choice, 8).astype(np.uint64) - 15  # byte 1, 3, 5 or 7 for 8 to 11
        filled = np.asarray(pair >> (sign * np.uint64(8) + np.uint64(7)) & np.uint64(1))
        filled = filled.astype(np.uint32) * np.uint32(0xFF)
        value = np.where(choice < 8, picked, np.where(choice < 12, filled, 0))
        value = np.where(choice > 12, np.uint32(0xFF), value)
        result |= value.astype(np.uint32) << np.uint32(8 * byte)
    return result


def fused_multiply_add(dtype: type) -> Operation:
    """a * b + c with one rounding: through the next wider format, whose product is exact."""

    def operation(a: Array, b: Array, c: Array) -> Array:
        wide = np.float64 if dtype is np.float32 else np.longdouble
        total = a.astype(wide) * b.astype(wide) + c.astype(wide)
        return np.asarray(total).astype(dtype)

    return operation


def _to_integer(dtype: type) -> Operation:
    """Toward zero and saturating, NaN to 0."""
    limits = np.iinfo(dtype)

    def operation(a: Array) -> Array:
        wide = np.nan_to_num(np.trunc(a.astype(np.float64)), nan=0.0, posinf=np.inf, neginf=-np.inf)
        return np.clip(wide, limits.min, limits.max).astype(dtype)

    return operation


def _median(a: Array, b: Array, c: Array) -> Array:
    return np.maximum(np.minimum(a, b), np.minimum(np.maximum(a, b), c))


def _pack_halves(a: Array, b: Array) -> Array:
    return a.view(np.uint16).astype(np.uint32) | b.view(np.uint16).astype(np.uint32) << 16


def _add_shifted(a: Array, shift: Array, c: Array) -> Array:
    return (a << shift.astype(a.dtype)) + c


_u32, _i32, _f32, _f16 = "u32", "i32", "f32", "f16"

# name: (types of the sources, operation); the result's type is the operation's.
_OPERATIONS: dict[str, tuple[tuple[str, ...], Operation]] = {
    "v_mov_b32": ((_u32,), lambda a: a),
    "v_mov_b64": (("b64",), lambda a: a),
    "v_accvgpr_read_b32": ((_u32,), lambda a: a),
    "v_accvgpr_write_b32": ((_u32,), lambda a: a),
    "v_accvgpr_mov_b32": ((_u32,), lambda a: a),
    "v_not_b32": ((_u32,), lambda a: ~a),
    "v_add_u32": ((_u32, _u32), lambda a, b: a + b),
    "v_sub_u32": ((_u32, _u32), lambda a, b: a - b),
    "v_subrev_u32": ((_u32, _u32), lambda a, b: b - a),
    "v_add3_u32": ((_u32, _u32, _u32), lambda a, b, c: a + b + c),
    "v_and_b32": ((_u32, _u32), lambda a, b: a & b),
    "v_or_b32": ((_u32, _u32), lambda a, b: a | b),
    "v_xor_b32": ((_u32, _u32), lambda a, b: a ^ b),
    "v_xnor_b32": ((_u32, _u32), lambda a, b: ~(a ^ b)),
    "v_or3_b32": ((_u32, _u32, _u32), lambda a, b, c: a | b | c),
    "v_and_or_b32": ((_u32, _u32, _u32), lambda a, b, c: a & b | c),
    "v_lshlrev_b32": ((_u32, _u32), lambda a, b: b << _shift(a, 32)),
    "v_lshrrev_b32": ((_u32, _u32), lambda a, b: b >> _shift(a, 32)),
    "v_ashrrev_i32": ((_u32, _i32), lambda a, b: b >> _shift(a, 32).astype(np.int32)),
    "v_lshlrev_b64": ((_u32, "u64"), lambda a, b: b << _shift(a, 64).astype(np.uint64)),
    "v_lshrrev_b64": ((_u32, "u64"), lambda a, b: b >> _shift(a, 64).astype(np.uint64)),
    "v_ashrrev_i64": ((_u32, "i64"), lambda a, b: b >> _shift(a, 64).astype(np.int64)),
    "v_lshl_add_u32": ((_u32, _u32, _u32), lambda a, b, c: _add_shifted(a, _shift(b, 32), c)),
    "v_lshl_add_u64": (("u64", _u32, "u64"), lambda a, b, c: _add_shifted(a, b & 7, c)),
    "v_add_lshl_u32": ((_u32, _u32, _u32), lambda a, b, c: (a + b) << _shift(c, 32)),
    "v_lshl_or_b32": ((_u32, _u32, _u32), lambda a, b, c: a << _shift(b, 32) | c),
    "v_xad_u32": ((_u32, _u32, _u32), lambda a, b, c: (a ^ b) + c),
    "v_bfe_u32": ((_u32, _u32, _u32), _extract_unsigned),
    "v_bfe_i32": ((_i32, _u32, _u32), _extract_signed),
    "v_bfi_b32": ((_u32, _u32, _u32), lambda a, b, c: a & b | ~a & c),
    "v_perm_b32": ((_u32, _u32, _u32), _permute),
    "v_alignbit_b32": ((_u32, _u32, _u32), _align_bit),
    "v_alignbyte_b32": ((_u32, _u32, _u32), _align_byte),
    "v_mul_lo_u32": ((_u32, _u32), lambda a, b: a * b),
    "v_mul_hi_u32": ((_u32, _u32), lambda a, b: _multiply_high(np.uint64, a, b)),
    "v_mul_hi_i32": ((_i32, _i32), lambda a, b: _multiply_high(np.int64, a, b)),
    "v_mul_u32_u24": ((_u32, _u32), _multiply_24),
    "v_mad_u32_u24": ((_u32, _u32, _u32), lambda a, b, c: _multiply_24(a, b) + c),
    "v_mul_hi_u32_u24": ((_u32, _u32), _multiply_high_24),
    "v_mul_i32_i24": ((_i32, _i32), lambda a, b: _signed_24(a) * _signed_24(b)),
    "v_mad_i32_i24": ((_i32, _i32, _i32), lambda a, b, c: _signed_24(a) * _signed_24(b) + c),
    "v_min_u32": ((_u32, _u32), np.minimum),
    "v_max_u32": ((_u32, _u32), np.maximum),
    "v_min_i32": ((_i32, _i32), np.minimum),
    "v_max_i32": ((_i32, _i32), np.maximum),
    "v_med3_i32": ((_i32, _i32, _i32), _median),
    "v_add_f32": ((_f32, _f32), lambda a, b: a + b),
    "v_sub_f32": ((_f32, _f32), lambda a, b: a - b),
    "v_mul_f32": ((_f32, _f32), lambda a, b: a * b),
    "v_max_f32": ((_f32, _f32), np.fmax),
    "v_min_f32": ((_f32, _f32), np.fmin),
    "v_med3_f32": ((_f32, _f32, _f32), _median),
    "v_fma_f32": ((_f32, _f32, _f32), fused_multiply_add(np.float32)),
    "v_add_f16": ((_f16, _f16), lambda a, b: a + b),
    "v_mul_f16": ((_f16, _f16), lambda a, b: a * b),
    "v_max_f16": ((_f16, _f16), np.fmax),
    "v_add_u16": (("u16", "u16"), lambda a, b: a + b),
    "v_sub_u16": (("u16", "u16"), lambda a, b: a - b),
    "v_mul_lo_u16": (("u16", "u16"), lambda a, b: a * b),
    "v_mad_u16": (("u16", "u16", "u16"), lambda a, b, c: a * b + c),
    "v_mad_legacy_u16": (("u16", "u16", "u16"), lambda a, b, c: a * b + c),
    "v_lshlrev_b16": (("u16", "u16"), lambda a, b: b << _shift(a, 16)),
    "v_lshrrev_b16": (("u16", "u16"), lambda a, b: b >> _shift(a, 16)),
    "v_pack_b32_f16": ((_f16, _f16), _pack_halves),
    "v_cvt_f32_f16": ((_f16,), lambda a: a.astype(np.float32)),
    "v_cvt_f16_f32": ((_f32,), lambda a: a.astype(np.float16)),
    "v_cvt_f32_i32": ((_i32,), lambda a: a.astype(np.float32)),
    "v_cvt_f32_u32": ((_u32,), lambda a: a.astype(np.float32)),
    "v_cvt_i32_f32": ((_f32,), _to_integer(np.int32)),
    "v_cvt_u32_f32": ((_f32,), _to_integer(np.uint32)),
}


def _plain(instruction: Instruction, kinds: tuple[str, ...], operation: Operation) -> Execute:
    target, *sources = instruction.operands
    typed = list(zip(sources, kinds, strict=True))

    def execute(waves: Waves) -> None:
        values = (waves.read_vector(source, kind) for source, kind in typed)
        waves.write_vector(target, np.asarray(operation(*values)))

    return execute


_RELATIONS: dict[str, Operation] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lg": lambda a, b: (a < b) | (a > b),
    "neq": lambda a, b: ~(a == b),
    "gt": np.greater,
    "ge": np.greater_equal,
    "lt": np.less,
    "le": np.less_equal,
    "ngt": lambda a, b: ~(a > b),
    "nge": lambda a, b: ~(a >= b),
    "nlt": lambda a, b: ~(a < b),
    "nle": lambda a, b: ~(a <= b),
    "o": lambda a, b: ~(np.isnan(a) | np.isnan(b)),
    "u": lambda a, b: np.isnan(a) | np.isnan(b),
}


def _compare(instruction: Instruction, name: str) -> Execute | None:
    relation, _, kind = name.removeprefix("v_cmp_").partition("_")
    if relation not in _RELATIONS:
        return None
    compare = _RELATIONS[relation]
    target, left, right = instruction.operands

    def execute(waves: Waves) -> None:
        a, b = waves.read_vector(left, kind), waves.read_vector(right, kind)
        waves.write_mask(target, np.asarray(compare(a, b)))

    return execute


def _conditional_move(instruction: Instruction) -> Execute:
    """v_cndmask_b32: the second source where the mask is set, else the first."""
    target, left, right, *mask = instruction.operands
    condition: Operand = mask[0] if mask else VCC_PAIR

    def execute(waves: Waves) -> None:
        chosen = waves.read_mask(condition)
        a, b = waves.read_vector(left, "u32"), waves.read_vector(right, "u32")
        waves.write_vector(target, np.where(chosen, b, a))

    return execute


def _carry(instruction: Instruction) -> Execute:
    """v_add_co, v_sub_co and their forms that take a carry in."""
    name, _ = _base_name(instruction.name)
    target, carry_out, left, right, *carry = instruction.operands
    subtract, reverse = "sub" in name, "rev" in name

    def execute(waves: Waves) -> None:
        a = waves.read_vector(left, "u32").astype(np.int64)
        b = waves.read_vector(right, "u32").astype(np.int64)
        if reverse:
            a, b = b, a
        carried = waves.read_mask(carry[0]) if carry else 0
        total = a - b - carried if subtract else a + b + carried
        # The sources may be the target: write after reading.
        waves.write_vector(target, np.asarray(total).astype(np.uint32))
        waves.write_mask(carry_out, np.asarray((total < 0) | (total > 0xFFFF_FFFF)))

    return execute


def _multiply_add_wide(instruction: Instruction) -> Execute:
    """v_mad_u64_u32 and v_mad_i64_i32: 32 x 32 + 64 bits, with the carry out."""
    target, carry_out, left, right, addend = instruction.operands
    signed = "i64" in instruction.name
    narrow, kind = ("i32", "i64") if signed else ("u32", "u64")
    wide = np.int64 if signed else np.uint64

    def execute(waves: Waves) -> None:
        product = waves.read_vector(left, narrow).astype(wide)
        product = product * waves.read_vector(right, narrow).astype(wide)
        total = np.asarray(product + waves.read_vector(addend, kind))
        waves.write_vector(target, total)
        waves.write_mask(carry_out, total < product)

    return execute


def _truth_table(instruction: Instruction) -> Execute:
    """v_bitop3_b32 (gfx950): any function of three bits, given as a table of eight."""
    target, *sources = instruction.operands
    table = int(instruction.modifiers.get("bitop3", "0"), 0)

    def execute(waves: Waves) -> None:
        a, b, c = (waves.read_vector(source, "u32") for source in sources)
        result = np.zeros(np.broadcast_shapes(a.shape, b.shape, c.shape), dtype=np.uint32)
        for row in range(8):
            if table >> row & 1:
                term = a if row & 4 else ~a
                term = term & (b if row & 2 else ~b)
                result |= term & (c if row & 1 else ~c)
        waves.write_vector(target, result)

    return execute


def _read_first_lane(instruction: Instruction) -> Execute:
    target, source = instruction.operands

    def execute(waves: Waves) -> None:
        value = np.broadcast_to(waves.read_vector(source, "u32"), (waves.count, 64))
        mask = waves.exec_mask()
        if mask is None:
            waves.write_scalar(target, np.ascontiguousarray(value[:, 0]))
            return
        first = np.argmax(mask, axis=1)  # lane 0 where none is active, as the ISA has it
        waves.write_scalar(target, value[np.arange(waves.count), first])

    return execute


_SPECIAL: dict[str, Callable[[Instruction], Execute]] = {
    "v_cndmask_b32": _conditional_move,
    "v_mad_u64_u32": _multiply_add_wide,
    "v_mad_i64_i32": _multiply_add_wide,
    "v_bitop3_b32": _truth_table,
    "v_readfirstlane_b32": _read_first_lane,
    **{
        f"v_{operation}_co_u32": _carry
        for operation in ("add", "sub", "subrev", "addc", "subb", "subbrev")
    },
}

_SELECTIONS = {
    "DWORD": (0, 32),
    **{f"BYTE_{i}": (8 * i, 8) for i in range(4)},
    **{f"WORD_{i}": (16 * i, 16) for i in range(2)},
}


def _sub_word(instruction: Instruction, name: str) -> Execute | None:
    """SDWA: an integer operation on chosen bytes or halves, zero-extended."""
    entry = _OPERATIONS.get(name)
    modifiers = instruction.modifiers
    known = {"dst_sel", "dst_unused", "src0_sel", "src1_sel"}
    if entry is None or set(modifiers) - known or any(k[0] == "f" for k in entry[0]):
        return None
    _, operation = entry
    target, *sources = instruction.operands
    if not all(isinstance(s, Register) for s in sources):
        return None
    offset, width = _SELECTIONS[modifiers.get("dst_sel", "DWORD")]
    preserve = modifiers.get("dst_unused", "UNUSED_PAD") == "UNUSED_PRESERVE"
    if not preserve and modifiers.get("dst_unused", "UNUSED_PAD") != "UNUSED_PAD":
        return None
    selections = [_SELECTIONS[modifiers.get(f"src{i}_sel", "DWORD")] for i in range(len(sources))]
    mask = np.uint32(((1 << width) - 1) << offset)

    def execute(waves: Waves) -> None:
        values = []
        for source, (low, bits) in zip(sources, selections, strict=True):
            word = waves.read_vector(source, "u32") >> np.uint32(low)
            values.append(word & np.uint32((1 << bits) - 1))
        result = np.asarray(operation(*values)).astype(np.uint32) << np.uint32(offset) & mask
        if preserve:
            result = result | waves.read_vector(target, "u32") & ~mask
        waves.write_vector(target, result)

    return execute

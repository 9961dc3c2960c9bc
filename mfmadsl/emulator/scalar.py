"""Scalar instructions: one value a wave (CDNA3 ISA, section 5, and chapter 12 per opcode)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mfmadsl.emulator.assembly import Instruction
from mfmadsl.emulator.error import EmulationError
from mfmadsl.emulator.operand import EXEC, Literal, Register
from mfmadsl.emulator.wave import Array, Waves

Execute = Callable[[Waves], None]
_EXEC_PAIR = Register("s", EXEC, 2)


def compile_scalar(instruction: Instruction) -> Execute | None:
    """What a scalar instruction does, or None if it is not one of these."""
    name = instruction.name
    if name in _TWO_SOURCES:
        return _two_sources(instruction, *_TWO_SOURCES[name])
    if name in _ONE_SOURCE:
        return _one_source(instruction, *_ONE_SOURCE[name])
    if name.startswith(("s_cmp_", "s_cmpk_")):
        return _compare(instruction)
    if name.endswith("_saveexec_b64"):
        return _save_exec(instruction)
    if name in _SPECIAL:
        return _SPECIAL[name](instruction)
    return None


def _high(wide: type, a: Array, b: Array) -> Array:
    return np.asarray(a.astype(wide) * b.astype(wide) >> wide(32))


def _field(a: Array, b: Array) -> Array:
    """Bits b[4:0] and up of a, b[22:16] of them."""
    offset, width = b & 31, np.minimum(b >> 16 & 127, 32).astype(np.uint64)
    mask = (np.uint64(1) << width) - np.uint64(1)
    return np.asarray((a >> offset) & mask).astype(np.uint32)


def _reversed(a: Array) -> Array:
    bits = np.unpackbits(np.ascontiguousarray(a).reshape(-1, 1).view(np.uint8), axis=1)
    return np.packbits(bits[:, ::-1], axis=1, bitorder="big").view(np.uint32)[:, 0].reshape(a.shape)


def _population(a: Array) -> Array:
    bits = np.unpackbits(np.ascontiguousarray(a).reshape(-1, 1).view(np.uint8), axis=1)
    return bits.sum(axis=1).astype(np.uint32).reshape(a.shape)


def _lowest_set(a: Array) -> Array:
    lowest = a & (~a + np.uint32(1))
    position = np.log2(np.maximum(lowest, 1).astype(np.float64)).astype(np.int32)
    return np.where(a == 0, np.int32(-1), position)


def _leading_zeros(a: Array) -> Array:
    highest = np.floor(np.log2(np.maximum(a, 1).astype(np.float64))).astype(np.int32)
    return np.where(a == 0, np.int32(-1), 31 - highest)


def _nonzero(result: Array) -> Array:
    return result != 0


def _signed_overflow(a: Array, b: Array, result: Array) -> Array:
    return ((a ^ result) & (b ^ result)) < 0


def _shift_add(shift: int) -> tuple[Callable[..., Array], Callable[..., Array]]:
    """(a << shift) + b, and its carry."""

    def carry(a: Array, b: Array, _: Array) -> Array:
        return (a.astype(np.uint64) << np.uint64(shift)) + b > 0xFFFF_FFFF

    return lambda a, b: (a << shift) + b, carry


# name: (type, operation, scc). `scc` takes (a, b, result) and gives the new condition code.
_TWO_SOURCES: dict[str, tuple[str, Callable[[Array, Array], Array], Any]] = {
    "s_add_u32": ("u32", lambda a, b: a + b, lambda a, b, r: r < a),
    "s_sub_u32": ("u32", lambda a, b: a - b, lambda a, b, r: b > a),
    "s_add_i32": ("i32", lambda a, b: a + b, _signed_overflow),
    "s_sub_i32": ("i32", lambda a, b: a - b, lambda a, b, r: ((a ^ b) & (a ^ r)) < 0),
    "s_mul_i32": ("i32", lambda a, b: a * b, None),
    "s_mul_hi_u32": ("u32", lambda a, b: _high(np.uint64, a, b).astype(np.uint32), None),
    "s_mul_hi_i32": ("i32", lambda a, b: _high(np.int64, a, b).astype(np.int32), None),
    "s_min_u32": ("u32", np.minimum, lambda a, b, r: a < b),
    "s_max_u32": ("u32", np.maximum, lambda a, b, r: a > b),
    "s_min_i32": ("i32", np.minimum, lambda a, b, r: a < b),
    "s_max_i32": ("i32", np.maximum, lambda a, b, r: a > b),
    "s_lshl_b32": ("u32", lambda a, b: a << (b & 31), lambda a, b, r: _nonzero(r)),
    "s_lshr_b32": ("u32", lambda a, b: a >> (b & 31), lambda a, b, r: _nonzero(r)),
    "s_ashr_i32": ("i32", lambda a, b: a >> (b & 31), lambda a, b, r: _nonzero(r)),
    "s_bfm_b32": (
        "u32",
        lambda a, b: ((np.uint32(1) << (a & 31)) - np.uint32(1)) << (b & 31),
        None,
    ),
    "s_bfe_u32": ("u32", _field, lambda a, b, r: _nonzero(r)),
    "s_pack_ll_b32_b16": ("u32", lambda a, b: (a & 0xFFFF) | b << 16, None),
    "s_pack_lh_b32_b16": ("u32", lambda a, b: (a & 0xFFFF) | (b & 0xFFFF0000), None),
    "s_pack_hh_b32_b16": ("u32", lambda a, b: a >> 16 | (b & 0xFFFF0000), None),
}
for _width in (32, 64):
    for _name, _operation in {
        "and": lambda a, b: a & b,
        "or": lambda a, b: a | b,
        "xor": lambda a, b: a ^ b,
        "andn2": lambda a, b: a & ~b,
        "orn2": lambda a, b: a | ~b,
        "nand": lambda a, b: ~(a & b),
        "nor": lambda a, b: ~(a | b),
        "xnor": lambda a, b: ~(a ^ b),
    }.items():
        _entry = (f"b{_width}", _operation, lambda a, b, r: _nonzero(r))
        _TWO_SOURCES[f"s_{_name}_b{_width}"] = _entry
for _shift in range(1, 5):
    _TWO_SOURCES[f"s_lshl{_shift}_add_u32"] = ("u32", *_shift_add(_shift))

# name: (type, operation, whether the result sets scc)
_ONE_SOURCE: dict[str, tuple[str, Callable[[Array], Array], bool]] = {
    "s_mov_b32": ("b32", lambda a: a, False),
    "s_mov_b64": ("b64", lambda a: a, False),
    "s_not_b32": ("b32", lambda a: ~a, True),
    "s_not_b64": ("b64", lambda a: ~a, True),
    "s_brev_b32": ("b32", _reversed, False),
    "s_abs_i32": ("i32", np.abs, True),
    "s_sext_i32_i16": ("b32", lambda a: a.astype(np.int16).astype(np.int32), False),
    "s_sext_i32_i8": ("b32", lambda a: a.astype(np.int8).astype(np.int32), False),
    "s_bcnt1_i32_b32": ("b32", _population, True),
    "s_ff1_i32_b32": ("b32", _lowest_set, False),
    "s_flbit_i32_b32": ("b32", _leading_zeros, False),
}


def _two_sources(
    instruction: Instruction, kind: str, operation: Callable[[Array, Array], Array], scc: Any
) -> Execute:
    target, left, right = instruction.operands
    shift_kind = "u32" if kind.endswith("32") else kind

    def execute(waves: Waves) -> None:
        a = waves.read_scalar(left, kind)
        b = waves.read_scalar(right, shift_kind if "sh" in instruction.name else kind)
        result = np.broadcast_to(operation(a, b).astype(a.dtype), (waves.count,))
        if scc is not None:
            waves.scc = np.broadcast_to(scc(a, b, result), (waves.count,))
        waves.write_scalar(target, np.ascontiguousarray(result))

    return execute


def _one_source(
    instruction: Instruction, kind: str, operation: Callable[[Array], Array], sets_scc: bool
) -> Execute:
    target, source = instruction.operands

    def execute(waves: Waves) -> None:
        result = np.broadcast_to(operation(waves.read_scalar(source, kind)), (waves.count,))
        if sets_scc:
            waves.scc = _nonzero(result)
        waves.write_scalar(target, np.ascontiguousarray(result))

    return execute


_COMPARISONS: dict[str, Callable[[Array, Array], Array]] = {
    "eq": np.equal,
    "lg": np.not_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "lt": np.less,
    "le": np.less_equal,
}


def _compare(instruction: Instruction) -> Execute:
    _, relation, kind = instruction.name.removeprefix("s_").split("_")
    left, right = instruction.operands
    compare = _COMPARISONS[relation]

    def execute(waves: Waves) -> None:
        result = compare(waves.read_scalar(left, kind), waves.read_scalar(right, kind))
        waves.scc = np.broadcast_to(result, (waves.count,))

    return execute


def _test_bit(instruction: Instruction) -> Execute:
    """s_bitcmp0 and s_bitcmp1: whether a bit has that value."""
    source, position = instruction.operands
    kind = instruction.name[-3:]
    expected = int(instruction.name.removeprefix("s_bitcmp")[0])

    def execute(waves: Waves) -> None:
        value = waves.read_scalar(source, kind)
        bit = waves.read_scalar(position, "u32").astype(value.dtype) & (value.itemsize * 8 - 1)
        waves.scc = np.broadcast_to((value >> bit & 1) == expected, (waves.count,))

    return execute


def _save_exec(instruction: Instruction) -> Execute:
    """s_OP_saveexec_b64: EXEC goes to the target, source OP EXEC becomes EXEC."""
    name = instruction.name.removeprefix("s_").removesuffix("_saveexec_b64")
    operation = {
        "and": lambda s, e: s & e,
        "or": lambda s, e: s | e,
        "xor": lambda s, e: s ^ e,
        "andn2": lambda s, e: s & ~e,
        "andn1": lambda s, e: ~s & e,
    }.get(name)
    if operation is None:
        raise EmulationError("unknown instruction", instruction.line, instruction.text)
    target, source = instruction.operands

    def execute(waves: Waves) -> None:
        active = waves.read_scalar(_EXEC_PAIR, "b64")
        result = operation(waves.read_scalar(source, "b64"), active)
        waves.write_scalar(target, active)
        waves.write_scalar(_EXEC_PAIR, result)
        waves.scc = _nonzero(result)

    return execute


def _move_constant(instruction: Instruction) -> Execute:
    target, constant = instruction.operands
    assert isinstance(constant, Literal)
    value = np.array(constant.bits(16, floating=False), dtype=np.uint16).view(np.int16)

    def execute(waves: Waves) -> None:
        waves.write_scalar(target, value.astype(np.int32))

    return execute


def _constant_operation(operation: Callable[[Array, Array], Array]) -> Any:
    def compile_it(instruction: Instruction) -> Execute:
        target, constant = instruction.operands
        assert isinstance(constant, Literal)
        value = np.array(constant.bits(16, floating=False), dtype=np.uint16).view(np.int16)

        def execute(waves: Waves) -> None:
            a = waves.read_scalar(target, "i32")
            b = value.astype(np.int32)
            result = operation(a, b)
            if instruction.name == "s_addk_i32":
                waves.scc = _signed_overflow(a, b, result)
            waves.write_scalar(target, result)

        return execute

    return compile_it


def _set_bit(to: int) -> Any:
    def compile_it(instruction: Instruction) -> Execute:
        target, source = instruction.operands

        def execute(waves: Waves) -> None:
            bit = np.uint32(1) << (waves.read_scalar(source, "u32") & 31)
            old = waves.read_scalar(target, "b32")
            waves.write_scalar(target, old | bit if to else old & ~bit)

        return execute

    return compile_it


def _add_with_carry(instruction: Instruction) -> Execute:
    target, left, right = instruction.operands
    subtract = instruction.name == "s_subb_u32"

    def execute(waves: Waves) -> None:
        a = waves.read_scalar(left, "u32").astype(np.int64)
        b = waves.read_scalar(right, "u32").astype(np.int64)
        total = a - b - waves.scc if subtract else a + b + waves.scc
        waves.scc = (total < 0) | (total > 0xFFFF_FFFF)
        waves.write_scalar(target, total.astype(np.uint32))

    return execute


def _select(kind: str) -> Any:
    def compile_it(instruction: Instruction) -> Execute:
        target, left, right = instruction.operands

        def execute(waves: Waves) -> None:
            a, b = waves.read_scalar(left, kind), waves.read_scalar(right, kind)
            waves.write_scalar(target, np.where(waves.scc, a, b))

        return execute

    return compile_it


def _shift_pair(operation: Callable[[Array, Array], Array]) -> Any:
    def compile_it(instruction: Instruction) -> Execute:
        target, left, right = instruction.operands
        kind = "i64" if instruction.name.startswith("s_ashr") else "u64"

        def execute(waves: Waves) -> None:
            a = waves.read_scalar(left, kind)
            b = waves.read_scalar(right, "u32") & 63
            result = np.broadcast_to(operation(a, b.astype(a.dtype)), (waves.count,))
            waves.scc = _nonzero(result)
            waves.write_scalar(target, np.ascontiguousarray(result))

        return execute

    return compile_it


def _scalar_load(instruction: Instruction) -> Execute:
    """s_load_dwordxN: words of memory, most often kernel arguments, into scalar registers."""
    target, base, offset = instruction.operands
    assert isinstance(target, Register)

    def execute(waves: Waves) -> None:
        address = waves.read_scalar(base, "u64") + waves.read_scalar(offset, "u32")
        address = (address + np.uint64(instruction.offset())) & ~np.uint64(3)
        offsets = waves.memory.offsets(address, 4 * target.count)
        for i, word in enumerate(waves.memory.load_words(offsets, target.count)):
            waves.scalar[target.index + i] = word

    return execute


_SPECIAL: dict[str, Callable[[Instruction], Execute]] = {
    "s_movk_i32": _move_constant,
    "s_addk_i32": _constant_operation(lambda a, b: a + b),
    "s_mulk_i32": _constant_operation(lambda a, b: a * b),
    "s_bitset0_b32": _set_bit(0),
    "s_bitset1_b32": _set_bit(1),
    **{f"s_bitcmp{value}_b{width}": _test_bit for value in (0, 1) for width in (32, 64)},
    "s_addc_u32": _add_with_carry,
    "s_subb_u32": _add_with_carry,
    "s_cselect_b32": _select("b32"),
    "s_cselect_b64": _select("b64"),
    "s_lshl_b64": _shift_pair(lambda a, b: a << b),
    "s_lshr_b64": _shift_pair(lambda a, b: a >> b),
    "s_ashr_i64": _shift_pair(lambda a, b: a >> b),
    **{f"s_load_dword{suffix}": _scalar_load for suffix in ("", "x2", "x4", "x8", "x16")},
}

"""Packed instructions and dot products: several numbers a register (CDNA3 ISA, VOP3P)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from mfmadsl.emulator.assembly import Instruction
from mfmadsl.emulator.floating import fused_multiply_add
from mfmadsl.emulator.machine import Machine
from mfmadsl.emulator.operand import Literal, Operand, Register
from mfmadsl.emulator.operation import Operation, reads_of
from mfmadsl.emulator.row import Compute
from mfmadsl.emulator.source import half_of
from mfmadsl.emulator.wave import Array, Waves

_MODIFIERS = {"op_sel", "op_sel_hi", "neg_lo", "neg_hi", "clamp"}

PAIRS_OF_F32: dict[str, tuple[int, Compute]] = {
    "v_pk_add_f32": (2, lambda a, b: a + b),
    "v_pk_mul_f32": (2, lambda a, b: a * b),
    "v_pk_fma_f32": (3, fused_multiply_add("f32")),
}


def _shifted(kind: str, right: bool) -> tuple[str, int, Compute]:
    def compute(a: Array, b: Array) -> Array:
        amount = (a & a.dtype.type(15)).astype(b.dtype)
        return b >> amount if right else b << amount

    return kind, 2, compute


PAIRS_OF_HALVES: dict[str, tuple[str, int, Compute]] = {
    "v_pk_add_f16": ("f16", 2, lambda a, b: a + b),
    "v_pk_mul_f16": ("f16", 2, lambda a, b: a * b),
    "v_pk_fma_f16": ("f16", 3, fused_multiply_add("f16")),
    "v_pk_max_f16": ("f16", 2, np.fmax),
    "v_pk_min_f16": ("f16", 2, np.fmin),
    "v_pk_minimum3_f16": ("f16", 3, lambda a, b, c: np.minimum(np.minimum(a, b), c)),
    "v_pk_maximum3_f16": ("f16", 3, lambda a, b, c: np.maximum(np.maximum(a, b), c)),
    "v_pk_add_u16": ("u16", 2, lambda a, b: a + b),
    "v_pk_sub_u16": ("u16", 2, lambda a, b: a - b),
    "v_pk_add_i16": ("i16", 2, lambda a, b: a + b),
    "v_pk_sub_i16": ("i16", 2, lambda a, b: a - b),
    "v_pk_mul_lo_u16": ("u16", 2, lambda a, b: a * b),
    "v_pk_mad_u16": ("u16", 3, lambda a, b, c: a * b + c),
    "v_pk_mad_i16": ("i16", 3, lambda a, b, c: a * b + c),
    "v_pk_max_u16": ("u16", 2, np.maximum),
    "v_pk_min_u16": ("u16", 2, np.minimum),
    "v_pk_max_i16": ("i16", 2, np.maximum),
    "v_pk_min_i16": ("i16", 2, np.minimum),
    "v_pk_lshlrev_b16": _shifted("u16", right=False),
    "v_pk_lshrrev_b16": _shifted("u16", right=True),
    "v_pk_ashrrev_i16": _shifted("i16", right=True),
}

# name: (letter and bits of an element, whether the target is the addend)
DOT_PRODUCTS: dict[str, tuple[str, bool]] = {
    "v_dot2_f32_f16": ("f16", False),
    "v_dot2_f32_bf16": ("bf16", False),
    "v_dot2_i32_i16": ("i16", False),
    "v_dot2_u32_u16": ("u16", False),
    "v_dot4_i32_i8": ("i8", False),
    "v_dot4_u32_u8": ("u8", False),
    "v_dot8_i32_i4": ("i4", False),
    "v_dot8_u32_u4": ("u4", False),
    "v_dot2c_f32_f16": ("f16", True),
    "v_dot2c_f32_bf16": ("bf16", True),
    "v_dot2c_i32_i16": ("i16", True),
    "v_dot4c_i32_i8": ("i8", True),
    "v_dot8c_i32_i4": ("i4", True),
}

MIXED: Mapping[str, str] = {
    **{
        f"v_{op}_{form}": form
        for op in ("fma", "mad")
        for form in ("mix_f32", "mixlo_f16", "mixhi_f16")
    }
}


def compile_packed(instruction: Instruction, machine: Machine) -> Operation | None:
    """What a packed instruction does, or None if it is not one that is known."""
    del machine
    if set(instruction.modifiers) - _MODIFIERS:
        return None
    name = instruction.name.removesuffix("_e32").removesuffix("_e64")
    if name == "v_pk_mov_b32":
        return _move(instruction)
    if name in PAIRS_OF_F32:
        return _pair_of_words(instruction, PAIRS_OF_F32[name][1])
    if name in PAIRS_OF_HALVES:
        return _pair_of_halves(instruction, *PAIRS_OF_HALVES[name])
    if name in DOT_PRODUCTS:
        return _dot(instruction, *DOT_PRODUCTS[name])
    if name in MIXED:
        return _mixed(instruction, MIXED[name])
    return None


def _move(instruction: Instruction) -> Operation:
    """The low result is a word of the first source, the high one of the second."""
    target, *sources = instruction.operands
    assert isinstance(target, Register)
    chosen = instruction.flags("op_sel", len(sources))
    words = [_word(source, which) for source, which in zip(sources, chosen, strict=True)]

    def moved(_: Waves, data: Waves) -> Array:
        low, high = (data.read_vector(word, "b32").astype(np.uint64) for word in words)
        return np.asarray(low | high << np.uint64(32))

    def execute(waves: Waves) -> None:
        waves.write_vector(target, moved(waves, waves))

    reads = tuple(replace(read, moved=True) for read in reads_of(*words))
    return Operation(execute, "valu", reads, (target,), flow=moved)


def _halves(instruction: Instruction, count: int) -> list[list[tuple[int, int]]]:
    """For the low and the high result: which half of each source, and whether it is negated."""
    chosen = []
    for select, negate, default in (("op_sel", "neg_lo", 0), ("op_sel_hi", "neg_hi", 1)):
        halves = instruction.flags(select, count, default)
        signs = instruction.flags(negate, count)
        chosen.append(list(zip(halves, signs, strict=True)))
    return chosen


def _pair_of_words(instruction: Instruction, compute: Compute) -> Operation:
    """The same operation twice; op_sel picks the words for the low result, op_sel_hi the others."""
    target, *sources = instruction.operands
    assert isinstance(target, Register)
    results = [
        [(_word(source, word), sign) for source, (word, sign) in zip(sources, half, strict=True)]
        for half in _halves(instruction, len(sources))
    ]
    clamp = "clamp" in instruction.modifiers

    def execute(waves: Waves) -> None:
        words = []
        for half in results:
            values = (waves.read_vector(word, "f32") for word, _ in half)
            signed = (-v if sign else v for v, (_, sign) in zip(values, half, strict=True))
            value = np.asarray(compute(*signed))
            value = np.clip(value, np.float32(0), np.float32(1)) if clamp else value
            words.append(value.view(np.uint32).astype(np.uint64))
        waves.write_vector(target, np.asarray(words[0] | words[1] << np.uint64(32)))

    reads = reads_of(*(word for half in results for word, _ in half))
    return Operation(execute, "valu", reads, (target,))


def _pair_of_halves(instruction: Instruction, kind: str, count: int, compute: Compute) -> Operation:
    target, *sources = instruction.operands
    assert isinstance(target, Register)
    results = [
        [
            (half_of(s, kind, bool(half)), sign)
            for s, (half, sign) in zip(sources, chosen, strict=True)
        ]
        for chosen in _halves(instruction, count)
    ]
    clamp = "clamp" in instruction.modifiers

    def execute(waves: Waves) -> None:
        words = []
        for half in results:
            values = (source.read(waves) for source, _ in half)
            signed = (-v if sign else v for v, (_, sign) in zip(values, half, strict=True))
            value = np.asarray(compute(*signed))
            if clamp and kind == "f16":
                value = np.clip(value, np.float16(0), np.float16(1))
            words.append(value.view(np.uint16).astype(np.uint32))
        waves.write_vector(target, np.asarray(words[0] | words[1] << np.uint32(16)))

    reads = tuple(
        read for half in results for source, _ in half if (read := source.register_read())
    )
    return Operation(execute, "valu", reads, (target,))


def _elements(words: Array, kind: str) -> Array:
    """The numbers that a register holds, along a new last axis."""
    words = np.ascontiguousarray(words)[..., None]
    if kind == "f16":
        return words.view(np.float16).astype(np.float64)
    if kind == "bf16":
        halves = words.view(np.uint16).astype(np.uint32) << np.uint32(16)
        return halves.view(np.float32).astype(np.float64)
    if kind in ("i16", "u16", "i8", "u8"):
        return words.view({"i": "i", "u": "u"}[kind[0]] + str(int(kind[1:]) // 8)).astype(np.int64)
    nibbles = words.astype(np.int64) >> (4 * np.arange(8)) & 15
    return np.where(nibbles > 7, nibbles - 16, nibbles) if kind == "i4" else nibbles


def _dot(instruction: Instruction, kind: str, accumulates: bool) -> Operation:
    """A sum of products of the elements of two registers, added to a third."""
    target, a, b, *rest = instruction.operands
    assert isinstance(target, Register)
    addend = target if accumulates else rest[0]
    floating = "f" in kind
    out = "f32" if floating else "u32" if kind[0] == "u" else "i32"
    low = [sign for _, sign in _halves(instruction, 3)[0]]
    clamp = "clamp" in instruction.modifiers

    def execute(waves: Waves) -> None:
        x, y = (
            _elements(np.broadcast_to(waves.read_vector(o, "u32"), (waves.count, 64)), kind)
            for o in (a, b)
        )
        c = waves.read_vector(addend, out).astype(np.float64 if floating else np.int64)
        total = (x * y).sum(axis=-1) * (-1) ** (low[0] + low[1]) + c * (-1) ** low[2]
        if floating:
            waves.write_vector(target, total.astype(np.float32))
            return
        limits = np.iinfo(np.uint32 if out == "u32" else np.int32)
        total = np.clip(total, limits.min, limits.max) if clamp else total
        waves.write_vector(target, total.astype(np.int64).astype(np.uint32))

    return Operation(execute, "valu", reads_of(a, b, addend), (target,))


def _mixed(instruction: Instruction, form: str) -> Operation:
    """v_fma_mix: each source is an f32, or one half of a register if its op_sel_hi is set."""
    target, *operands = instruction.operands
    assert isinstance(target, Register)
    as_half = instruction.flags("op_sel_hi", 3)
    high = instruction.flags("op_sel", 3)
    sources = [
        half_of(o, "f16" if narrow else "f32", bool(narrow and upper))
        for o, narrow, upper in zip(operands, as_half, high, strict=True)
    ]
    fused = fused_multiply_add("f32")
    clamp = "clamp" in instruction.modifiers

    def execute(waves: Waves) -> None:
        values = (source.read(waves).astype(np.float32) for source in sources)
        result = fused(*values)
        result = np.clip(result, np.float32(0), np.float32(1)) if clamp else result
        if form == "mix_f32":
            waves.write_vector(target, result)
            return
        half = result.astype(np.float16).view(np.uint16).astype(np.uint32)
        old = waves.read_vector(target, "u32")
        if form == "mixhi_f16":
            waves.write_vector(target, old & np.uint32(0xFFFF) | half << np.uint32(16))
        else:
            waves.write_vector(target, old & np.uint32(0xFFFF0000) | half)

    reads = tuple(read for source in sources if (read := source.register_read()))
    return Operation(execute, "valu", reads, (target,))


def _word(operand: Operand, which: int) -> Operand:
    """The low or high word of a pair; a constant is both."""
    if isinstance(operand, Literal):
        return operand
    assert isinstance(operand, Register)
    return replace(operand, index=operand.index + which, count=1)

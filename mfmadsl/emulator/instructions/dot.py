"""Dot products: a sum of products of the elements of two registers, and a third (CDNA3 ISA)."""

from __future__ import annotations

import numpy as np

from mfmadsl.emulator.instructions.modifier import (
    base_name,
    encoding_of,
    has_source_modifiers,
    known_dpp,
)
from mfmadsl.emulator.instructions.number import from_bfloat
from mfmadsl.emulator.instructions.source import reads_of_sources, sources_of
from mfmadsl.emulator.instructions.target import target_of
from mfmadsl.emulator.machine.bits import Array, codes_of, width_of
from mfmadsl.emulator.machine.mode import Machine
from mfmadsl.emulator.machine.operation import Operation, reads_of
from mfmadsl.emulator.machine.wave import LANES, Waves
from mfmadsl.emulator.text.assembly import Instruction
from mfmadsl.emulator.text.operand import check_source, check_target

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


def compile_dot(instruction: Instruction, machine: Machine) -> Operation | None:
    """What a dot product does; neg_lo and neg_hi negate elements of floats, clamp saturates.

    Those whose target is the addend may read their first source from other lanes (DPP).
    """
    kind, accumulates = DOT_PRODUCTS[base_name(instruction.name)]
    floating = "f" in kind
    allowed = {"clamp"} | ({"neg_lo", "neg_hi"} if floating else set())
    if accumulates:
        allowed = set()
    moves = accumulates and encoding_of(instruction) == "dpp"
    known = known_dpp(instruction) if moves else not set(instruction.modifiers) - allowed
    if not known or has_source_modifiers(instruction):
        return None
    register, a, b, *rest = instruction.taking(*((3, 4) if accumulates else (4,)))
    target = target_of(instruction, check_target(register, 1), 2)
    addend = rest[0] if rest else register
    out = "f32" if floating else "u32" if kind[0] == "u" else "i32"
    check_source(addend, out)
    for operand in (a, b):
        check_source(operand, "u32")
    sources = sources_of(instruction, ("u32", "u32"), (a, b))
    signs = [
        np.array(pair) for pair in zip(*(_signs(instruction, n) for n in ("neg_lo", "neg_hi")),
                                       strict=True)
    ]  # fmt: skip
    clamp = "clamp" in instruction.modifiers

    def execute(waves: Waves) -> None:
        x, y = (
            _elements(np.broadcast_to(source.read(waves), (waves.count, LANES)), kind)
            for source in sources
        )
        c = waves.read_vector(addend, out).astype(np.float64 if floating else np.int64)
        if floating:
            total = (x * signs[0] * (y * signs[1])).sum(axis=-1) + c * signs[2][0]
            result = total.astype(np.float32)
            target.write(waves, machine.clamped(result) if clamp else result)
            return
        total = (x * y).sum(axis=-1) + c
        limits = np.iinfo(np.uint32 if out == "u32" else np.int32)
        total = np.clip(total, limits.min, limits.max) if clamp else total
        target.write(waves, total.astype(np.int64).astype(np.uint32))

    reads = (*reads_of_sources(sources), *reads_of(addend))
    return Operation(execute, "valu", reads, (target.register,))


def _signs(instruction: Instruction, modifier: str) -> list[int]:
    return [1 - 2 * flag for flag in instruction.flags(modifier, 3)]


def _elements(words: Array, kind: str) -> Array:
    """The numbers that a register holds, along a new last axis."""
    words = np.ascontiguousarray(words)[..., None]
    if kind == "f16":
        return words.view(np.float16).astype(np.float64)
    if kind == "bf16":
        return from_bfloat(words.view(np.uint16)).astype(np.float64)
    if kind in ("i16", "u16", "i8", "u8"):
        return words.view(f"{kind[0]}{width_of(kind) // 8}").astype(np.int64)
    nibbles = codes_of(words, 4).astype(np.int64)
    return np.where(nibbles > 7, nibbles - 16, nibbles) if kind == "i4" else nibbles

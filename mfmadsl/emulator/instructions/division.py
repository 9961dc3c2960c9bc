"""The instructions of divisions that touch a mask (CDNA3 ISA, V_DIV_SCALE and V_DIV_FMAS)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mfmadsl.emulator.instructions.floating import fused_f64, fused_through_f64
from mfmadsl.emulator.instructions.modifier import base_name
from mfmadsl.emulator.instructions.row import Special
from mfmadsl.emulator.instructions.source import SourceOperand, reads_of_sources
from mfmadsl.emulator.machine.bits import Array, Compute, Mask, dtype_of, width_of
from mfmadsl.emulator.machine.operation import OperandRead, Operation
from mfmadsl.emulator.machine.wave import LANES, VCC_PAIR, Waves
from mfmadsl.emulator.text.assembly import Instruction
from mfmadsl.emulator.text.operand import Operand, check_source, check_target


def _scaled_multiply_add(kind: str) -> Compute:
    fused = fused_through_f64 if kind != "f64" else fused_f64
    shift, bias = (64, 127) if kind == "f32" else (128, 1023)

    def compute(a: Array, b: Array, c: Array, scale: Array) -> Array:
        # Quotients near the largest number were scaled down, those near the smallest up.
        up = np.frexp(np.abs(c))[1] - 1 + bias > bias
        power = np.where(scale, np.where(up, shift, -shift), 0)
        return np.ldexp(fused(a, b, c), power).astype(dtype_of(kind))

    return compute


SCALED_MULTIPLY_ADD = {f"v_div_fmas_{kind}": _scaled_multiply_add(kind) for kind in ("f32", "f64")}
"""v_div_fmas: a * b + c, and where VCC says that v_div_scale had scaled, back to its size."""


def _scaled(value: Array, denominator: Array, numerator: Array) -> tuple[Array, Array]:
    """v_div_scale: `value` (one of the others) scaled to keep clear of denormals, and whether
    v_div_fmas has to scale the quotient (CDNA3 ISA, V_DIV_SCALE_F32 and _F64)."""
    bits, bias, mantissa = (32, 127, 23) if value.dtype == np.float32 else (64, 1023, 52)
    step, limit = (64, 96) if bits == 32 else (128, 768)
    exponent_mask = 2 * bias + 1

    def exponent(x: Array) -> Array:
        return (x.view(f"u{x.itemsize}") >> mantissa & exponent_mask).astype(np.int64)

    smallest = np.ldexp(value.dtype.type(1), 1 - bias)
    is_denominator, is_numerator = value == denominator, value == numerator
    difference = exponent(numerator) - exponent(denominator)
    quotient_tiny = np.abs(numerator / denominator) < smallest
    inverse_tiny = np.abs(1 / denominator.astype(np.float64)) < smallest
    zero = (denominator == 0) | (numerator == 0)
    denormal = (np.abs(denominator) < smallest) & ~zero
    up, down = np.ldexp(value, step), np.ldexp(value, -step)
    result = value
    flag = np.zeros(value.shape, dtype=np.bool_)
    cases = [
        (zero, np.full_like(value, np.nan), False),
        (difference >= limit, np.where(is_denominator, up, value), True),
        (denormal, up, False),
        # The manual scales up here, where the denominator is too large for that already.
        (inverse_tiny & quotient_tiny, np.where(is_denominator, down, value), True),
        (inverse_tiny, down, False),
        (quotient_tiny, np.where(is_numerator, up, value), True),
        (exponent(numerator) <= mantissa, up, False),
    ]
    decided = np.zeros(value.shape, dtype=np.bool_)
    for condition, scaled, flagged in cases:
        chosen = condition & ~decided
        result = np.where(chosen, scaled, result)
        flag = np.where(chosen, flagged, flag)
        decided |= condition
    return result, flag


def _division_scale(instruction: Instruction) -> Operation:
    register, out, *operands = instruction.taking(5)
    kind = base_name(instruction.name)[-3:]
    target, flag = check_target(register, width_of(kind) // 32), check_target(out, 2, "s")
    sources = _sources(operands, kind)

    def execute(waves: Waves) -> None:
        value, denominator, numerator = (
            np.broadcast_to(source.read(waves), (waves.count, LANES)) for source in sources
        )
        result, scaled = _scaled(value, denominator, numerator)
        waves.write_vector(target, result)
        waves.write_mask(flag, scaled)

    reads = reads_of_sources(sources)
    return Operation(execute, "valu", reads, (target, flag), slots="wide" if kind == "f64" else 1)


def _sources(operands: Sequence[Operand], kind: str) -> list[SourceOperand]:
    for operand in operands:
        check_source(operand, kind)
    return [SourceOperand(operand, kind) for operand in operands]


def _division_step(instruction: Instruction) -> Operation:
    register, *operands = instruction.taking(4)
    name = base_name(instruction.name)
    kind = name[-3:]
    target = check_target(register, width_of(kind) // 32)
    sources = _sources(operands, kind)

    def execute(waves: Waves) -> None:
        values = (source.read(waves) for source in sources)
        scale: Mask = waves.read_mask(VCC_PAIR)
        waves.write_vector(target, SCALED_MULTIPLY_ADD[name](*values, scale))

    reads = (*reads_of_sources(sources), OperandRead(VCC_PAIR, lanes=True))
    return Operation(execute, "valu", reads, (target,), slots="wide" if kind == "f64" else 1)


DIVISION: dict[str, Special] = {
    "v_div_scale_f32": Special(_division_scale, signed=True),
    "v_div_scale_f64": Special(_division_scale, signed=True),
    **dict.fromkeys(SCALED_MULTIPLY_ADD, Special(_division_step, signed=True)),
}

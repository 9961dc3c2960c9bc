"""Matrix instructions whose meaning is taken from a `.mfma` entry, where the user asks for it.

Nothing else in the emulator looks at such an entry: it would vouch for itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ml_dtypes  # bfloat16 for NumPy
import numpy as np
import numpy.typing as npt

from mfmadsl.emulator.error import EmulationError
from mfmadsl.emulator.instructions.matrix.execute import in_full, registers_of, write_registers
from mfmadsl.emulator.instructions.number import FNUZ, OCP, scales, values_of
from mfmadsl.emulator.machine.bits import Array
from mfmadsl.emulator.machine.mode import Machine
from mfmadsl.emulator.machine.operation import Operation, reads_of
from mfmadsl.emulator.machine.wave import Waves
from mfmadsl.emulator.text.assembly import Instruction
from mfmadsl.emulator.text.operand import Literal, Register, as_register
from mfmadsl.emulator.text.operand import Operand as Source
from mfmadsl.model import ElementType, Intrinsic, Operand
from mfmadsl.model.signature import SCALED_FORMATS

_NOT_ZERO = set("123456789abcdefx")
_XF32_KEPT = np.uint32(0xFFFF_E000)


def compile_described(instruction: Instruction, machine: Machine) -> Operation:
    """What an entry of this mnemonic says.

    Its operands are D, A, B, then C, or the index of a sparse A, or C and the scales. Sums are
    those of float64, rounded once. No modifiers are known but the types of scaled operands. Raises
    EmulationError if no entry says what just this instruction does.
    """
    entries = [e for e in machine.described[instruction.name] if machine.arch in e.chips]
    if not entries:
        raise _refusal(instruction, f"is no instruction of {machine.arch} by its .mfma entry")
    written = {key: text for key, text in instruction.modifiers.items() if set(text) & _NOT_ZERO}
    fitting = [entry for entry in entries if _modifiers(entry) == written]
    if len(fitting) != 1:
        what = "has modifiers that its .mfma entry does not know" if written else "has two entries"
        raise _refusal(instruction, what)
    return _compile(instruction, fitting[0])


def _refusal(instruction: Instruction, reason: str) -> EmulationError:
    return EmulationError(f"`{instruction.name}` {reason}", instruction.line, instruction.text)


def _modifiers(intrinsic: Intrinsic) -> dict[str, str]:
    """How the types of scaled operands are written; the first of them goes without saying."""
    if not intrinsic.scales:
        return {}
    numbers = {
        key: SCALED_FORMATS.index(operand.type.short)
        for key, operand in (("cbsz", intrinsic.a), ("blgp", intrinsic.b))
    }
    return {key: str(number) for key, number in numbers.items() if number}


def _compile(instruction: Instruction, intrinsic: Intrinsic) -> Operation:
    names = ["c", "a", "b", "index" if intrinsic.sparse else "c"]
    names += [scale.name for scale in intrinsic.scales]
    if len(names) != len(instruction.operands):
        raise _refusal(instruction, f"has {len(names)} operands by its .mfma entry")
    for place, (name, source) in enumerate(zip(names, instruction.operands, strict=True)):
        count = intrinsic.operand(name).register_count
        if not _fits(source, intrinsic.operand(name), may_be_constant=place == 3):
            letter = "D" if place == 0 else name.upper()
            reason = f"takes {count} registers for {letter} by its .mfma entry"
            raise _refusal(instruction, reason)
    target = as_register(instruction.operands[0])
    given = dict(zip(names[1:], instruction.operands[1:], strict=True))
    given.setdefault("c", target)

    def execute(waves: Waves) -> None:
        numbers = {
            name: _numbers(waves, source, intrinsic.operand(name)) for name, source in given.items()
        }
        write_registers(waves, target, _packed(intrinsic.c, _result(intrinsic, numbers)))

    return Operation(execute, "matrix", reads_of(*given.values()), (target,), whole_wave=True)


def _fits(source: Source, operand: Operand, may_be_constant: bool) -> bool:
    if isinstance(source, Literal):
        return may_be_constant and operand.name == "c"
    return (
        isinstance(source, Register)
        and source.bank in "va"
        and source.count == operand.register_count
    )


def _result(intrinsic: Intrinsic, numbers: Mapping[str, Array]) -> Array:
    """The matrices D that an entry gives, as (waves, blocks, M, N)."""
    a, b = numbers["a"], numbers["b"]
    if intrinsic.sparse:
        along_k = (x[:, 0].swapaxes(1, 2) for x in (a, numbers["index"]))
        a = in_full(*along_k).swapaxes(1, 2)[:, None]
    if intrinsic.scales:
        a = a * np.repeat(numbers["scale_a"], a.shape[3] // numbers["scale_a"].shape[3], axis=3)
        b = b * np.repeat(numbers["scale_b"], b.shape[2] // numbers["scale_b"].shape[2], axis=2)
    return np.asarray(a @ b + numbers["c"])


def _numbers(waves: Waves, source: Source, operand: Operand) -> Array:
    """An operand as (waves, blocks, rows, columns): float64, or int64 of integers."""
    layout, dtype = operand.layout, operand.type
    if isinstance(source, Literal):
        bits = source.bits(dtype.bits, floating=dtype.kind == "float")
        return _values(np.full((1, 1, 1, 1), bits, np.uint64), dtype)
    words = registers_of(waves, as_register(source)).astype(np.uint64)
    above = np.concatenate([words[1:], np.zeros_like(words[:1])])
    lanes, registers = np.array(layout.slots, np.int64).T
    word, shift = np.divmod(registers * dtype.bits, 32)
    wide = words[word, :, lanes] | above[word, :, lanes] << np.uint64(32)
    codes = wide >> shift.astype(np.uint64)[:, None] & np.uint64((1 << dtype.bits) - 1)
    shape = (layout.blocks, layout.rows, layout.columns, waves.count)
    return np.moveaxis(_values(codes, dtype).reshape(shape), -1, 0)


def _values(codes: npt.NDArray[np.uint64], dtype: ElementType) -> Array:
    """The numbers that codes stand for."""
    if dtype.short == "e8m0":
        return scales(codes)
    if dtype.short == "index":
        return codes.astype(np.int64)
    unsigned = codes.astype(f"u{max(8, dtype.bits) // 8}")
    if dtype.kind == "integer":
        return unsigned.view(f"i{dtype.bits // 8}").astype(np.int64)
    if dtype.bits <= 8:
        numbers = FNUZ if dtype.format == "fnuz" else OCP
        return values_of(numbers[dtype.short], unsigned).astype(np.float64)
    if dtype.short == "xf32":
        unsigned = unsigned & _XF32_KEPT
    floats: Any = ml_dtypes.bfloat16 if dtype.short == "bf16" else f"f{dtype.bits // 8}"
    return unsigned.view(floats).astype(np.float64)


def _packed(operand: Operand, values: Array) -> npt.NDArray[np.uint32]:
    """C as words of registers, (registers, waves, lanes)."""
    layout, dtype = operand.layout, operand.type
    if dtype.kind == "integer":
        typed = values.astype(np.int32)  # wraps around
    else:
        typed = values.astype(f"f{dtype.bits // 8}")
    lanes, registers = np.array(layout.slots, np.int64).T
    held = np.zeros((layout.elements_per_lane, layout.lanes, len(values)), typed.dtype)
    held[registers, lanes] = typed.reshape(len(values), -1).T
    words = held.view(np.uint32).reshape(layout.elements_per_lane, layout.lanes, len(values), -1)
    return words.transpose(0, 3, 2, 1).reshape(-1, len(values), layout.lanes)

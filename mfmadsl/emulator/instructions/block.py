"""CDNA4's conversions from and to floats of four and six bits, of several numbers at once (CDNA4
ISA, section 7.3 and VOP3).

All have a scale, which is the exponent of a float of 32 bits. Too much becomes the largest number,
whatever FP16_OVFL says; NaN, which these formats lack, is refused: AMD's own emulators and headers
make either 0 or the largest number of it. Those that round by random bits take one seed, and make
that of each further number as v_prng_b32 does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mfmadsl.emulator.error import OperandError
from mfmadsl.emulator.instructions.integer import next_random
from mfmadsl.emulator.instructions.modifier import known_byte_choice
from mfmadsl.emulator.instructions.narrow import (
    MANTISSA_BITS,
    halves_as_floats,
    halves_of,
    widened,
)
from mfmadsl.emulator.instructions.number import (
    OCP,
    powers_of,
    to_narrow,
    to_narrow_by_seed,
    values_of,
)
from mfmadsl.emulator.instructions.row import Special
from mfmadsl.emulator.instructions.target import target_of
from mfmadsl.emulator.instructions.undocumented import refuse
from mfmadsl.emulator.machine.bits import Array, codes_of, words_of_codes
from mfmadsl.emulator.machine.denormal import without_denormals
from mfmadsl.emulator.machine.operation import Operation, reads_of
from mfmadsl.emulator.machine.wave import LANES, Waves
from mfmadsl.emulator.text.assembly import Instruction
from mfmadsl.emulator.text.operand import (
    MODE,
    Operand,
    Register,
    check_apart,
    check_registers,
    check_source,
    check_target,
)

_BLOCK = 32
"""Numbers of six bits that one instruction converts."""

_KEEPS_DENORMALS = 1 << 4
"""The bit of MODE that says whether f32 sources may be denormal."""


@dataclass(frozen=True)
class _Narrowing:
    """Numbers of a `kind` made codes of `to`, `count` of them.

    They lie in `sources` operands of so many `registers`; where there are two, the numbers of the
    one and of the other take turns. With `by_seed` random bits round, and are an operand, too.
    """

    kind: str
    to: str
    count: int
    sources: int = 1
    by_seed: bool = False

    @property
    def registers(self) -> int:
        """How many registers each source has."""
        return self.count * (32 if self.kind == "f32" else 16) // 32 // self.sources

    def compile_one(self, instruction: Instruction) -> Operation:
        """The operation of an instruction with these operands, and a scale behind."""
        taken = self.sources + self.by_seed + 1
        first, *operands = instruction.taking(1 + taken)
        data = [self._source(operand) for operand in operands[: self.sources]]
        if self.by_seed:
            check_source(operands[-2], "u32")
        check_source(operands[-1], "f32")
        reads = reads_of(*operands)
        register = check_target(first, max(1, self.count * 6 // 32))
        if self.count > 2 or self.by_seed:
            check_apart(register, *operands)
        if self.count == 2:
            flags = instruction.written_flags("op_sel")
            if flags is not None and not known_byte_choice(flags):
                raise OperandError("op_sel chooses a byte of the target")
            target = target_of(instruction, register, taken, part=8)

            def write_byte(waves: Waves) -> None:
                low, high = self._codes(waves, data, operands)
                target.write(waves, low | high << np.uint8(4))

            return Operation(
                write_byte, "valu", (*reads, *target.reads()), (target.register,),
                flow=lambda _, undefined: target.flow(undefined, _no_byte(undefined)),
            )  # fmt: skip

        def write_block(waves: Waves) -> None:
            codes = np.moveaxis(self._codes(waves, data, operands), 0, -1)
            _write(waves, register, words_of_codes(codes, 6))

        return Operation(write_block, "valu", reads, (register,))

    def _source(self, operand: Operand) -> Operand:
        if self.kind == "f32" and self.registers == 1:
            check_source(operand, "f32")
            return operand
        register = check_registers(operand, self.registers, "v" if self.count > 2 else "vs")
        if register.negate or register.absolute:
            raise OperandError("no manual says what neg and abs make of several numbers")
        return register

    def _codes(self, waves: Waves, data: Sequence[Operand], operands: Sequence[Operand]) -> Array:
        """(numbers, waves, 64): the codes.  Raises EmulationError where an active lane has NaN."""
        each = [self._numbers(waves, operand) for operand in data]
        values = np.stack(each, axis=1).reshape(self.count, waves.count, LANES)
        scaled = values.astype(np.float64) / powers_of(waves.read_vector(operands[-1], "f32"))
        refuse(waves, np.any(np.isnan(scaled), axis=0), f"what NaN becomes in {self.to}")
        number = OCP[self.to]
        if not self.by_seed:
            return to_narrow(scaled, number, saturate=True)
        seeds = [waves.read_vector(operands[-2], "u32")]
        while len(seeds) < self.count:
            seeds.append(next_random(seeds[-1]))
        seed = np.stack(seeds)
        return to_narrow_by_seed(scaled, seed, MANTISSA_BITS[self.kind], number, saturate=True)

    def _numbers(self, waves: Waves, operand: Operand) -> Array:
        """(numbers, waves, 64): those of one source, as f32."""
        shape = (waves.count, LANES)
        if self.kind == "f32":
            words = [np.broadcast_to(waves.read_vector(r, "f32"), shape) for r in _each(operand)]
            keeps = (waves.scalar[MODE] & np.uint32(_KEEPS_DENORMALS) != 0)[:, None]
            return np.where(keeps, words, without_denormals(np.stack(words)))
        words = [np.broadcast_to(waves.read_vector(r, "u32"), shape) for r in _each(operand)]
        halves = np.stack([half for word in words for half in halves_of(word)])
        return halves_as_floats(self.kind, halves)


@dataclass(frozen=True)
class _Widening:
    """32 codes of six bits of `kind` made f32, f16 or bf16."""

    kind: str
    to: str

    def compile_one(self, instruction: Instruction) -> Operation:
        """The operation of an instruction of a target, the codes and the scale."""
        first, codes, scale = instruction.taking(3)
        register = check_target(first, _BLOCK * (32 if self.to == "f32" else 16) // 32)
        source = check_registers(codes, _BLOCK * 6 // 32, "v")
        check_source(scale, "f32")
        check_apart(register, codes, scale)

        def execute(waves: Waves) -> None:
            words = np.stack([waves.read_vector(r, "u32") for r in _each(source)], axis=-1)
            values = values_of(OCP[self.kind], codes_of(words, 6)).astype(np.float64)
            powers = powers_of(waves.read_vector(scale, "f32"))
            wide = widened(values * powers[..., None], self.to, waves.scalar[MODE][:, None, None])
            _write(waves, register, np.ascontiguousarray(wide).view(np.uint32))

        return Operation(execute, "valu", reads_of(codes, scale), (register,))


def _each(operand: Operand) -> list[Operand]:
    """Registers one by one; a constant stands for itself."""
    if not isinstance(operand, Register):
        return [operand]
    return [replace(operand, index=i, count=1) for i in operand.indices]


def _write(waves: Waves, register: Register, words: Array) -> None:
    """Put words along the last axis into registers."""
    for i, each in enumerate(_each(register)):
        waves.write_vector(each, words[..., i])


def _no_byte(undefined: Waves) -> Array:
    return np.zeros((undefined.count, LANES), np.uint8)


def _special(compiled: _Narrowing | _Widening) -> Special:
    of_pairs = isinstance(compiled, _Narrowing) and compiled.count == 2
    modifiers = frozenset(["op_sel"]) if of_pairs else frozenset[str]()
    return Special(compiled.compile_one, modifiers, signed=of_pairs)


def _blocks() -> dict[str, Special]:
    found: dict[str, _Narrowing | _Widening] = {}
    for kind in MANTISSA_BITS:
        both = 2 if kind == "f32" else 1
        found[f"pk_fp4_{kind}"] = _Narrowing(kind, "fp4", 2, sources=both)
        found[f"sr_pk_fp4_{kind}"] = _Narrowing(kind, "fp4", 2, by_seed=True)
        for to in ("fp6", "bf6"):
            found[f"sr_pk32_{to}_{kind}"] = _Narrowing(kind, to, _BLOCK, by_seed=True)
            if kind == "f32":
                found[f"2xpk16_{to}_f32"] = _Narrowing(kind, to, _BLOCK, sources=2)
            else:
                found[f"pk32_{to}_{kind}"] = _Narrowing(kind, to, _BLOCK)
            found[f"pk32_{kind}_{to}"] = _Widening(to, kind)
    return {f"v_cvt_scalef32_{name}": _special(each) for name, each in found.items()}


BLOCKS: dict[str, Special] = _blocks()

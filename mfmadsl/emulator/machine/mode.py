"""What of a chip and its mode instructions depend on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from mfmadsl.emulator.error import EmulationError
from mfmadsl.emulator.machine.bits import Array, Compute
from mfmadsl.emulator.machine.denormal import flushing, without_denormals
from mfmadsl.emulator.text.assembly import Program
from mfmadsl.model import Intrinsic

_KEEP_DENORMALS, _FLUSH_DENORMALS = 3, 0


@dataclass(frozen=True)
class Machine:
    """A chip, and the mode that its kernels run in (CDNA3 ISA, section 4.2).

    `flushed` are the float types whose denormals it takes for 0 and never gives; with
    `dx10_clamp`, clamping makes NaN 0; with `ieee`, results are not scaled. `described` has the
    matrix instructions, by mnemonic, whose meaning is that of a `.mfma` entry.
    """

    arch: str
    flushed: tuple[str, ...] = ()
    ieee: bool = True
    dx10_clamp: bool = True
    described: Mapping[str, tuple[Intrinsic, ...]] = field(default_factory=dict)

    @property
    def mode(self) -> int:
        """Bits 0 to 9 of the MODE register."""
        single, other = (
            _FLUSH_DENORMALS if kind in self.flushed else _KEEP_DENORMALS for kind in ("f32", "f64")
        )
        return single << 4 | other << 6 | self.dx10_clamp << 8 | self.ieee << 9

    def flushed_compute(self, compute: Compute) -> Compute:
        """A function of floats, with denormals flushed as the mode says."""
        return flushing(compute, *self.flushed) if self.flushed else compute

    def clamped(self, values: Array) -> Array:
        """Floats clamped to [0, 1], where -0 is below 0."""
        zero, one = values.dtype.type(0), values.dtype.type(1)
        if self.dx10_clamp:
            return np.fmin(np.fmax(values, zero), one) + zero
        return np.clip(values, zero, one) + zero

    def scaled(self, values: Array, factor: float) -> Array:
        """Floats times 2, 4 or 1/2, the output modifier.

        A chip ignores it in IEEE mode and where denormals may come out; what it scales has no
        negative zero (CDNA3 ISA, section 6.2; LLVM, `SIFoldOperands`).
        """
        kind = f"f{8 * values.itemsize}"
        if factor == 1 or self.ieee or kind not in self.flushed:
            return values
        return without_denormals(values * values.dtype.type(factor)) + values.dtype.type(0)


def machine_of(program: Program, trusted: Sequence[Intrinsic] = ()) -> Machine:
    """The chip of a program, in the mode that its descriptor asks for.

    What the descriptor leaves out is as LLVM's assembler has it (LLVM, "User Guide for AMDGPU
    Backend", `.amdhsa_` directives). `trusted` are the entries whose meaning is taken for that of
    their instructions. Raises EmulationError for a mode that is not emulated.
    """
    directives = program.directives
    flushed: list[str] = []
    for name, default, kinds in (
        ("float_denorm_mode_32", _FLUSH_DENORMALS, ("f32",)),
        ("float_denorm_mode_16_64", _KEEP_DENORMALS, ("f16", "f64")),
    ):
        mode = directives.get(name, default)
        if mode == _FLUSH_DENORMALS:
            flushed += kinds
        elif mode != _KEEP_DENORMALS:
            raise EmulationError(f".amdhsa_{name} {mode} is not emulated: use 0 or 3")
    for name in ("float_round_mode_32", "float_round_mode_16_64"):
        if directives.get(name, 0):
            raise EmulationError(f".amdhsa_{name} is not emulated but for 0, to nearest even")
    described: dict[str, tuple[Intrinsic, ...]] = {}
    for intrinsic in trusted:
        for mnemonic in intrinsic.mnemonics:
            described[mnemonic] = (*described.get(mnemonic, ()), intrinsic)
    return Machine(
        program.arch,
        tuple(flushed),
        ieee=directives.get("ieee_mode", 1) == 1,
        dx10_clamp=directives.get("dx10_clamp", 1) == 1,
        described=described,
    )

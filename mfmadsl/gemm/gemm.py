"""One GEMM from its types to a checked result: what the `gemm` command runs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy.typing as npt
from tvm.s_tir import Schedule
from tvm.target.codegen import llvm_lookup_intrinsic_id

from mfmadsl.backend import Kernel, build
from mfmadsl.comparison import Comparison
from mfmadsl.emulator import emulate
from mfmadsl.emulator.run import Progress
from mfmadsl.gemm.operands import operands_of
from mfmadsl.gemm.problem import PLAIN, Problem
from mfmadsl.gemm.simple import simple_schedule
from mfmadsl.gemm.tolerance import Tolerance
from mfmadsl.model import Intrinsic, Tiling
from mfmadsl.schedule import ScheduleError, gemm_schedule, gemm_tiling, makes_gemm
from mfmadsl.schedule.matrix_core.gemm import is_tuned

_SHAPING = ("block", "waves", "k_step", "k_pack", "stages")  # fields of a tiling


@dataclass(frozen=True)
class Gemm(Problem):
    """A product of matrices, its kernel, and a check of that beside NumPy."""

    def schedule(self) -> Schedule:
        """The tensorized schedule.

        Raises ScheduleError if the shape, the chip or LLVM does not have it, and ModuleError if
        there is no module of the intrinsic.
        """
        self.check_types()
        if self.intrinsic is not None:
            self._check_intrinsic(self.intrinsic)
            if not self.is_tiled:
                return simple_schedule(self, self.intrinsic, self.shared_scope or "shared")
        tiling = self.tiled() if self.tiling else None
        return gemm_schedule(self.workload(), self.intrinsic, self.arch, tiling)

    def _check_intrinsic(self, intrinsic: Intrinsic) -> None:
        if self.arch not in intrinsic.chips:
            raise ScheduleError(
                f"{self.arch} has no {intrinsic.name}: it is an instruction of "
                f"{', '.join(intrinsic.chips)}"
            )
        own = intrinsic.a.type.dtype, intrinsic.b.type.dtype
        if self.types[:2] != own:
            raise ScheduleError(
                f"{intrinsic.name} multiplies {own[0]} by {own[1]}, not {self.types[0]} by "
                f"{self.types[1]}"
            )
        if not llvm_lookup_intrinsic_id(intrinsic.call):
            raise ScheduleError(f"{intrinsic.name}: LLVM has no intrinsic `{intrinsic.call}`")

    @property
    def is_tiled(self) -> bool:
        """Whether `gemm_schedule` makes it, and not the simple schedule."""
        if self.shared_scope is not None:
            return False
        return self.form != PLAIN or self.intrinsic is None or makes_gemm(self.intrinsic)

    def tiled(self) -> Tiling:
        """How the product is cut. Raises ScheduleError as `schedule` does."""
        default = gemm_tiling(self.workload(), self.intrinsic, self.arch)
        if not self.tiling.keys().isdisjoint(_SHAPING):  # waves along K are chosen to go with these
            default = replace(default, k_waves=1)
        if self.tiling.get("split_k") == 1:  # there is nothing to add up
            default = replace(default, one_launch=False)
        return replace(default, **self.tiling)

    @property
    def tiling_source(self) -> str:
        """Where the tiling is from: "given" (some field at least), "tuned" or "formula"."""
        if self.tiling:
            return "given"
        return "tuned" if is_tuned(self.workload(), self.intrinsic, self.arch) else "formula"

    def build(self) -> Kernel:
        """The kernel of the schedule."""
        return build(self.schedule(), self.arch)

    @cached_property
    def tolerance(self) -> Tolerance:
        """How far the kernel's C may be off."""
        tiling = self.tiled() if self.is_tiled else None
        return Tolerance(self, tiling.split_k * tiling.k_waves if tiling else 1)

    def check(
        self, kernel: Kernel, progress: Progress | None = None, trust_spec: bool = False
    ) -> Comparison:
        """Emulate the kernel on random matrices and compare with NumPy in float64.

        With `trust_spec` the instruction does what the entry says, and not what the emulator knows.
        """
        arrays = self.operands()
        trusted = [self.intrinsic] if trust_spec and self.intrinsic else []
        run = emulate(kernel, list(arrays), progress=progress, trusted=trusted)
        found = self.compare(*arrays)
        return replace(found, approximate=run.approximate, trusted=run.trusted)

    def operands(self, compared: bool = True) -> tuple[npt.NDArray[Any], ...]:
        """Random arguments, the same on every machine, and a C full of a value that is no result.

        Raises ArgumentError if they are more than this machine holds: in float64 if they are to be
        `compared`, and as they are where a profile runs some workgroups on them.
        """
        return operands_of(self, compared)

    def compare(
        self, a: npt.NDArray[Any], b: npt.NDArray[Any], *others: npt.NDArray[Any]
    ) -> Comparison:
        """Where C, the last array, is furthest beyond its tolerance, or nearest to it."""
        return self.tolerance.compare(a, b, *others)

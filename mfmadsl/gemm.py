"""One GEMM from an intrinsic to a checked result: what the `gemm` command runs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import ml_dtypes  # the types that NumPy lacks: bfloat16 and the eight-bit floats
import numpy as np
import numpy.typing as npt
from tvm.s_tir import Schedule
from tvm.target.codegen import llvm_lookup_intrinsic_id
from tvm.tirx import PrimFunc

from mfmadsl.argument import check_choice, check_extent, check_flag, check_type
from mfmadsl.emulator import emulate
from mfmadsl.model import Intrinsic, Operand, architecture
from mfmadsl.target import Kernel, build
from mfmadsl.tensorize import (
    ScheduleError,
    default_factors,
    gemm_schedule,
    gemm_tiling,
    load_intrinsic,
    makes_gemm,
    matmul,
    mfma_schedule,
)

_SEED = 20240229


@dataclass(frozen=True)
class Comparison:
    """How far a result is from the product in float64; `tolerance` belongs to the worst element.

    Products are accumulated in the type of C, k of them in an unspecified order, so that element
    [i, j] may be off by k roundings of sum(|A[i]| * |B[j]|). Integers have no tolerance.
    """

    error: float
    tolerance: float
    row: int
    column: int

    @property
    def agrees(self) -> bool:
        return self.error <= self.tolerance


@dataclass(frozen=True)
class Gemm:
    """C[m, n] = A[m, k] x B[k, n] with one intrinsic, on one chip; B may lie as n x k.

    The kernel is that of `gemm_schedule`. With `shared_scope`, TVM's scope of the tiles in LDS
    ("shared" or "shared.dyn"), it is the simple one of `mfma_schedule`, as for an instruction whose
    registers `gemm_schedule` cannot deal with.
    """

    intrinsic: Intrinsic
    arch: str
    m: int
    n: int
    k: int
    b_transposed: bool = False
    shared_scope: str | None = None

    def __post_init__(self) -> None:
        """Raise ArgumentError for what is no intrinsic, chip, scope or extent."""
        check_type("intrinsic", self.intrinsic, Intrinsic, "an Intrinsic, as `find` gives it")
        architecture(self.arch)
        for name in ("m", "n", "k"):
            check_extent(name, getattr(self, name))
        check_flag("b_transposed", self.b_transposed)
        if self.shared_scope is not None:
            check_choice("shared_scope", self.shared_scope, ("shared", "shared.dyn"))

    def schedule(self) -> Schedule:
        """The tensorized schedule.

        Raises ScheduleError if the shape, the chip or LLVM does not have it, and ModuleError if
        there is no module of the intrinsic.
        """
        intrinsic = self.intrinsic
        if self.arch not in intrinsic.chips:
            raise ScheduleError(
                f"{self.arch} has no {intrinsic.name}: it is an instruction of "
                f"{', '.join(intrinsic.chips)}"
            )
        if intrinsic.blocks > 1 or intrinsic.sparse or intrinsic.scales:
            kind = "sparse" if intrinsic.sparse else "scaled" if intrinsic.scales else "of blocks"
            raise ScheduleError(
                f"{intrinsic.name} is no plain matrix product, but {kind}: no GEMM is made of it"
            )
        if not llvm_lookup_intrinsic_id(intrinsic.call):
            raise ScheduleError(f"{intrinsic.name}: LLVM has no intrinsic `{intrinsic.call}`")
        if self.shared_scope is None and makes_gemm(intrinsic):
            # One kernel, since that is what the command line and its files deal with.
            tiling = gemm_tiling(self._workload(), intrinsic, self.arch)
            tiling = replace(tiling, split_k=1)
            return gemm_schedule(self._workload(), intrinsic, self.arch, tiling)
        return self._simple_schedule(self.shared_scope or "shared")

    def _workload(self) -> PrimFunc:
        a, b, c = (o.type.dtype for o in (self.intrinsic.a, self.intrinsic.b, self.intrinsic.c))
        return matmul(self.m, self.n, self.k, a, c, self.b_transposed, b)

    def _simple_schedule(self, scope: str) -> Schedule:
        factors = default_factors(self.intrinsic, self.m, self.n, self.k)
        tile = load_intrinsic(self.intrinsic)
        suffix = scope.replace(".", "_").upper()
        load_b = f"LOAD_B_TRANSPOSED_{suffix}" if self.b_transposed else f"LOAD_B_{suffix}"
        return mfma_schedule(
            self._workload(),
            tile.K,
            tile.A_DTYPE,
            self.b_transposed,
            factors.i,
            factors.j,
            factors.k,
            tile.index_map_A,
            tile.index_map_B_transposed if self.b_transposed else tile.index_map_B,
            tile.index_map_C,
            getattr(tile, f"LOAD_A_{suffix}"),
            getattr(tile, load_b),
            tile.COMPUTE,
            tile.FILL,
            tile.STORE_GLOBAL,
            scope,
        )

    @property
    def tolerance_rule(self) -> str:
        """How the tolerance of an element comes about, in a line."""
        if self.intrinsic.c.type.kind == "integer":
            return "exact"
        roundings = f"K * 2^-{53 if self.intrinsic.c.type.bits == 64 else 24}"
        factors = f"({roundings} + 2^-10)" if self.intrinsic.a.type.short == "xf32" else roundings
        return f"{factors} * sum |a||b|"

    @property
    def relative_tolerance(self) -> float:
        """Of the sum of the products' magnitudes: one rounding for each of the k additions.

        xf32 rounds each factor to 11 bits besides.
        """
        rounding = 2.0**-53 if self.intrinsic.c.type.bits == 64 else 2.0**-24
        factors = 2.0**-10 if self.intrinsic.a.type.short == "xf32" else 0
        return self.k * rounding + factors

    def build(self) -> Kernel:
        """The kernel of the schedule."""
        return build(self.schedule(), self.arch)

    def check(self, kernel: Kernel) -> Comparison:
        """Emulate the kernel on random matrices and compare with NumPy in float64."""
        a, b, c = self.operands()
        emulate(kernel, [a, b, c])
        return self.compare(a, b, c)

    def operands(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]:
        """Random A and B, the same on every machine, and a C full of a value that is no result."""
        generator = np.random.default_rng(_SEED)
        shapes = (self.m, self.k), ((self.n, self.k) if self.b_transposed else (self.k, self.n))
        dtypes = [_dtype(operand) for operand in (self.intrinsic.a, self.intrinsic.b)]
        if self.intrinsic.a.type.kind == "integer":
            limits = np.iinfo(dtypes[0])
            a, b = (generator.integers(limits.min, limits.max + 1, s, dtypes[0]) for s in shapes)
        else:
            a, b = (
                generator.standard_normal(shape).astype(dtype)
                for shape, dtype in zip(shapes, dtypes, strict=True)
            )
        return a, b, np.full((self.m, self.n), 99, dtype=_dtype(self.intrinsic.c))

    def compare(self, a: npt.NDArray[Any], b: npt.NDArray[Any], c: npt.NDArray[Any]) -> Comparison:
        """Where `c` is furthest beyond its tolerance, or nearest to it.

        The product is that of the numbers that the chip reads: gfx90a takes denormal halves for 0.
        """
        left, right = self._read(a), self._read(b.T if self.b_transposed else b)
        errors = np.abs(c.astype(np.float64) - left @ right)
        errors[~np.isfinite(errors)] = np.inf
        tolerances = np.zeros_like(errors)
        if c.dtype.kind == "f":
            tolerances = np.abs(left) @ np.abs(right) * self.relative_tolerance
        row, column = np.unravel_index(np.argmax(errors - tolerances), errors.shape)
        worst = errors[row, column] > tolerances[row, column]
        if not worst:
            row, column = np.unravel_index(np.argmax(errors), errors.shape)
        return Comparison(
            float(errors[row, column]), float(tolerances[row, column]), int(row), int(column)
        )

    def _read(self, matrix: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        values = matrix.astype(np.float64)
        if self.arch == "gfx90a" and matrix.dtype == np.float16:
            values[np.abs(values) < np.finfo(np.float16).smallest_normal] = 0
        return values


def _dtype(operand: Operand) -> np.dtype[Any]:
    name = operand.type.dtype
    return np.dtype(getattr(ml_dtypes, name, name))

"""One GEMM from its types to a checked result: what the `gemm` command runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from math import prod
from typing import Any

import ml_dtypes  # the types that NumPy lacks: bfloat16 and the eight-bit floats
import numpy as np
import numpy.typing as npt
from tvm import te
from tvm.s_tir import Schedule
from tvm.target.codegen import llvm_lookup_intrinsic_id
from tvm.tirx import PrimFunc

from mfmadsl.argument import check_choice, check_extent, check_flag, check_list, check_type
from mfmadsl.backend import Kernel, build
from mfmadsl.comparison import Comparison, compared
from mfmadsl.emulator import emulate
from mfmadsl.emulator.instructions.matrix.arithmetic import arithmetic
from mfmadsl.emulator.machine.argument import check_size
from mfmadsl.emulator.run import Progress
from mfmadsl.epilogue import STEPS, check_steps, fused, model
from mfmadsl.error import ArgumentError
from mfmadsl.model import ELEMENT_TYPES, Intrinsic, architecture, unscaled
from mfmadsl.model.numpy_type import numpy_type
from mfmadsl.schedule import (
    ScheduleError,
    Tiling,
    default_factors,
    gemm_schedule,
    gemm_tiling,
    load_intrinsic,
    makes_gemm,
    matmul,
    mfma_schedule,
)
from mfmadsl.schedule.matrix_core.gemm import is_tuned
from mfmadsl.schedule.workload import TYPES, product

_SEED = 20240229
_FLUSHED = (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16))  # by gfx90a, where denormal
_SUMS = {"float64": "float64", "int8": "int32"}  # of other types float32
_ROUNDINGS = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 2.0**-24, "float64": 2.0**-53}
_SHAPING = ("block", "waves", "k_step", "k_pack", "stages")  # fields of a tiling


@dataclass(frozen=True)
class Gemm:
    """C[m, n] = A[m, k] x B[k, n] on one chip; B may lie as n x k, and A as k x m.

    The kernel is that of `gemm_schedule`, which chooses the instruction if `intrinsic` is None.
    With `shared_scope`, TVM's scope of the tiles in LDS ("shared" or "shared.dyn"), it is the
    simple one of `mfma_schedule`, as for an instruction whose registers `gemm_schedule` cannot deal
    with.

    `dtypes` are those of A, B and C, None where the instruction says it, or else float16 for A, the
    same for B, and the type of the sums for C. `batch` is the number of matrices of each kind, of
    which an instruction of several blocks takes as many at once. A scaled one of eight-bit floats
    multiplies without scales.
    `epilogue` names what follows the product (`epilogue.STEPS`), in the type of the sums; what its
    steps read are arguments between B and C. `tiling` has fields of `Tiling` to be changed.
    """

    intrinsic: Intrinsic | None
    arch: str
    m: int
    n: int
    k: int
    b_transposed: bool = False
    shared_scope: str | None = None
    a_transposed: bool = False
    dtypes: tuple[str | None, str | None, str | None] = (None, None, None)
    batch: int | None = None
    epilogue: tuple[str, ...] = ()
    tiling: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise ArgumentError for what is no intrinsic, chip, extent, type, step or field."""
        if self.intrinsic is not None:
            check_type("intrinsic", self.intrinsic, Intrinsic, "an Intrinsic, as `find` gives it")
        object.__setattr__(self, "arch", architecture(self.arch).name)
        for name in ("m", "n", "k"):
            check_extent(name, getattr(self, name))
        if self.batch is not None:
            check_extent("batch", self.batch)
        check_flag("a_transposed", self.a_transposed)
        check_flag("b_transposed", self.b_transposed)
        if self.shared_scope is not None:
            check_choice("shared_scope", self.shared_scope, ("shared", "shared.dyn"))
        check_list("dtypes", self.dtypes, "the types of A, B and C, or None")
        if len(self.dtypes) != 3:
            raise ArgumentError(f"dtypes: are three, of A, B and C, not {len(self.dtypes)}")
        for dtype in self.dtypes:
            if dtype is not None:
                check_choice("dtypes", dtype, TYPES)
        check_list("epilogue", self.epilogue, "a list of steps")
        for step in self.epilogue:
            check_choice("epilogue", step, STEPS)
        check_type("tiling", self.tiling, Mapping, "fields of Tiling and their values")
        for field_name in self.tiling:
            check_choice("tiling", field_name, [each.name for each in fields(Tiling)])

    @property
    def types(self) -> tuple[str, str, str]:
        """The types of A, B and C."""
        own = self.intrinsic
        a, b, c = self.dtypes
        a = a or (own.a.type.dtype if own else "float16")
        b = b or (own.b.type.dtype if own and self.dtypes[0] is None else a)
        return a, b, c or self.sum_type

    @property
    def sum_type(self) -> str:
        """What products are added up in."""
        if self.intrinsic is not None:
            return self.intrinsic.c.type.dtype
        return _SUMS.get(self.dtypes[0] or "float16", "float32")

    @property
    def name(self) -> str:
        """What its kernels are called: layouts, types of A, B and C, extents, and what follows."""
        sides = (self.a_transposed, self.b_transposed)
        layouts = "".join("t" if transposed else "n" for transposed in sides)
        known = {t.name: t.short for t in ELEMENT_TYPES.values()}
        types = [known.get(dtype, dtype) for dtype in self.types]
        extents = "x".join(str(e) for e in (self.batch, self.m, self.n, self.k) if e is not None)
        return "_".join(["gemm", layouts, *types, extents, *self.epilogue])

    def schedule(self) -> Schedule:
        """The tensorized schedule.

        Raises ScheduleError if the shape, the chip or LLVM does not have it, and ModuleError if
        there is no module of the intrinsic.
        """
        self._check()
        if self.intrinsic is not None:
            self._check_intrinsic(self.intrinsic)
            if self.shared_scope is not None or not makes_gemm(self.intrinsic):
                return self._simple_schedule(self.intrinsic, self.shared_scope or "shared")
        tiling = self.tiled() if self.tiling else None
        return gemm_schedule(self.workload(), self.intrinsic, self.arch, tiling)

    def _check(self) -> None:
        check_steps(self.epilogue, self.sum_type)
        c = self.types[2]
        if c != self.sum_type and not {c, self.sum_type} <= {"float16", "bfloat16", "float32"}:
            raise ScheduleError(
                f"C is {c}, but sums of {self.types[0]} are {self.sum_type}: only those in float32 "
                "are rounded, to float16 or bfloat16"
            )

    def _check_intrinsic(self, intrinsic: Intrinsic) -> None:
        if self.arch not in intrinsic.chips:
            raise ScheduleError(
                f"{self.arch} has no {intrinsic.name}: it is an instruction of "
                f"{', '.join(intrinsic.chips)}"
            )
        # Of eight-bit floats there is the product without scales.
        scaled = intrinsic.scales and {intrinsic.a.type.bits, intrinsic.b.type.bits} != {8}
        if intrinsic.sparse or scaled:
            kind = "sparse" if intrinsic.sparse else "scaled"
            raise ScheduleError(
                f"{intrinsic.name} is no plain matrix product, but {kind}: no GEMM is made of it"
            )
        own = intrinsic.a.type.dtype, intrinsic.b.type.dtype
        if self.types[:2] != own:
            raise ScheduleError(
                f"{intrinsic.name} multiplies {own[0]} by {own[1]}, not {self.types[0]} by "
                f"{self.types[1]}"
            )
        if not llvm_lookup_intrinsic_id(intrinsic.call):
            raise ScheduleError(f"{intrinsic.name}: LLVM has no intrinsic `{intrinsic.call}`")

    def workload(self) -> PrimFunc:
        """What is to be computed, as `gemm_schedule` takes it."""
        a_type, b_type, c_type = self.types
        follows = bool(self.epilogue) or c_type != self.sum_type
        a, b, c = product(
            (self.m, self.n, self.k), (a_type, b_type, self.sum_type),
            (self.a_transposed, self.b_transposed), self.batch, "product" if follows else "C",
        )  # fmt: skip
        operands: list[Any] = []
        if follows:
            operands, c = fused(c, self.epilogue, c_type)
        return te.create_prim_func([a, b, *operands, c]).with_attr("global_symbol", self.name)

    def _simple_schedule(self, intrinsic: Intrinsic, scope: str) -> Schedule:
        beyond = {
            "transposed A": self.a_transposed, "batches": self.batch, "epilogue": self.epilogue,
            "tiling": self.tiling, "other type of C": self.types[2] != self.sum_type,
        }  # fmt: skip
        if asked := [name for name, value in beyond.items() if value]:
            raise ScheduleError(
                f"{intrinsic.name} takes the simple kernel, which has no {' and no '.join(asked)}"
            )
        if intrinsic.blocks > 1:
            raise ScheduleError(
                f"{intrinsic.name} multiplies {intrinsic.blocks} blocks at once, and the simple"
                " kernel has no batches that they could be of"
            )
        factors = default_factors(intrinsic, self.m, self.n, self.k)
        tile = load_intrinsic(unscaled(intrinsic))
        suffix = scope.replace(".", "_").upper()
        load_b = f"LOAD_B_TRANSPOSED_{suffix}" if self.b_transposed else f"LOAD_B_{suffix}"
        a_type, b_type, c_type = self.types
        return mfma_schedule(
            matmul(self.m, self.n, self.k, a_type, c_type, self.b_transposed, b_type).with_attr(
                "global_symbol", self.name
            ),
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
    def _cuts_factors(self) -> bool:
        return self.intrinsic is not None and self.intrinsic.a.type.short == "xf32"

    @property
    def tolerance_rule(self) -> str:
        """How the tolerance of an element comes about, in a line."""
        if self.sum_type == "int32":
            return "exact"
        roundings = f"{self._roundings} * 2^-{53 if self.sum_type == 'float64' else 24}"
        factors = f"({roundings} + 2^-9)" if self._cuts_factors else roundings
        after = [*self.epilogue, *([self.types[2]] if self.types[2] != self.sum_type else [])]
        return f"{factors} * sum |a||b|" + (f", and {', '.join(after)}" if after else "")

    @property
    def relative_tolerance(self) -> float:
        """How much the chip's matrix cores may round away, of the sum of the products' magnitudes.

        xf32 cuts each factor to 10 bits of fraction besides.
        """
        rounding = 2.0**-53 if self.sum_type == "float64" else 2.0**-24
        return self._roundings * rounding + (2.0**-9 if self._cuts_factors else 0)

    @cached_property
    def _roundings(self) -> int:
        """Units in the last place, those of adding up the parts of K among them."""
        kind = self.intrinsic.a.type.short if self.intrinsic else _short(self.types[0])
        tiling = self.tiled() if self.is_tiled else None
        parts = tiling.split_k * tiling.k_waves if tiling else 1
        return arithmetic(self.arch, True, kind).roundings(self.k) + parts - 1

    @property
    def is_tiled(self) -> bool:
        """Whether `gemm_schedule` makes it, and not the simple schedule."""
        return self.shared_scope is None and (self.intrinsic is None or makes_gemm(self.intrinsic))

    def tiled(self) -> Tiling:
        """How the product is cut. Raises ScheduleError as `schedule` does."""
        default = gemm_tiling(self.workload(), self.intrinsic, self.arch)
        if not self.tiling.keys().isdisjoint(_SHAPING):  # waves along K are chosen to go with these
            default = replace(default, k_waves=1)
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
        sides = (self.batch,) if self.batch else ()
        a_shape = (self.k, self.m) if self.a_transposed else (self.m, self.k)
        b_shape = (self.n, self.k) if self.b_transposed else (self.k, self.n)
        c_shape = (*sides, self.m, self.n)
        a_type, b_type, c_type = self.types
        wanted = [((*sides, *a_shape), a_type), ((*sides, *b_shape), b_type)]
        for name in self.epilogue:
            if takes := STEPS[name].takes:
                wanted.append((c_shape if takes == "matrix" else c_shape[-1:], self.sum_type))
        sizes = [(prod(s), numpy_type(name).itemsize) for s, name in (*wanted, (c_shape, c_type))]
        if compared:
            check_size(sum(8 * n for n, _ in sizes), "compared in float64, the matrices take")
        else:
            size = sum(n * own for n, own in sizes)
            check_size(size, "a profile runs workgroups in the emulator, and the matrices take")
        generator = np.random.default_rng(_SEED)
        return (
            *(_random(generator, shape, numpy_type(name)) for shape, name in wanted),
            np.full(c_shape, 99, dtype=numpy_type(c_type)),
        )

    def compare(
        self, a: npt.NDArray[Any], b: npt.NDArray[Any], *others: npt.NDArray[Any]
    ) -> Comparison:
        """Where C, the last array, is furthest beyond its tolerance, or nearest to it.

        The product is that of the numbers that the chip reads: gfx90a takes denormal halves and
        bfloats for 0.
        """
        *operands, c = others
        left = self._read(a.swapaxes(-1, -2) if self.a_transposed else a)
        right = self._read(b.swapaxes(-1, -2) if self.b_transposed else b)
        values, tolerances = left @ right, np.zeros(c.shape)
        if self.sum_type != "int32":
            tolerances = np.abs(left) @ np.abs(right) * self.relative_tolerance
        numbers = [each.astype(np.float64) for each in operands]
        rounding = _ROUNDINGS.get(self.sum_type, 0)
        values, bounds = model(self.epilogue, values, tolerances, numbers, rounding)
        if self.sum_type != "int32":
            tolerances = bounds
        if self.types[2] != self.sum_type:
            tolerances = tolerances + (np.abs(values) + tolerances) * _ROUNDINGS[self.types[2]]
            tolerances = tolerances + 2.0**-24  # of the smallest halves
        return compared(c, values, tolerances)

    def _read(self, matrix: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        values = matrix.astype(np.float64)
        if architecture(self.arch).flushes_halves and matrix.dtype in _FLUSHED:
            values[np.abs(values) < ml_dtypes.finfo(matrix.dtype).smallest_normal] = 0
        return values


def _short(dtype: str) -> str:
    """The name of a type in those of instructions."""
    return next(t.short for t in ELEMENT_TYPES.values() if t.name == dtype)


def _random(
    generator: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any]
) -> npt.NDArray[Any]:
    if dtype.kind == "i":
        most = min(np.iinfo(dtype).max, 1 << 20)  # added to a sum, it does not overflow
        return generator.integers(-most - 1, most + 1, shape, dtype)
    return generator.standard_normal(shape).astype(dtype)

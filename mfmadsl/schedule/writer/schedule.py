"""`gemm_schedule`: a workload to a schedule."""

from __future__ import annotations

from types import NoneType

import tvm
from tvm import s_tir
from tvm.tirx import PrimFunc

from mfmadsl.argument import check_type
from mfmadsl.language import find
from mfmadsl.model import Architecture, Intrinsic, architecture
from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.writer.choice import candidates, choose_instruction, default_tiling
from mfmadsl.schedule.writer.emit import bytes_of
from mfmadsl.schedule.writer.epilogue import c_by_rows
from mfmadsl.schedule.writer.kernel import gemm_kernel
from mfmadsl.schedule.writer.match import match_gemm
from mfmadsl.schedule.writer.problem import Problem, constant
from mfmadsl.schedule.writer.tiling import Tiling, check_tiling, check_values


def gemm_schedule(
    workload: PrimFunc | tvm.IRModule,
    intrinsic: Intrinsic | str | None = None,
    arch: str = "gfx942",
    tiling: Tiling | None = None,
) -> s_tir.Schedule:
    """A kernel for a GEMM of any shape, ready for `mfmadsl.build`.

    `workload` is a PrimFunc, or a module of one, that multiplies two matrices and may go on with
    element-wise blocks. A, B and C lie by rows or by columns, alone or in batches; M, N and batch
    extents may be symbolic. The kernel has the workload's parameters.

    `intrinsic` is a matrix instruction or the name of one in the library, and `tiling` how the work
    is cut; without them `choice` takes both by its rules.

    Raises ScheduleError for what is no GEMM, cannot be fused, or breaks a limit of the chip.
    """
    chip = architecture(arch)
    problem = match_gemm(workload)
    chosen = _instruction(problem, intrinsic, tiling, chip)
    tiling = _tiling(problem, chosen, chip, tiling)
    return s_tir.Schedule(tvm.IRModule({"main": gemm_kernel(problem, tiling, chosen, chip)}))


def gemm_tiling(
    workload: PrimFunc | tvm.IRModule,
    intrinsic: Intrinsic | str | None = None,
    arch: str = "gfx942",
) -> Tiling:
    """The tiling that `gemm_schedule` takes if it is given none: a start for your own."""
    chip = architecture(arch)
    problem = match_gemm(workload)
    return _tiling(problem, _instruction(problem, intrinsic, None, chip), chip, None)


def _tiling(
    problem: Problem, intrinsic: Intrinsic, chip: Architecture, tiling: Tiling | None
) -> Tiling:
    size = bytes_of(problem.a.dtype)
    k = constant(problem.k.extent)
    if k is None:
        raise ScheduleError("workload: K is symbolic; only M, N and batch extents can be")
    if tiling is None:
        return default_tiling(problem, intrinsic, chip, size)
    check_values(tiling)
    check_tiling(tiling, intrinsic, chip, size, -(-k // tiling.k_step))
    return tiling


def _instruction(
    problem: Problem, intrinsic: Intrinsic | str | None, tiling: Tiling | None, chip: Architecture
) -> Intrinsic:
    """The instruction, with its A and B as the kernel gives them to it."""
    types = problem.a.dtype, problem.b.dtype
    if c_by_rows(problem):
        types = types[1], types[0]
    check_type("tiling", tiling, (Tiling, NoneType), "a Tiling")
    if intrinsic is None and tiling is not None:
        check_type("tiling.instruction", tiling.instruction, str, "an intrinsic's name")
        intrinsic = tiling.instruction
    if intrinsic is None:
        extents = [constant(axis.extent) for axis in (problem.m, problem.n)]
        rows = min((e for e in extents if e is not None), default=None)
        chosen = choose_instruction(*types, chip.name, rows)
    else:
        check_type("intrinsic", intrinsic, (Intrinsic, str), "an Intrinsic or its name")
        chosen = find(intrinsic) if isinstance(intrinsic, str) else intrinsic
        chosen = _turned(chosen, types, chip)
    if not chosen.in_llvm:
        raise ScheduleError(
            f"{chosen.name}: LLVM has no intrinsic `{chosen.call}`, as its entry says, and the "
            "kernel calls it: `mfma_schedule` takes its TensorIntrins, for a schedule without code"
        )
    _check_accumulator(problem, chosen)
    return chosen


def _turned(intrinsic: Intrinsic, types: tuple[str, str], chip: Architecture) -> Intrinsic:
    """The instruction, or the one with A and B exchanged."""
    if chip.name not in intrinsic.chips:
        raise ScheduleError(
            f"{chip.name} has no {intrinsic.name}: it is an instruction of "
            f"{', '.join(intrinsic.chips)}"
        )
    own = intrinsic.a.type.dtype, intrinsic.b.type.dtype
    if own == types:
        return intrinsic
    if own == types[::-1]:
        for other in candidates(*types, chip.name):
            if (other.m, other.n, other.k) == (intrinsic.m, intrinsic.n, intrinsic.k):
                return other
    raise ScheduleError(
        f"{intrinsic.name} multiplies {own[0]} by {own[1]}, but the workload has "
        f"{types[1]} and {types[0]}"
    )


def _check_accumulator(problem: Problem, intrinsic: Intrinsic) -> None:
    """Sums may be kept in a wider type than the workload says, not in a narrower one."""
    own, wanted = intrinsic.c.type.dtype, str(problem.product.dtype)
    wider = {"float16": "float32", "bfloat16": "float32"}
    if own not in (wanted, wider.get(wanted)):
        raise ScheduleError(
            f"workload: block `{problem.name}` sums in {wanted}, {intrinsic.name} in {own}"
        )

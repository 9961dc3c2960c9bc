"""The simple kernel of an instruction that `gemm_schedule` does not take, or that is asked for."""

from __future__ import annotations

from tvm.s_tir import Schedule

from mfmadsl.gemm.problem import Problem
from mfmadsl.model import Intrinsic, unscaled
from mfmadsl.schedule import ScheduleError, default_factors, load_intrinsic, matmul, mfma_schedule


def simple_schedule(problem: Problem, intrinsic: Intrinsic, scope: str) -> Schedule:
    """The product by `mfma_schedule`, with default factors.

    Raises ScheduleError for what that has not: transposed A, batches, an epilogue, a tiling.
    """
    beyond = {
        "transposed A": problem.a_transposed,
        "batches": problem.batch,
        "epilogue": problem.epilogue,
        "tiling": problem.tiling,
        "other type of C": problem.types[2] != problem.sum_type,
    }
    if asked := [name for name, value in beyond.items() if value]:
        raise ScheduleError(
            f"{intrinsic.name} takes the simple kernel, which has no {' and no '.join(asked)}"
        )
    if intrinsic.blocks > 1:
        raise ScheduleError(
            f"{intrinsic.name} multiplies {intrinsic.blocks} blocks at once, and the simple"
            " kernel has no batches that they could be of"
        )
    factors = default_factors(intrinsic, problem.m, problem.n, problem.k)
    tile = load_intrinsic(unscaled(intrinsic))
    suffix = scope.replace(".", "_").upper()
    load_b = f"LOAD_B_TRANSPOSED_{suffix}" if problem.b_transposed else f"LOAD_B_{suffix}"
    a_type, b_type, c_type = problem.types
    return mfma_schedule(
        matmul(
            problem.m, problem.n, problem.k, a_type, c_type, problem.b_transposed, b_type
        ).with_attr("global_symbol", problem.name),
        tile.K,
        tile.A_DTYPE,
        problem.b_transposed,
        factors.i,
        factors.j,
        factors.k,
        tile.index_map_A,
        tile.index_map_B_transposed if problem.b_transposed else tile.index_map_B,
        tile.index_map_C,
        getattr(tile, f"LOAD_A_{suffix}"),
        getattr(tile, load_b),
        tile.COMPUTE,
        tile.FILL,
        tile.STORE_GLOBAL,
        scope,
    )

"""`attention_schedule`: attention as one kernel over the generated TensorIntrins."""

from __future__ import annotations

import tvm
from tvm.s_tir import Schedule
from tvm.tirx import PrimFunc

from mfmadsl.model import DEFAULT_ARCH, Architecture, Tiling, architecture
from mfmadsl.passes.tir.annotation import PIPELINE
from mfmadsl.passes.tir.expression import bits_of
from mfmadsl.prim_func import prim_func
from mfmadsl.schedule.attention.chain import Chain
from mfmadsl.schedule.attention.described import attention_of
from mfmadsl.schedule.attention.online import Online
from mfmadsl.schedule.attention.score import score_of
from mfmadsl.schedule.attention.tiling import AttentionTiling, checked, default_tiling
from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.load import load_intrinsic
from mfmadsl.schedule.matrix_core.tile_loops import bind_copy, chunks_along_k
from mfmadsl.tvm_refusal import tvm_refusal


def attention_schedule(
    workload: PrimFunc | tvm.IRModule,
    arch: str = DEFAULT_ARCH,
    tiling: AttentionTiling | None = None,
) -> Schedule:
    """A schedule of attention in one kernel, ready for `mfmadsl.build`.
    """
    function = prim_func("workload", workload, ScheduleError)
    chip = architecture(arch)
    with tvm_refusal("workload", ScheduleError):
        found = attention_of(function)
        taken = default_tiling(found, chip) if tiling is None else tiling
        chain = checked(taken, found, chip)
        online = Online(found, taken, chain, chip, score_of(found.score)).function()
        sch = Schedule(tvm.IRModule({"main": online}))
        _scheduled(sch, chain, taken, chip, bits_of(found.dtype) // 8)
    return sch


def _scheduled(
    sch: Schedule, chain: Chain, tiling: AttentionTiling, chip: Architecture, size: int
) -> None:
    first = load_intrinsic(chain.intrinsic, chain.first_pack)
    second = load_intrinsic(chain.intrinsic, chain.second_pack)
    threads = tiling.waves * chip.wave_size
    of_waves = Tiling((0, 0), 0, (tiling.waves, 1), "", 1)
    k_tile = sch.get_sblock("K_tile")
    step, *loops = sch.get_loops(k_tile)
    counts = [int(sch.get(loop).extent) for loop in loops]
    bind_copy(sch, chunks_along_k(sch, *loops, counts, size, threads, False), of_waves, chip)
    v_tile = sch.get_sblock("V_tile")
    _turned(sch, v_tile, tiling, chip, size)
    for name, intrinsic, loops_of in (
        ("S_first_zero", first.FILL, 2), ("S_zero", first.FILL, 2),
        ("S_first", first.COMPUTE, 3), ("S", first.COMPUTE, 3), ("O", second.COMPUTE, 3),
        ("K_load", first.LOAD_A_SHARED, 2), ("V_load", second.LOAD_A_SHARED, 2),
    ):  # fmt: skip
        sch.tensorize(sch.get_loops(sch.get_sblock(name))[-loops_of], intrinsic)
    sch.annotate(step, PIPELINE, 1)


def _turned(sch, block, tiling, chip, size):
    from mfmadsl.schedule.matrix_core.stage import _turning
    *_, columns, rows = sch.get_loops(block)
    counts = [int(sch.get(loop).extent) for loop in (columns, rows)]
    threads = tiling.waves * chip.wave_size
    inner = _turning(sch, columns, rows, counts, size, (4, 8), threads, 1, True)
    bind_copy(sch, inner, Tiling((0, 0), 0, (tiling.waves, 1), "", 1), chip)

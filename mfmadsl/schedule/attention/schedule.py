"""`attention_schedule`: attention as one kernel over the generated TensorIntrins."""

from __future__ import annotations

from collections.abc import Sequence

import tvm
from tvm.s_tir import Schedule
from tvm.tirx import PrimFunc

from mfmadsl.model import DEFAULT_ARCH, Tiling, architecture
from mfmadsl.passes.tir.annotation import PIPELINE
from mfmadsl.passes.tir.expression import bits_of
from mfmadsl.prim_func import prim_func
from mfmadsl.schedule.attention.online import online
from mfmadsl.schedule.attention.reader import attention_of
from mfmadsl.schedule.attention.score import score_of
from mfmadsl.schedule.attention.shared_keys import with_shared_keys
from mfmadsl.schedule.attention.tiling import AttentionTiling, checked, default_tiling
from mfmadsl.schedule.attention.wave import Cut
from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.load import load_intrinsic
from mfmadsl.schedule.matrix_core.stage import turned_pieces
from mfmadsl.schedule.matrix_core.tile_loops import bind_copy, chunks_along_k
from mfmadsl.schedule.product.index_type import in_32_bits
from mfmadsl.tvm_refusal import tvm_refusal


def attention_schedule(
    workload: PrimFunc | tvm.IRModule,
    arch: str = DEFAULT_ARCH,
    tiling: AttentionTiling | None = None,
) -> Schedule:
    """A schedule of attention in one kernel, ready for `mfmadsl.build`."""
    function = prim_func("workload", workload, ScheduleError)
    chip = architecture(arch)
    with tvm_refusal("workload", ScheduleError):
        found = with_shared_keys(attention_of(in_32_bits(function)))
        taken = default_tiling(found, chip) if tiling is None else tiling
        cut = Cut(found, taken, checked(taken, found, chip), chip, score_of(found))
        written = online(cut)
        sch = Schedule(tvm.IRModule({"main": written.function}))
        _tensorize(sch, cut, written.suffixes)
        for suffix in written.suffixes:
            _copy(sch, cut, suffix)
    return sch


def _tensorize(sch: Schedule, cut: Cut, suffixes: Sequence[str]) -> None:
    """Have instructions do the products, and the reads of their operands from the LDS."""
    first = load_intrinsic(cut.chain.intrinsic, cut.chain.first_pack)
    second = load_intrinsic(cut.chain.intrinsic, cut.chain.second_pack)
    blocks = [("S_first_zero", first.FILL, 2), ("S_first", first.COMPUTE, 3)]
    for suffix in suffixes:
        blocks += [
            (f"{name}{suffix}", intrinsic, loops)
            for name, intrinsic, loops in (
                ("S_zero", first.FILL, 2), ("S", first.COMPUTE, 3), ("O", second.COMPUTE, 3),
                ("K_load", first.LOAD_A_SHARED, 2), ("V_load", second.LOAD_A_SHARED, 2),
            )
        ]  # fmt: skip
    for name, intrinsic, loops in blocks:
        sch.tensorize(sch.get_loops(sch.get_sblock(name))[-loops], intrinsic)


def _copy(sch: Schedule, cut: Cut, suffix: str) -> None:
    """Deal the copies of a loop over keys out to the threads of a workgroup."""
    threads, size = cut.tiling.waves * cut.chip.wave_size, bits_of(cut.found.dtype) // 8
    waves = Tiling((0, 0), 0, (cut.tiling.waves, 1), "", 1)
    names = [f"{read.name}_copy{suffix}" for read in cut.score.reads if read.of_keys]
    for name in (f"K_copy{suffix}", f"V_copy{suffix}", *names):
        step, rows, columns = sch.get_loops(sch.get_sblock(name))
        counts = [int(sch.get(loop).extent) for loop in (rows, columns)]
        if name.startswith("V_copy"):
            units = turned_pieces(sch, rows, columns, counts, size, (4, 8), threads, 1, True)
        else:
            units = chunks_along_k(sch, rows, columns, counts, size, threads, False)
        bind_copy(sch, units, waves, cut.chip)
    sch.annotate(step, PIPELINE, 1)

"""Weighted sums as one kernel over the generated TensorIntrins."""

from __future__ import annotations

import tvm
from tvm.s_tir import Schedule

from mfmadsl.model import Architecture, AttentionTiling
from mfmadsl.passes.tir.expression import bits_of
from mfmadsl.schedule.flash_attention.copies import deal_reads, deal_rows, deal_values, pipeline_of
from mfmadsl.schedule.flash_attention.weighted_sums.cut import SumsCut, cut_sums
from mfmadsl.schedule.flash_attention.weighted_sums.described import WeightedSums
from mfmadsl.schedule.flash_attention.weighted_sums.kernel import written_out
from mfmadsl.schedule.flash_attention.weighted_sums.tiling import (
    checked_sums,
    default_sums_tiling,
)
from mfmadsl.schedule.load import load_intrinsic


def weighted_sums_schedule(
    found: WeightedSums, chip: Architecture, tiling: AttentionTiling | None
) -> Schedule:
    """A schedule of weighted sums as one kernel.

    Raises ScheduleError for types that the chip has no instruction for, and for a tiling that
    breaks a limit of the chip.
    """
    taken = default_sums_tiling(found, chip) if tiling is None else tiling
    cut = cut_sums(found, taken, checked_sums(taken, found, chip), chip)
    written = written_out(cut)
    sch = Schedule(tvm.IRModule({"main": written.function}))
    _tensorize(sch, cut, written.suffixes)
    for suffix in written.suffixes:
        _copy(sch, cut, suffix)
    return sch


def weighted_sums_tiling(found: WeightedSums, chip: Architecture) -> AttentionTiling:
    """The tiling that is taken if none is given. Raises ScheduleError as the schedule does."""
    tiling = default_sums_tiling(found, chip)
    checked_sums(tiling, found, chip)
    return tiling


def _tensorize(sch: Schedule, cut: SumsCut, suffixes: tuple[str, ...]) -> None:
    """Have instructions do the products, and the reads of their operands from the LDS."""
    chain = cut.whole.chain
    first = load_intrinsic(chain.intrinsic, chain.first_pack)
    second = load_intrinsic(chain.intrinsic, chain.second_pack)
    blocks = []
    for n in range(len(cut.products)):
        blocks += [(f"S_first_zero{n}", first.FILL, 2), (f"S_first{n}", first.COMPUTE, 3)]
        for suffix in suffixes:
            blocks += [
                (f"S_zero{n}{suffix}", first.FILL, 2), (f"S{n}{suffix}", first.COMPUTE, 3),
                (f"K_load{n}{suffix}", first.LOAD_A_SHARED, 2),
            ]  # fmt: skip
    turned = second.LOAD_A_TRANSPOSED_SHARED
    for n, each in enumerate(cut.sums):
        for suffix in suffixes:
            blocks += [
                (f"O{n}{suffix}", second.COMPUTE, 3),
                (f"V_load{n}{suffix}", turned if each.turns_values else second.LOAD_A_SHARED, 2),
            ]
    for name, intrinsic, count in blocks:
        sch.tensorize(sch.get_loops(sch.get_sblock(name))[-count], intrinsic)


def _copy(sch: Schedule, cut: SumsCut, suffix: str) -> None:
    """Deal the copies of a loop over keys out to the threads of a workgroup."""
    size = bits_of(cut.found.dtype) // 8
    for n in range(len(cut.products)):
        deal_rows(sch, cut.whole, f"K{n}_copy{suffix}", size)
    deal_reads(sch, cut.whole, suffix)
    for n, each in enumerate(cut.sums):
        step = deal_values(sch, each, f"V{n}_copy{suffix}", size)
    keys = [f"K{n}_tile{suffix}" for n in range(len(cut.products))]
    for annotation, what in pipeline_of(cut.whole.tiling, keys).items():
        sch.annotate(step, annotation, what)

"""`attention_schedule`: attention as one kernel over the generated TensorIntrins."""

from __future__ import annotations

from collections.abc import Sequence

import tvm
from tvm.s_tir import Schedule
from tvm.tirx import PrimFunc

from mfmadsl.model import DEFAULT_ARCH, AttentionTiling, architecture
from mfmadsl.passes.tir.expression import bits_of
from mfmadsl.prim_func import prim_func
from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.flash_attention.copies import deal_reads, deal_rows, deal_values, pipeline_of
from mfmadsl.schedule.flash_attention.described import Attention
from mfmadsl.schedule.flash_attention.offsets import with_offsets
from mfmadsl.schedule.flash_attention.online import online
from mfmadsl.schedule.flash_attention.reader import attention_of
from mfmadsl.schedule.flash_attention.score import score_of
from mfmadsl.schedule.flash_attention.shared_keys import with_shared_keys
from mfmadsl.schedule.flash_attention.tiling import checked, default_tiling
from mfmadsl.schedule.flash_attention.wave import Cut
from mfmadsl.schedule.flash_attention.weighted_sums.reader import is_weighted, weighted_sums_of
from mfmadsl.schedule.flash_attention.weighted_sums.schedule import (
    weighted_sums_schedule,
    weighted_sums_tiling,
)
from mfmadsl.schedule.load import load_intrinsic
from mfmadsl.schedule.product.index_type import in_32_bits
from mfmadsl.tvm_refusal import tvm_refusal


def attention_schedule(
    workload: PrimFunc | tvm.IRModule,
    arch: str = DEFAULT_ARCH,
    tiling: AttentionTiling | None = None,
) -> Schedule:
    """A schedule of attention as one kernel, ready for `mfmadsl.build`.

    `workload` is a PrimFunc, or a module of one, such as `attention` makes: a product of queries
    and keys, a softmax of what element-wise blocks make of it, and the product of that with values,
    in any layout and with any batch axes. The exponentials are rounded to the type of the values.
    Lengths may be symbols. A query without a key, whose exponentials add up to 0, has 0 for what is
    divided by that.

    It may also have no softmax: one or several products, weights that element-wise blocks make of
    them, rounded to float16 or bfloat16, and the products of these with values, such as
    `attention_backward` makes.

    Keys that no query of a workgroup sees, as far as `j <= i + n` and `j > i - n` tell, are left
    out.

    The function is written anew, tile by tile, and then scheduled by TVM's primitives: the trace
    does not replay on the workload. With `tiling.splits` there is a second kernel.

    Raises ScheduleError for what is no attention, for types that the chip has no instruction for,
    and for a tiling that breaks a limit of the chip.
    """
    chip = architecture(arch)
    with tvm_refusal("workload", ScheduleError):
        function = in_32_bits(prim_func("workload", workload, ScheduleError))
        if is_weighted(function):
            return weighted_sums_schedule(weighted_sums_of(function), chip, tiling)
        found = _understood(function)
        taken = default_tiling(found, chip) if tiling is None else tiling
        cut = Cut(found, taken, checked(taken, found, chip), chip, score_of(found))
        written = online(cut)
        sch = Schedule(tvm.IRModule({"main": written.function}))
        _tensorize(sch, cut, written.suffixes)
        for suffix in written.suffixes:
            _copy(sch, cut, suffix)
    return sch


def attention_tiling(
    workload: PrimFunc | tvm.IRModule, arch: str = DEFAULT_ARCH
) -> AttentionTiling:
    """The tiling that `attention_schedule` takes if it is given none: a start for your own.

    Raises ScheduleError as that does.
    """
    chip = architecture(arch)
    with tvm_refusal("workload", ScheduleError):
        function = in_32_bits(prim_func("workload", workload, ScheduleError))
        if is_weighted(function):
            return weighted_sums_tiling(weighted_sums_of(function), chip)
        found = _understood(function)
        tiling = default_tiling(found, chip)
        checked(tiling, found, chip)
    return tiling


def _understood(function: PrimFunc) -> Attention:
    return with_offsets(with_shared_keys(attention_of(function)))


def _tensorize(sch: Schedule, cut: Cut, suffixes: Sequence[str]) -> None:
    """Have instructions do the products, and the reads of their operands from the LDS."""
    first = load_intrinsic(cut.chain.intrinsic, cut.chain.first_pack)
    second = load_intrinsic(cut.chain.intrinsic, cut.chain.second_pack)
    turned = second.LOAD_A_TRANSPOSED_SHARED if cut.turns_values else second.LOAD_A_SHARED
    blocks = [("S_first_zero", first.FILL, 2), ("S_first", first.COMPUTE, 3)]
    for suffix in suffixes:
        blocks += [
            (f"{name}{suffix}", intrinsic, loops)
            for name, intrinsic, loops in (
                ("S_zero", first.FILL, 2), ("S", first.COMPUTE, 3), ("O", second.COMPUTE, 3),
                ("K_load", first.LOAD_A_SHARED, 2), ("V_load", turned, 2),
            )
        ]  # fmt: skip
    for name, intrinsic, loops in blocks:
        sch.tensorize(sch.get_loops(sch.get_sblock(name))[-loops], intrinsic)


def _copy(sch: Schedule, cut: Cut, suffix: str) -> None:
    """Deal the copies of a loop over keys out to the threads of a workgroup."""
    size = bits_of(cut.found.dtype) // 8
    deal_rows(sch, cut, f"K_copy{suffix}", size)
    deal_reads(sch, cut, suffix)
    step = deal_values(sch, cut, f"V_copy{suffix}", size)
    for annotation, what in pipeline_of(cut.tiling, [f"K_tile{suffix}"]).items():
        sch.annotate(step, annotation, what)

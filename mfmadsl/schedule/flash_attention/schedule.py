"""`attention_schedule`: attention as one kernel over the generated TensorIntrins."""

from __future__ import annotations

from collections.abc import Sequence

import tvm
from tvm.s_tir import Schedule
from tvm.tirx import PrimFunc

from mfmadsl.model import DEFAULT_ARCH, AttentionTiling, architecture
from mfmadsl.passes.tir.annotation import EDGES, PIPELINE
from mfmadsl.passes.tir.expression import bits_of
from mfmadsl.prim_func import prim_func
from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.flash_attention.described import Attention
from mfmadsl.schedule.flash_attention.offsets import with_offsets
from mfmadsl.schedule.flash_attention.online import online
from mfmadsl.schedule.flash_attention.reader import attention_of
from mfmadsl.schedule.flash_attention.score import score_of
from mfmadsl.schedule.flash_attention.shared_keys import with_shared_keys
from mfmadsl.schedule.flash_attention.tiling import checked, default_tiling
from mfmadsl.schedule.flash_attention.wave import Cut
from mfmadsl.schedule.load import load_intrinsic
from mfmadsl.schedule.matrix_core.stage import GROUP, PIECE, turned_pieces
from mfmadsl.schedule.matrix_core.tile_loops import bind_copy, chunks_along_k
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
    divided by that. Keys that no query of a workgroup sees, as far as `j <= i + n` and
    `j > i - n` tell, are left out.

    The function is written anew, tile by tile, and then scheduled by TVM's primitives: the trace
    does not replay on the workload. With `tiling.splits` there is a second kernel.

    Raises ScheduleError for what is no attention, for types that the chip has no instruction for,
    and for a tiling that breaks a limit of the chip.
    """
    chip = architecture(arch)
    with tvm_refusal("workload", ScheduleError):
        found = _understood(workload)
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
        found = _understood(workload)
        tiling = default_tiling(found, chip)
        checked(tiling, found, chip)
    return tiling


def _understood(workload: PrimFunc | tvm.IRModule) -> Attention:
    function = prim_func("workload", workload, ScheduleError)
    return with_offsets(with_shared_keys(attention_of(in_32_bits(function))))


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
    waves, size = cut.tiling.waves, bits_of(cut.found.dtype) // 8
    threads, straight = waves * cut.chip.wave_size, cut.tiling.stages > 1
    in_rows = (
        {"K": size}
        | ({"V": size} if cut.turns_values else {})
        | {each.name: max(1, bits_of(each.dtype) // 8) for each in cut.score.reads if each.of_keys}
    )
    for name, element in in_rows.items():
        step, rows, columns = sch.get_loops(sch.get_sblock(f"{name}_copy{suffix}"))
        counts = [int(sch.get(loop).extent) for loop in (rows, columns)]
        units = chunks_along_k(sch, rows, columns, counts, element, threads, straight)
        bind_copy(sch, units, waves, cut.chip)
    if not cut.turns_values:
        step, columns, rows = sch.get_loops(sch.get_sblock(f"V_copy{suffix}"))
        counts = [int(sch.get(loop).extent) for loop in (columns, rows)]
        piece = PIECE // size, GROUP // size
        units = turned_pieces(sch, columns, rows, counts, size, piece, threads, 1, True)
        bind_copy(sch, units, waves, cut.chip)
    for annotation, what in pipeline_of(cut.tiling, suffix).items():
        sch.annotate(step, annotation, what)


def pipeline_of(tiling: AttentionTiling, suffix: str) -> dict[str, int | str]:
    """What the passes are told of a loop over keys. Nobody looks at scores of keys that are not
    there: so loads straight into the LDS need not ask for each."""
    edges = {EDGES: f"K_tile{suffix}"} if tiling.stages > 1 else {}
    return {PIPELINE: tiling.stages, **edges}

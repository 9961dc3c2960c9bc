"""`gemm_schedule`: a product of matrices as a schedule over the generated TensorIntrins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import tvm
from tvm import s_tir
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import SBlockRV
from tvm.tirx import PrimFunc

from mfmadsl.argument import check_extent, check_flag, check_type
from mfmadsl.error import ArgumentError
from mfmadsl.model import DEFAULT_ARCH, Architecture, Intrinsic, Tiling, architecture, unscaled
from mfmadsl.prim_func import prim_func
from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.matrix_core.builder import Builder
from mfmadsl.schedule.matrix_core.cases import (
    annotate_case,
    cases_for,
    with_case_blocks,
)
from mfmadsl.schedule.matrix_core.group_output import with_group_output
from mfmadsl.schedule.matrix_core.instruction import counting_up
from mfmadsl.schedule.matrix_core.result_copies import with_result_copies
from mfmadsl.schedule.matrix_core.row_statistics import leaves_room, with_row_statistics
from mfmadsl.schedule.matrix_core.selection import ranked, selected, tuned
from mfmadsl.schedule.matrix_core.special import (
    special_cases,
    special_name,
    special_schedule,
    special_tilings,
)
from mfmadsl.schedule.matrix_core.tiling.cases import Case
from mfmadsl.schedule.matrix_core.tiling.tuned import Key, key_of
from mfmadsl.schedule.product.cases import CaseBlocks
from mfmadsl.schedule.product.column_groups import GroupOutput
from mfmadsl.schedule.product.dataflow import check_bound, check_consumers, unrelated
from mfmadsl.schedule.product.described import described_product
from mfmadsl.schedule.product.group_output import group_output
from mfmadsl.schedule.product.nest import function_of, nest_of
from mfmadsl.schedule.product.normalise import Product, normalise
from mfmadsl.schedule.product.prepare import prepared
from mfmadsl.schedule.product.result_copies import result_copies
from mfmadsl.schedule.product.row_statistics import RowStatistics, row_statistics
from mfmadsl.schedule.product.sum_of_products import product_nest
from mfmadsl.schedule.product.understood import Understood, understood
from mfmadsl.tvm_refusal import tvm_refusal

MOST_COPIES = 64
"""Of a product in one function: each is compiled."""


def gemm_schedule(
    workload: PrimFunc | tvm.IRModule,
    intrinsic: Intrinsic | str | None = None,
    arch: str = DEFAULT_ARCH,
    tiling: Tiling | Sequence[Case] | None = None,
) -> Schedule:
    """A schedule of a GEMM of any shape, made by TVM's primitives, ready for `mfmadsl.build`.

    `workload` is a PrimFunc, or a module of one, that multiplies two matrices, with element-wise
    blocks before and after. A, B and C lie by rows or by columns, alone or in batches; extents may
    be symbolic. The kernel has the workload's parameters and its name. The schedule's trace replays
    on `prepared(workload)`, which is the workload itself in most cases.

    `intrinsic` is a matrix instruction or the name of one in the library, and `tiling` how the work
    is cut; without them `choice` takes both by its rules.

    Where M, N or K alone is symbolic, several kernels are made, of which a launch takes the one for
    its extent. `tiling` may say which, as `gemm_cases` does; one Tiling makes one kernel. The trace
    of several replays on `with_cases(workload, how many)`.

    The workloads of `scaled_matmul` and `sparse_matmul` take scaled and sparse instructions; that
    of `block_scaled_matmul` takes those of its elements, whose sums are scaled in registers, and
    that of `grouped_matmul` has a matrix for each group of rows. `mx_output` adds results of groups
    of columns. Sums of up to four rows that a factor is made of, as in an RMSNorm, are added up by
    each workgroup ahead of its main loop. Parts of the result that are copied to places in other
    arguments, as into a key-value cache, go there from registers. The traces of the last four do
    not replay.

    Raises ScheduleError for what is no GEMM, cannot be fused, or breaks a limit of the chip.
    """
    function = prim_func("workload", workload, ScheduleError)
    if (copied := result_copies(function)) is not None:
        plain = gemm_schedule(copied.workload, intrinsic, arch, tiling)
        whole = with_result_copies(function_of(plain), copied)
        return s_tir.Schedule(tvm.IRModule({"main": whole}))
    if (output := _output_of(function, intrinsic, architecture(arch))) is not None:
        plain = gemm_schedule(output.workload, intrinsic, arch, tiling)
        whole = with_group_output(function_of(plain), output)
        return s_tir.Schedule(tvm.IRModule({"main": whole}))
    if (statistics := row_statistics(function)) is not None:
        own = statistics.workload
        if tiling is None:
            product = understood(own, architecture(arch))
            tiling = _tiling_of(product, statistics, intrinsic, architecture(arch))
        plain = gemm_schedule(own, intrinsic, arch, tiling)
        return with_row_statistics(function_of(plain), statistics)
    product = understood(function, architecture(arch))
    if not isinstance(product, PrimFunc):
        return special_schedule(product, intrinsic, tiling, architecture(arch))
    function = prepared(product)
    nest = product_nest(function)
    chip = architecture(arch)
    with tvm_refusal("workload", ScheduleError):
        cases = cases_for(function, nest, intrinsic, tiling, chip)
        copies, blocks = function, [CaseBlocks("", nest.name)]
        if len(cases) > 1:
            copies, blocks = with_case_blocks(function, nest, len(cases))
    sch = s_tir.Schedule(tvm.IRModule({"main": copies}))
    for case, names in zip(cases, blocks, strict=True):
        block = annotate_case(sch, case, names)
        for operand in unrelated(function_of(sch, block), nest_of(sch, block)):
            sch.compute_inline(sch.get_sblock(operand.name))
        schedule_gemm(sch, block, intrinsic, arch, case.tiling)
    # What was left is said by its reason.
    check_consumers(function, nest.block.writes[0].source)
    check_bound(function_of(sch))
    return sch


def schedule_gemm(
    sch: Schedule,
    block: SBlockRV,
    intrinsic: Intrinsic | str | None = None,
    arch: str = DEFAULT_ARCH,
    tiling: Tiling | None = None,
) -> None:
    """Schedule one product among the blocks of a schedule of your own, with what follows it.

    The arguments are those of `gemm_schedule`, and so are the errors. Blocks before the product
    that it alone reads are computed on the way into the LDS. Element-wise blocks after it become
    part of it, as far as they end in one result; other blocks are yours to schedule.

    It makes one kernel. Of a function of `with_cases` it schedules the copy that the block is in.
    """
    check_type("sch", sch, Schedule, "a Schedule")
    check_type("block", block, SBlockRV, "a block of the schedule, as `sch.get_sblock` gives it")
    chip = architecture(arch)
    described = described_product(function_of(sch))
    if described is not None and described.nest.block.same_as(sch.get(block)):
        raise described.nest.refusal(
            f"is a product of {described.form.kind} operands: `gemm_schedule` schedules it"
        )
    with tvm_refusal("workload", ScheduleError):
        product = normalise(sch, block)
        chosen, taken = selected(product, intrinsic, tiling, chip)
        Builder(sch, product.plain, counting_up(unscaled(chosen)), taken, chip).build()


def with_cases(workload: PrimFunc | tvm.IRModule, count: int) -> PrimFunc:
    """`prepared(workload)` with so many copies of its product, each to be scheduled for some
    extents: what the trace of a `gemm_schedule` with several kernels replays on.

    Copy n of block `C`, from 1, is `C_n`, in a block `C_case_n`; the last one keeps its names.
    Raises ScheduleError for a product of which not one of M, N and K is symbolic, and ArgumentError
    for more copies than `MOST_COPIES`.
    """
    if check_extent("count", count) > MOST_COPIES:
        raise ArgumentError(f"count: is at most {MOST_COPIES}, not {count}")
    function = prepared(prim_func("workload", workload, ScheduleError))
    return with_case_blocks(function, product_nest(function), count)[0]


def gemm_tiling(
    workload: PrimFunc | tvm.IRModule,
    intrinsic: Intrinsic | str | None = None,
    arch: str = DEFAULT_ARCH,
) -> Tiling:
    """The tiling that `gemm_schedule` takes if it is given none: a start for your own.

    It is the one that `mfmadsl tune` found the fastest, where MFMADSL_TUNED names its folder and
    the product is one of those tuned; else that which should be the fastest by the formula.
    """
    function, statistics = _parted(workload, intrinsic, architecture(arch))
    chip = architecture(arch)
    return _tiling_of(understood(function, chip), statistics, intrinsic, chip)


def _tiling_of(
    product: Understood, statistics: RowStatistics | None, intrinsic: Intrinsic | str | None,
    chip: Architecture,
) -> Tiling:  # fmt: skip
    if not isinstance(product, PrimFunc):
        return special_tilings(product, intrinsic, chip)[0]
    rows = 0 if statistics is None else statistics.rows
    normalised = replace(_normalised(product), statistics_rows=rows)
    chosen = selected(normalised, intrinsic, None, chip)[1]
    if statistics is None or leaves_room(chosen, statistics, chip):
        return chosen
    others = ranked(normalised, intrinsic, chip)
    if not (found := [each for each in others if leaves_room(each, statistics, chip)]):
        raise statistics.nests[0].refusal(
            "is a sum for which no tiling leaves room in the LDS: give it a function of its own"
        )
    return found[0]


def gemm_cases(
    workload: PrimFunc | tvm.IRModule,
    intrinsic: Intrinsic | str | None = None,
    arch: str = DEFAULT_ARCH,
    *,
    one_launch: bool = True,
) -> list[Case]:
    """The tilings that `gemm_schedule` takes if it is given none, and up to which extent each is.

    Where M, N or K alone is symbolic there are up to eight, and more where tuned tilings are among
    them; else it is that of `gemm_tiling`, for all. Those of a split K in `one_launch` are for who
    gives it memory with zeros in it, as `Kernel.launches` does, and TVM does not.
    """
    check_flag("one_launch", one_launch)
    function, statistics = _parted(workload, intrinsic, architecture(arch))
    chip = architecture(arch)
    product = understood(function, chip)
    if not isinstance(product, PrimFunc):
        return special_cases(product, intrinsic, chip)
    if statistics is not None:
        return [Case(_tiling_of(product, statistics, intrinsic, chip))]
    function = prepared(product)
    return cases_for(function, product_nest(function), intrinsic, None, chip, one_launch)


def is_tuned(
    workload: PrimFunc | tvm.IRModule,
    intrinsic: Intrinsic | str | None = None,
    arch: str = DEFAULT_ARCH,
) -> bool:
    """Whether the tiling of `gemm_tiling` is one that `mfmadsl tune` found."""
    product = understood_workload(workload, arch, intrinsic)
    if not isinstance(product, PrimFunc):
        return False
    return tuned(_normalised(product), intrinsic, architecture(arch)) is not None


def gemm_tilings(
    workload: PrimFunc | tvm.IRModule,
    intrinsic: Intrinsic | str | None = None,
    arch: str = DEFAULT_ARCH,
) -> list[Tiling]:
    """The legal tilings that are worth a look, that which should be the fastest first."""
    product = understood_workload(workload, arch, intrinsic)
    if not isinstance(product, PrimFunc):
        return special_tilings(product, intrinsic, architecture(arch))
    return ranked(_normalised(product), intrinsic, architecture(arch))


def tuning_key(workload: PrimFunc | tvm.IRModule, arch: str = DEFAULT_ARCH) -> Key:
    """What a tuned tiling is kept by: the chip, and all of a product that its kernel depends on."""
    product = understood_workload(workload, arch)
    if not isinstance(product, PrimFunc):
        raise ScheduleError(f"workload: no tilings of {special_name(product)} products are kept")
    key = key_of(_normalised(product), architecture(arch))
    if key is None:
        raise ScheduleError("workload: N or K is a symbol: tune it for a number that it will be")
    return key


def understood_workload(
    workload: PrimFunc | tvm.IRModule, arch: str, intrinsic: Intrinsic | str | None = None
) -> Understood:
    """The product of a workload, without results of groups of columns and statistics of rows.

    Raises ScheduleError as `understood` does.
    """
    chip = architecture(arch)
    return understood(_parted(workload, intrinsic, chip)[0], chip)


def _output_of(
    function: PrimFunc, intrinsic: Intrinsic | str | None, chip: Architecture
) -> GroupOutput | None:
    """The results of groups of columns that a function has.

    Groups of what pairs of columns make have twice as many: where no wave stores these together,
    the pairs are made by a kernel before that compares.
    """
    output = group_output(function)
    if output is None or output.pairs is None:
        return output
    try:
        gemm_tiling(output.workload, intrinsic, chip.name)
    except ScheduleError:
        return group_output(function, of_pairs=False)
    return output


def _parted(
    workload: PrimFunc | tvm.IRModule, intrinsic: Intrinsic | str | None, chip: Architecture
) -> tuple[PrimFunc, RowStatistics | None]:
    """The function of a workload without these and copies of its result, and the statistics."""
    function = prim_func("workload", workload, ScheduleError)
    if (copies := result_copies(function)) is not None:
        function = copies.workload
    if (output := _output_of(function, intrinsic, chip)) is not None:
        function = output.workload
    statistics = row_statistics(function)
    return function if statistics is None else statistics.workload, statistics


def _normalised(function: PrimFunc) -> Product:
    function = prepared(function)
    sch = s_tir.Schedule(function)
    return normalise(sch, sch.get_sblock(product_nest(function).name))

"""A rule for dlight: products of matrices, with what is fused behind them, are ours."""

from __future__ import annotations

import tvm
from tvm.s_tir import Schedule
from tvm.s_tir.dlight.base import ScheduleRule
from tvm.target import Target
from tvm.tirx import PrimFunc

from mfmadsl.argument import check_type
from mfmadsl.error import MfmadslError
from mfmadsl.passes.kernel.cases import EXTENT, case_in
from mfmadsl.passes.tir.block import statements
from mfmadsl.passes.tir.expression import bits_of
from mfmadsl.relax.kv_cache.replace import with_cache_kernels
from mfmadsl.relax.report import Report, Scheduled, ranges, taken
from mfmadsl.schedule import ScheduleError, gemm_cases, gemm_schedule
from mfmadsl.schedule.flash_attention.reader import is_attention
from mfmadsl.schedule.flash_attention.schedule import attention_schedule, attention_tiling
from mfmadsl.schedule.matrix_core.gemm import understood_workload
from mfmadsl.schedule.product.nest import is_number, nests
from mfmadsl.schedule.product.sum_of_products import product_nest, sum_of_products


class MatrixCore(ScheduleRule):
    """Takes what `mfmadsl.gemm_schedule` takes, for targets of ROCm with matrix cores.

    To stand before other rules in `dlight.ApplyDefaultSchedule`; build what it has scheduled with
    `tir_pipeline="mfmadsl"`. `report` tells of the functions that it has been asked about, which
    are called by their blocks where they have no name of their own.
    """

    def __init__(self) -> None:
        self._seen: list[Scheduled] = []

    @property
    def report(self) -> Report:
        """What became of the functions until now; those that are not ours have no rule yet."""
        return Report(tuple(self._seen))

    def with_cache(self, module: tvm.IRModule, target: Target) -> tvm.IRModule:
        """The module with the attentions of TVM's paged KV cache exchanged for ours, before dlight,
        which asks no rule about them.

        Raises ArgumentTypeError for what is no module, or no target of TVM.
        """
        check_type("module", module, tvm.IRModule, "an IRModule")
        check_type("target", target, Target, "a tvm.target.Target")
        changed, lines = with_cache_kernels(module, target)
        self._seen += lines
        return changed

    def apply(self, func: PrimFunc, target: Target, tunable: bool) -> Schedule | None:
        """The schedule of a product of matrices, None for anything else."""
        schedule, scheduled = scheduled_product(name_of(func), func, target)
        self._seen.append(scheduled)
        return schedule


def name_of(function: PrimFunc) -> str:
    """What a function is called, or, where it has no name, its blocks."""
    if "global_symbol" in (function.attrs or {}):
        return str(function.attrs["global_symbol"])
    return " ".join(nest.name for nest in nests(function))


def scheduled_product(
    name: str, function: PrimFunc, target: Target
) -> tuple[Schedule | None, Scheduled]:
    """The schedule of a product of matrices, or of an attention, and the line of the report; None
    if it is neither."""
    if target.kind.name != "rocm":
        return None, Scheduled(name, "", reason=f"it is for {target.kind.name}, and not for rocm")
    arch = str(target.attrs.get("mcpu", ""))
    try:
        if is_attention(function):
            tiling = attention_tiling(function, arch)
            schedule = attention_schedule(function, arch, tiling)
            return schedule, taken(name, [("", tiling)])
        product = understood_workload(function, arch)
        if isinstance(product, PrimFunc):
            _check_matrices(product)
        _check_elements(function)
        cases = gemm_cases(function, arch=arch, one_launch=False)  # TVM gives no zeros
        schedule = gemm_schedule(function, arch=arch, tiling=cases)
    except MfmadslError as error:
        return None, Scheduled(name, "", reason=str(error))
    which = ranges(_extent_of_cases(schedule), [case.up_to for case in cases])
    tilings = [case.tiling for case in cases]
    return schedule, taken(name, list(zip(which, tilings, strict=True)))


def _extent_of_cases(schedule: Schedule) -> str:
    """What tells the cases of a scheduled function apart, empty if it has none."""
    extents = (
        block.annotations[EXTENT]
        for block in map(case_in, statements(schedule.mod["main"]))
        if block is not None
    )
    return str(next(extents, ""))


def _check_elements(function: PrimFunc) -> None:
    """Raise ScheduleError for parameters whose elements take no whole bytes: Relax's callers would
    give such arrays, and kernels take their bytes."""
    for parameter in function.params:
        if bits_of(getattr(parameter, "dtype", "int8")) < 8:
            raise ScheduleError(
                f"parameter `{parameter.name}` holds {parameter.dtype}: give its bytes, as"
                " `scaled_matmul` takes them"
            )


def _check_matrices(function: PrimFunc) -> None:
    """Raise ScheduleError for dot products one by one, of which no tile of C can be made."""
    product = sum_of_products(product_nest(function))
    sides = (*product.axes("i"), *product.axes("j"))
    if all(is_number(axis.dom.extent, 1) for axis in sides):
        raise ScheduleError(
            f"block `{product.nest.name}` computes dot products, with no rows or columns that"
            " share factors"
        )

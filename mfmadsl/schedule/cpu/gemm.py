"""`cpu_gemm_schedule`: a product of matrices on a CPU, as a schedule over micro-kernels."""

from __future__ import annotations

import tvm
from tvm import s_tir
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import SBlockRV
from tvm.tirx import PrimFunc

from mfmadsl.argument import check_type
from mfmadsl.language import microkernels
from mfmadsl.model import Cpu, Microkernel
from mfmadsl.prim_func import prim_func
from mfmadsl.schedule.cpu.builder import CpuBuilder
from mfmadsl.schedule.cpu.choice import asked_types, chosen, types_of
from mfmadsl.schedule.cpu.signed import schedule_column_sums, without_sign
from mfmadsl.schedule.cpu.tiling import CpuTiling
from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.product.casts import with_bytes_multiplied
from mfmadsl.schedule.product.dataflow import check_consumers, unrelated
from mfmadsl.schedule.product.normalise import normalise
from mfmadsl.schedule.product.prepare import prepared
from mfmadsl.schedule.product.sum_of_products import product_nest, sum_of_products
from mfmadsl.tvm_refusal import tvm_refusal

_SIGNED = ("int8", "int8", "int32")


def cpu_gemm_schedule(
    workload: PrimFunc | tvm.IRModule,
    microkernel: Microkernel | str | None = None,
    cpu: Cpu | None = None,
    tiling: CpuTiling | None = None,
    threads: int | None = None,
) -> Schedule:
    """A schedule of a GEMM on a CPU, made by TVM's primitives, ready for `mfmadsl.build_for_cpu`.

    `workload` is what `gemm_schedule` takes: A, B and C by rows or by columns, alone or in batches,
    with element-wise blocks before and after; its extents are numbers. `microkernel` is one, or the
    name of one in the library, and `tiling` how the work is cut; without them the ones are taken
    that should be the fastest for `threads` threads of the CPU, this machine's if none is given.

    Raises ScheduleError for what is no GEMM, cannot be fused, or has no micro-kernel, and
    ArgumentError for a CPU that cannot run it.
    """
    function, name, sums = _prepared(workload, microkernel, tiling)
    sch = s_tir.Schedule(tvm.IRModule({"main": function.with_attr("global_symbol", "main")}))
    nest = product_nest(function, name)
    if sums is not None:
        schedule_column_sums(sch, sch.get_sblock(sums))
    for operand in unrelated(function, nest):
        sch.compute_inline(sch.get_sblock(operand.name))
    schedule_cpu_gemm(sch, sch.get_sblock(name), microkernel, cpu, tiling, threads)
    # What was left is said by its reason.
    check_consumers(function, nest.block.writes[0].source)
    return sch


def schedule_cpu_gemm(
    sch: Schedule,
    block: SBlockRV,
    microkernel: Microkernel | str | None = None,
    cpu: Cpu | None = None,
    tiling: CpuTiling | None = None,
    threads: int | None = None,
) -> None:
    """Schedule one product among the blocks of a schedule of your own, with what follows it.

    The arguments are those of `cpu_gemm_schedule`, and so are the errors.
    """
    check_type("sch", sch, Schedule, "a Schedule")
    check_type("block", block, SBlockRV, "a block of the schedule, as `sch.get_sblock` gives it")
    with tvm_refusal("workload", ScheduleError):
        product = normalise(sch, block)
        taken = chosen(product, microkernel, cpu, tiling, threads)
        CpuBuilder(sch, product, *taken).build()


def cpu_gemm_tiling(
    workload: PrimFunc | tvm.IRModule,
    microkernel: Microkernel | str | None = None,
    cpu: Cpu | None = None,
    threads: int | None = None,
) -> CpuTiling:
    """The tiling that `cpu_gemm_schedule` takes if it is given none: a start for your own."""
    function, name, _ = _prepared(workload, microkernel, None)
    sch = s_tir.Schedule(function)
    product = normalise(sch, sch.get_sblock(name))
    return chosen(product, microkernel, cpu, None, threads)[1]


def _prepared(
    workload: PrimFunc | tvm.IRModule, microkernel: Microkernel | str | None,
    tiling: CpuTiling | None,
) -> tuple[PrimFunc, str, str | None]:  # fmt: skip
    """(the function, its product's block, the block that adds up B's columns, if it needs one).

    The factors stand in the order in which micro-kernels multiply their types.
    """
    function = with_bytes_multiplied(prim_func("workload", workload, ScheduleError))
    product = sum_of_products(product_nest(function))
    given = {str(factor.source.dtype) for factor in (product.first, product.second)}
    orders = {(a, b) for a, b, _ in map(types_of, microkernels().values()) if {a, b} == given}
    function = prepared(function, first=next(iter(orders))[0] if len(orders) == 1 else None)
    product = sum_of_products(product_nest(function))
    types = str(product.first.source.dtype), str(product.second.source.dtype), product.sum_type
    if types != _SIGNED or asked_types(microkernel, tiling) == _SIGNED:
        return function, product.nest.name, None
    function, sums = without_sign(function)
    return function, product.nest.name, sums

"""The result of a workload that another workload is made of."""

from __future__ import annotations

from tvm.tirx import Buffer, PrimFunc

from mfmadsl.passes.tir.expression import constant
from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.product.dataflow import accesses, holds


def float32_result(function: PrimFunc, made: str, unit: int, unit_is: str) -> Buffer:
    """The one parameter that a function writes, of which something is `made`: of float32, with
    whole units of so many columns, and what such a unit is.

    Raises ScheduleError for a function with another.
    """
    written = [
        parameter
        for parameter in function.params
        if any(holds(access.writes, parameter) for access in accesses(function))
    ]
    if len(written) != 1:
        said = " and ".join(f"`{each.name}`" for each in written) or "nothing"
        raise ScheduleError(f"workload: it writes {said}: {made} is made of one result")
    (result,) = written
    if str(result.dtype) != "float32":
        raise ScheduleError(
            f"workload: its result `{result.name}` is {result.dtype}: {made} is made of float32"
        )
    columns = constant(result.shape[-1])
    if columns is None or columns % unit:
        raise ScheduleError(
            f"workload: rows of its result `{result.name}` have {result.shape[-1]} elements, which"
            f" is no multiple of {unit}, {unit_is}"
        )
    return result

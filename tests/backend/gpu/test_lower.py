"""What becomes of a function of several kernels: they are launched in the order of its blocks."""

from __future__ import annotations

from functools import reduce
from typing import Any

from tvm import te
from tvm.s_tir import Schedule

from mfmadsl.backend.gpu.lower import split
from mfmadsl.model import architecture


def test_more_than_ten_kernels_keep_their_order() -> None:
    """TVM numbers them: by their names alone the eleventh would be the third."""

    def after(before: Any, number: int) -> Any:
        return te.compute((64,), lambda i: before[i] + 1.0, name=f"b{number}")

    first = te.placeholder((64,), name="A")
    last = reduce(after, range(12), first)
    schedule = Schedule(te.create_prim_func([first, last]))
    for number in range(12):
        (loop,) = schedule.get_loops(schedule.get_sblock(f"b{number}"))
        group, thread = schedule.split(loop, [1, 64])
        schedule.bind(group, "blockIdx.x")
        schedule.bind(thread, "threadIdx.x")
    kernels = split(schedule.mod["main"], architecture("gfx942")).kernels
    numbers = ["", *(f"_{number}" for number in range(1, 12))]
    assert [str(name.name_hint) for name, _ in kernels] == [f"main_kernel{n}" for n in numbers]

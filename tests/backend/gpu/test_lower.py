"""What becomes of a function of several kernels: which are launched, and in which order."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
import pytest
from tvm import te
from tvm.s_tir import Schedule
from tvm.script import from_source

import mfmadsl
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


EITHER = """
@T.prim_func(s_tir=True)
def main(a: T.handle, B: T.Buffer((64,), "float32")):
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    if n <= 64:
        for i in T.thread_binding(64, thread="threadIdx.x"):
            with T.sblock("few"):
                v = T.axis.remap("S", [i])
                T.where(i < n)
                B[v] = A[v]
    else:
        for i in T.thread_binding(64, thread="threadIdx.x"):
            with T.sblock("many"):
                v = T.axis.remap("S", [i])
                B[v] = A[v] + A[v + n - 64]
"""


@pytest.mark.parametrize(("n", "launched"), [(40, "main_kernel"), (100, "main_kernel_1")])
def test_of_two_kernels_under_a_condition_one_is_launched(n: int, launched: str) -> None:
    kernel = mfmadsl.build(from_source(EITHER))
    a, b = np.arange(n, dtype=np.float32), np.zeros(64, np.float32)
    assert [each.symbol for each in kernel.launches([a, b])] == [launched]
    mfmadsl.emulate(kernel, [a, b])
    assert (b[: min(n, 64)] == (a if n < 64 else a[:64] + a[n - 64 :])).all()

"""What looks like a product in scaled blocks, and is refused with the reason."""

from __future__ import annotations

import pytest
from tvm import te
from tvm.script import from_source
from tvm.tirx import PrimFunc

import mfmadsl
from tests.schedule.matrix_core.scaled.blocks import FLOATS

FP8 = FLOATS["gfx942"][0]
SCRIPT = """

@T.prim_func(s_tir=True)
def main(A: T.Buffer((32, 256), "FP8"{strides}), SA: T.Buffer((32, 2), "float32"),
         B: T.Buffer((48, 256), "FP8"), C: T.Buffer((32, 48), "float32")):
    for i, j, k in T.grid(32, 48, 256):
        with T.sblock("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            {where}
            {init}
            C[vi, vj] = C[vi, vj] + (
                T.Cast("float32", A[vi, {a_k}]) * SA[vi, vk // 128] * T.Cast("float32", B[vj, vk])
            )
"""
INIT = "with T.init():\n                C[vi, vj] = T.float32(0)"


def written(init: str = INIT, where: str = "pass", a_k: str = "vk", strides: str = "") -> PrimFunc:
    text = SCRIPT.format(init=init, where=where, a_k=a_k, strides=strides)
    function = from_source(text.replace("            pass\n", "").replace("FP8", FP8))
    assert isinstance(function, PrimFunc)
    return function


CASES = {
    "adds to what its result held before": written(init="pass"),
    "runs under the condition": written(where="T.where(k < 100)"),
    "has not one element for each of its rows": written(a_k="0"),
    "has strides or an offset of its own": written(strides=", strides=[512, 1]"),
}


def test_as_it_is_written_it_is_taken() -> None:
    assert mfmadsl.gemm_tiling(written()).instruction == "mfma_f32_16x16x32_fp8_fp8"


@pytest.mark.parametrize("reason", CASES)
def test_the_block_is_refused(reason: str) -> None:
    with pytest.raises(mfmadsl.ScheduleError, match=reason):
        mfmadsl.gemm_schedule(CASES[reason])


def test_a_factor_that_is_a_result_as_well_is_refused() -> None:
    a, b = te.placeholder((32, 256), FP8, "A"), te.placeholder((48, 256), FP8, "B")
    scale = te.placeholder((32, 2), "float32", "SA")
    left = te.compute(
        (32, 256), lambda i, k: a[i, k].astype("float32") * scale[i, k // 128], "left"
    )
    r = te.reduce_axis((0, 256), "k")
    c = te.compute(
        (32, 48), lambda i, j: te.sum(left[i, r] * b[j, r].astype("float32"), axis=[r]), "C"
    )
    with pytest.raises(mfmadsl.ScheduleError, match="`left`, a factor, which is a result as well"):
        mfmadsl.gemm_schedule(te.create_prim_func([a, scale, b, left, c]))

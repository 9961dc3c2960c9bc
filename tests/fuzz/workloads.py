"""Functions of TVM that are no GEMM, or no kernel, or nearly so."""

from __future__ import annotations

from functools import cache
from typing import Any

import tvm
from tvm import te, tirx
from tvm.s_tir import Schedule
from tvm.script import from_source

import mfmadsl

_SCRIPT = """
@I.ir_module
class Program:
    @R.function
    def main(x: R.Tensor((16, 16), "float16"), w: R.Tensor((16, 16), "float16")):
        with R.dataflow():
            y = R.matmul(x, w)
            R.output(y)
        return y
"""


def convolution() -> Any:
    x = te.placeholder((1, 32, 32, 16), name="X", dtype="float16")
    w = te.placeholder((3, 4, 16, 32), name="W", dtype="float16")
    axes = [te.reduce_axis((0, extent), name=f"r{extent}") for extent in (3, 4, 16)]
    h, v, c = axes

    def at(n: Any, i: Any, j: Any, o: Any) -> Any:
        return te.sum(x[n, i + h, j + v, c].astype("float32") * w[h, v, c, o].astype("float32"),
                      axis=axes)  # fmt: skip

    return te.create_prim_func([x, w, te.compute((1, 29, 29, 32), at, name="conv")])


def _elementwise(dtype: str, shape: tuple[Any, ...]) -> Any:
    x = te.placeholder(shape, name="X", dtype=dtype)
    return te.create_prim_func([x, te.compute(shape, lambda *i: x(*i) + x(*i), name="sum")])


def _total() -> Any:
    x = te.placeholder((64,), name="X", dtype="float32")
    k = te.reduce_axis((0, 64), name="k")
    return te.create_prim_func(
        [x, te.compute((1,), lambda _: te.sum(x[k], axis=[k]), name="total")]
    )


def _symbolic() -> Any:
    n = tirx.Var("n", "int32")
    x = te.placeholder((16, n), name="X", dtype="float16")
    y = te.placeholder((n, 16), name="Y", dtype="float16")
    k = te.reduce_axis((0, n), name="k")
    product = te.compute((16, 16), lambda i, j: te.sum(x[i, k] * y[k, j], axis=[k]), name="C")
    return te.create_prim_func([x, y, product])


def _bound(function: Any, threads: int) -> Any:
    """A kernel of one loop, with its elements bound to so many threads."""
    schedule = Schedule(function)
    (block,) = schedule.get_child_blocks(schedule.get_sblock("root"))
    loop = schedule.fuse(*schedule.get_loops(block))
    outer, inner = schedule.split(loop, factors=[None, threads])
    schedule.bind(outer, "blockIdx.x")
    schedule.bind(inner, "threadIdx.x")
    return schedule


@cache
def odd_workloads() -> list[Any]:
    program = from_source(_SCRIPT)
    types = [("float16", "float16"), ("int8", "int32"), ("int32", "int32"), ("float64", "float64"),
             ("float16", "int32"), ("uint8", "float16"), ("bfloat16", "bfloat16"),
             ("float4_e2m1fn", "float32"), ("float8_e8m0fnu", "float32")]  # fmt: skip
    elementwise = _elementwise("float32", (64, 64))
    return [
        program, tvm.relax.transform.LegalizeOps()(program), tvm.IRModule({}), convolution(),
        elementwise, _elementwise("float16", ()), _total(), _symbolic(), Schedule(elementwise),
        tvm.IRModule({"a": elementwise, "b": _total()}), _bound(elementwise, 64),
        _bound(elementwise, 2048), _bound(_elementwise("bool", (64, 64)), 64),
        *(mfmadsl.matmul(16, 16, 16, a, c) for a, c in types),
        *(mfmadsl.matmul(m, n, k, "float16", "float32") for m, n, k in
          [(1, 1, 1), (2**31 - 1, 1, 1), (1, 2**31 - 1, 7), (2**31 - 1, 2**31 - 1, 2**31 - 1)]),
    ]  # fmt: skip

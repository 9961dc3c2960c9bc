"""`tir_pipeline="mfmadsl"`: kernels, and a host's function that launches them as they take it."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
import tvm
import tvm_ffi
from tvm import te, tirx
from tvm.ir import Call
from tvm.s_tir import Schedule
from tvm.script import tirx as T  # noqa: N812
from tvm.target import Target
from tvm.tirx import PrimFunc

import mfmadsl
from mfmadsl.backend.argument import extent_of
from mfmadsl.backend.extent import value_of
from mfmadsl.passes.tir.expression import name_of, numbers
from mfmadsl.relax.lowering import LLVM_IR, lowered
from tests.schedule.matrix_core.gemm.test_edges import plain

TARGET = mfmadsl.target("gfx942")


def bound(functions: dict[str, PrimFunc], target: Target = TARGET) -> tvm.IRModule:
    module: tvm.IRModule = tirx.transform.BindTarget(target)(tvm.IRModule(functions))
    return module


def launches(host: PrimFunc) -> list[Call]:
    found: list[Call] = []
    tvm_ffi.structural_walk(host.body, (Call, found.append))
    return [call for call in found if name_of(call) == "call_ffi_kernel"]


def scores() -> PrimFunc:
    """Q x K of attention: two symbolic extents, a batch, and names in no order."""
    s, heads, depth = te.var("s", "int64"), tirx.IntImm("int64", 4), tirx.IntImm("int64", 32)
    q = te.placeholder((heads, s, depth), "float16", name="zebra")
    k = te.placeholder((heads, s, depth), "float16", name="ant")
    r = te.reduce_axis((0, depth), "r")
    c = te.compute(
        (heads, s, s),
        lambda h, i, j: te.sum(
            q[h, i, r].astype("float32") * k[h, j, r].astype("float32"), axis=[r]
        ),
        name="mole",
    )
    workload = te.create_prim_func([q, k, c])
    tiling = mfmadsl.gemm_tiling(workload, arch="gfx942")  # one: else there are several kernels
    return mfmadsl.gemm_schedule(workload, arch="gfx942", tiling=tiling).mod["main"]


@pytest.mark.parametrize("length", [1, 63, 64, 1000])
def test_the_host_passes_what_the_kernel_takes_and_the_grid_that_it_has(length: int) -> None:
    function = scores().with_attr("global_symbol", "scores")
    module = lowered(bound({"scores": function}))
    (call,) = launches(module["scores"])
    names = [str(p.name) for p in module["scores_kernel"].params]
    assert names == ["zebra_ptr", "ant_ptr", "mole_ptr", "s"]
    passed = [str(argument) for argument in call.args[1:5]]
    assert [text.split(".")[0].split("_")[0] for text in passed] == ["zebra", "ant", "mole", "s"]
    tags = [str(tag) for tag in call.attrs.launch_params]
    assert list(module["scores_kernel"].attrs["tirx.kernel_launch_params"]) == tags
    extents = [int(numbers(extent, {"s": length})) for extent in call.args[5:]]
    x, y, z = (extents[tags.index(f"blockIdx.{axis}")] for axis in "xyz")
    block = tuple(extents[tags.index(f"threadIdx.{axis}")] for axis in "xyz")
    kernel = mfmadsl.build(function, "gfx942")
    arrays = [np.zeros((4, length, 32), "float16") for _ in "qk"]
    (launch,) = kernel.launches([*arrays, np.zeros((4, length, length), "float32")])
    assert ((x, y, z), block) == (launch.grid, launch.block)


@pytest.mark.parametrize("m", [1, 16, 17, 32, 33])
def test_the_host_launches_the_case_that_build_does(m: int) -> None:
    tiling = mfmadsl.Tiling((16, 16), 64, (1, 1), "mfma_f32_16x16x16_f16", 2)
    cases = [mfmadsl.Case(tiling, (16,)), mfmadsl.Case(tiling, (32,)), mfmadsl.Case(tiling)]
    schedule = mfmadsl.gemm_schedule(plain(te.var("m"), 16, 64), arch="gfx942", tiling=cases)
    function = schedule.mod["main"].with_attr("global_symbol", "product")
    host = lowered(bound({"product": function}))["product"]
    found: list[tirx.IfThenElse] = []
    tvm_ffi.structural_walk(host.body, (tirx.IfThenElse, found.append))
    launching = [each for each in found if launches(host.with_body(each))]
    taken = [value_of(extent_of(each.condition), {"m": m}) for each in launching]
    kernels = list(mfmadsl.build(function, "gfx942").chain())
    assert taken == [value_of(kernel.condition, {"m": m}) for kernel in kernels]
    assert sum(taken) == 1


def test_symbolic_extents_take_no_time_to_lower() -> None:
    """Nested divisions by several of them took TVM's simplifier most of a minute."""
    function, before = scores().with_attr("global_symbol", "scores"), os.times()
    lowered(bound({"scores": function}))
    after = os.times()
    assert sum(after[:4]) - sum(before[:4]) < 5  # seconds, of which a quiet machine takes one


def test_the_kernel_is_that_of_build() -> None:
    function = scores().with_attr("global_symbol", "scores")
    kernel = lowered(bound({"scores": function}))["scores_kernel"]
    optimized = mfmadsl.build(function, "gfx942").optimized
    # TVM numbers its types by their addresses.
    lines = [line for line in optimized.splitlines() if not line.startswith("!")]
    assert [s for s in str(kernel.attrs[LLVM_IR]).splitlines() if not s.startswith("!")] == lines


@pytest.mark.parametrize("one_launch", [False, True])
def test_split_k_becomes_two_kernels_and_memory_between_them(one_launch: bool) -> None:
    """Also what may work in one launch: TVM gives no memory with zeros in it."""
    tiling = {"split_k": 4, "one_launch": one_launch}
    schedule = mfmadsl.Gemm(None, "gfx942", 16, 16, 4096, tiling=tiling).schedule()
    module = lowered(bound({"product": schedule.mod["main"].with_attr("global_symbol", "product")}))
    names = [str(call.args[0]).strip('"') for call in launches(module["product"])]
    assert names == ["product_kernel", "product_kernel_1"]
    tvm.compile(schedule.mod, TARGET, tir_pipeline="mfmadsl")


def test_a_function_without_a_symbol_is_called_as_the_module_calls_it() -> None:
    function = scores().without_attr("global_symbol")
    module = lowered(bound({"private": function}))
    assert {v.name_hint for v in module.get_global_vars()} == {"private", "private_kernel"}


def test_extents_that_are_passed_as_numbers_are_the_kernels_last_arguments() -> None:
    @T.prim_func(s_tir=True)  # type: ignore[untyped-decorator]
    def shifted(p: T.handle, by: T.int64, q: T.handle) -> None:
        n = T.int64()
        x = T.match_buffer(p, (n,))
        y = T.match_buffer(q, (n,))
        for i in T.thread_binding(n, "blockIdx.x"):
            for _ in T.thread_binding(1, "threadIdx.x"):
                with T.sblock("y"):
                    place = T.axis.spatial(n, i)
                    y[place] = x[(place + by) % n]

    module = lowered(bound({"shifted": shifted}))
    assert {str(p.name) for p in module["shifted_kernel"].params} == {"x_ptr", "y_ptr", "by", "n"}
    (call,) = launches(module["shifted"])
    assert len(call.args) == 1 + 4 + 6


def test_functions_of_the_host_are_tvms() -> None:
    x = te.placeholder((8,), "float32", name="x")
    function = te.create_prim_func([x, te.compute((8,), lambda i: x[i] + 1.0, name="y")])
    named = function.with_attr("global_symbol", "own")
    module = lowered(bound({"own": named}, Target("llvm", host="llvm")))
    (host,) = module.functions.values()
    assert host.attrs["target"].kind.name == "llvm"


def test_a_function_that_only_calls_others_is_the_hosts() -> None:
    """As Relax makes them with `exec_mode="compiled"`."""

    @T.prim_func(s_tir=True)  # type: ignore[untyped-decorator]
    def calling(n: T.int32) -> None:
        T.evaluate(T.call_packed("somebody", n))

    module = lowered(bound({"calling": calling}))
    (host,) = module.functions.values()
    assert host.attrs["target"].kind.name == "llvm"


def test_a_function_that_cannot_be_a_kernel_is_refused_by_its_name() -> None:
    x = te.placeholder((8,), "float32", name="x")
    plain = te.create_prim_func([x, te.compute((8,), lambda i: x[i] + 1.0, name="y")])
    with pytest.raises(mfmadsl.LoweringError, match=r"function `alone`: .*bind the loops"):
        tvm.compile(tvm.IRModule({"alone": plain}), TARGET, tir_pipeline="mfmadsl")
    tangent = Schedule(
        te.create_prim_func([x, te.compute((8,), lambda i: tirx.tan(x[i]), name="y")])
    )
    tangent.bind(tangent.get_loops(tangent.get_sblock("y"))[0], "threadIdx.x")
    with pytest.raises(mfmadsl.LoweringError, match=r"function `wave`: .*`tan` of float32"):
        tvm.compile(tvm.IRModule({"wave": tangent.mod["main"]}), TARGET, tir_pipeline="mfmadsl")


def test_another_chip_is_refused() -> None:
    other: Any = Target({"kind": "rocm", "mcpu": "gfx1100"}, host="llvm")
    with pytest.raises(mfmadsl.ArgumentError, match="'gfx1100' is an RDNA chip"):
        tvm.compile(tvm.IRModule({"scores": scores()}), other, tir_pipeline="mfmadsl")


def test_a_kernel_and_a_function_of_one_name() -> None:
    functions = {name: scores().with_attr("global_symbol", name) for name in ("f", "f_kernel")}
    with pytest.raises(mfmadsl.LoweringError, match="`f_kernel` is a function, and what a kernel"):
        lowered(bound(functions))

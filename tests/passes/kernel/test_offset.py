"""Arrays with an offset: kernels take pointers to where they begin, and the host adds it."""

from __future__ import annotations

import tvm
import tvm_ffi
from tvm import te, tirx
from tvm.ir import Call
from tvm.s_tir import Schedule
from tvm.tirx import PrimFunc

import mfmadsl
from mfmadsl.passes.kernel.offset import offsets_of
from mfmadsl.passes.tir.expression import constant, name_of, variables_of
from mfmadsl.relax.lowering import lowered


def moved() -> PrimFunc:
    """y[i] = x[i], of an x that begins some elements behind its pointer."""
    x = te.placeholder((256,), "float16", name="x")
    y = te.compute((256,), lambda i: x[i], name="y")
    schedule = Schedule(te.create_prim_func([x, y]))
    block, thread = schedule.split(schedule.get_loops(schedule.get_sblock("y"))[0], [None, 64])
    schedule.bind(block, "blockIdx.x")
    schedule.bind(thread, "threadIdx.x")
    function = schedule.mod["main"]
    plain, result = function.params
    offset = tirx.Var("offset", "int32")
    own = tirx.decl_buffer((256,), "float16", "x", elem_offset=offset)
    body = tvm_ffi.structural_map(
        function.body, (tirx.Var, lambda v: own if v.same_as(plain) else v)
    )
    made = PrimFunc([own, result], body, function.ret_type, function.attrs)
    return made.with_attr("global_symbol", "moved")


def test_offsets_are_in_bytes() -> None:
    (name, found), *others = offsets_of(moved()).items()
    assert (name, others) == ("x", [])
    assert isinstance(found, tirx.Mul)
    assert constant(found.b) == 2


def test_the_host_adds_them_and_kernels_do_not_take_them() -> None:
    target = mfmadsl.target("gfx942")
    module = lowered(tirx.transform.BindTarget(target)(tvm.IRModule({"moved": moved()})))
    kernel = module["moved_kernel"]
    assert [str(parameter.name) for parameter in kernel.params] == ["x_ptr", "y_ptr"]
    calls: list[Call] = []
    tvm_ffi.structural_walk(module["moved"].body, (Call, calls.append))
    (launch,) = (call for call in calls if name_of(call) == "call_ffi_kernel")
    x, y = launch.args[1:3]
    assert isinstance(x, Call)
    assert name_of(x) == "handle_add_byte_offset"
    assert "offset" in {v.name for v in variables_of(x)}
    assert "offset" not in {v.name for v in variables_of(y)}

"""Reductions over threads of bfloat16 and eight-bit floats, in registers of float32.

The hardware shuffles words, and TVM's code for it has variables of the type that is reduced.
"""

from __future__ import annotations

import tvm
from tvm import tirx
from tvm.tirx import Buffer, Expr, PrimFunc, Stmt, Var

from mfmadsl.passes.tir.device import called
from mfmadsl.passes.tir.rewrite import dtype_of, with_body
from mfmadsl.passes.tir.walk import mapped, walk
from mfmadsl.passes.types.bits import BITS

_REDUCTION = "tvm_thread_allreduce"


def widen_reductions(function: PrimFunc) -> PrimFunc:
    """The function with the values that threads reduce as float32.

    Each step of a reduction is rounded to the narrow type, as the workload says.
    """
    results = _results(function.body)
    if not results:
        return function

    def load(value: tvm.ir.TensorLoad) -> Expr:
        if value.source not in results:
            return value
        wide = tirx.BufferLoad(results[value.source], value.indices)
        return wide.astype(dtype_of(value))

    def reduction(call: tvm.ir.Call) -> tvm.ir.Call:
        if called(call) != _REDUCTION:
            return call
        arguments = [_wide(argument) for argument in call.args]
        return tirx.call_intrin("void", call.op, *arguments)

    def allocation(statement: tirx.AllocBuffer) -> tirx.AllocBuffer:
        if statement.buffer not in results:
            return statement
        return tirx.AllocBuffer(results[statement.buffer], statement.annotations)

    return with_body(
        function,
        mapped(
            function.body,
            (tvm.ir.TensorLoad, load), (tvm.ir.Call, reduction), (tirx.AllocBuffer, allocation),
            (tirx.CommReducer, _reducer),
        ),
    )  # fmt: skip


def _results(body: Stmt) -> dict[Buffer, Buffer]:
    """The buffers that take reduced narrow values, and what takes their place."""
    found: dict[Buffer, Buffer] = {}

    def reduction(call: tvm.ir.Call) -> None:
        if called(call) != _REDUCTION:
            return
        for argument in call.args[2 + int(call.args[0]) :]:
            if isinstance(argument, tvm.ir.TensorLoad) and dtype_of(argument) in BITS:
                old = argument.source
                found[old] = tirx.decl_buffer(old.shape, "float32", old.name, scope=old.scope())

    walk(body, (tvm.ir.Call, reduction))
    return found


def _wide(argument: Expr) -> Expr:
    """What was narrow as float32; the buffers of results are already."""
    if dtype_of(argument) not in BITS:
        return argument
    return argument.value if isinstance(argument, tirx.Cast) else argument.astype("float32")


def _reducer(reducer: tirx.CommReducer) -> tirx.CommReducer:
    """The combination of float32 numbers that hold narrow ones."""
    narrow = [v for v in (*reducer.lhs, *reducer.rhs) if dtype_of(v) in BITS]
    if not narrow:
        return reducer
    wide = {variable: tirx.Var(variable.name, "float32") for variable in narrow}

    def used(variable: Var) -> Expr:
        return wide[variable].astype(dtype_of(variable)) if variable in wide else variable

    def combined(result: Expr) -> Expr:
        result = mapped(result, (tirx.Var, used))
        return result.astype("float32") if dtype_of(result) in BITS else result

    return tirx.CommReducer(
        [wide.get(v, v) for v in reducer.lhs],
        [wide.get(v, v) for v in reducer.rhs],
        [combined(result) for result in reducer.result],
        [combined(identity) for identity in reducer.identity_element],
    )

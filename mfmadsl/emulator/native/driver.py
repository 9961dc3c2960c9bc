"""The native loop that executes steps, one after another, on all waves."""

from __future__ import annotations

import ctypes
from typing import Any

from llvmlite import ir

from mfmadsl.emulator.native.fields import STEP_WORDS

_I64 = ir.IntType(64)
DRIVER: Any = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
"""Takes the addresses of the fields and of the steps, and how many steps there are; gives how many
it has executed. The step behind them is one that the interpreter has to execute."""


def write_driver(module: ir.Module, name: str) -> None:
    """The code of the driver."""
    function = ir.Function(module, ir.FunctionType(_I64, [_I64, _I64, _I64]), name)
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    fields, steps, count = function.args
    pointers = [_I64.as_pointer(), _I64.as_pointer()]
    fields, steps = (builder.inttoptr(each, _I64.as_pointer()) for each in (fields, steps))
    before = builder.block
    head, body, call, end = (
        builder.append_basic_block(each) for each in ("head", "body", "call", "end")
    )
    builder.branch(head)
    builder.position_at_end(head)
    index = builder.phi(_I64)
    index.add_incoming(_I64(0), before)
    builder.cbranch(builder.icmp_unsigned("<", index, count), body, end)
    builder.position_at_end(body)
    step = builder.gep(steps, [builder.mul(index, _I64(STEP_WORDS))])
    run = builder.inttoptr(builder.load(step), ir.FunctionType(_I64, pointers).as_pointer())
    refused = builder.call(run, [fields, step])
    builder.cbranch(builder.icmp_unsigned("==", refused, _I64(0)), call, end)
    builder.position_at_end(call)
    index.add_incoming(builder.add(index, _I64(1)), call)
    builder.branch(head)
    builder.position_at_end(end)
    builder.ret(index)

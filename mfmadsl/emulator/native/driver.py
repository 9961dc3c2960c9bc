"""The native loop that executes steps, one after another.

Steps on registers only, which follow one another, are executed on a block of waves, whose registers
the processor's cache holds, then on the next. All others are executed on all waves.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import ir

from mfmadsl.emulator.native.fields import FIELDS, RUN_WORD, STEP_WORDS

_I64 = ir.IntType(64)
_BLOCK = 16  # waves
DRIVER: Any = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
"""Takes the addresses of the fields and of the steps, and how many steps there are; gives how many
it has executed. The step behind them is one that the interpreter has to execute."""


@contextmanager
def while_below(builder: ir.IRBuilder, place: ir.Value, stop: ir.Value) -> Iterator[ir.Value]:
    """A loop as long as a number in memory is below another; the body makes it larger."""
    head, body, end = (builder.append_basic_block(name) for name in ("head", "body", "end"))
    builder.branch(head)
    builder.position_at_end(head)
    index = builder.load(place)
    builder.cbranch(builder.icmp_unsigned("<", index, stop), body, end)
    builder.position_at_end(body)
    yield index
    builder.branch(head)
    builder.position_at_end(end)


def write_driver(module: ir.Module, name: str) -> None:
    """The code of the driver."""
    function = ir.Function(module, ir.FunctionType(_I64, [_I64, _I64, _I64]), name)
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    fields, steps, count = function.args
    pointer = _I64.as_pointer()
    fields, steps = (builder.inttoptr(each, pointer) for each in (fields, steps))
    first, last, waves = (
        builder.gep(fields, [_I64(FIELDS.index(name))]) for name in ("first", "last", "count")
    )
    waves = builder.load(waves)
    at, block, within = (builder.alloca(_I64) for _ in range(3))
    builder.store(_I64(0), at)

    def call(index: ir.Value) -> ir.Value:
        step = builder.gep(steps, [builder.mul(index, _I64(STEP_WORDS))])
        code = builder.inttoptr(
            builder.load(step), ir.FunctionType(_I64, [pointer, pointer]).as_pointer()
        )
        return builder.call(code, [fields, step])

    with while_below(builder, at, count) as index:
        step = builder.gep(steps, [builder.mul(index, _I64(STEP_WORDS))])
        run = builder.load(builder.gep(step, [_I64(RUN_WORD)]))
        behind = builder.add(index, run)
        behind = builder.select(builder.icmp_unsigned("<", behind, count), behind, count)
        with builder.if_else(builder.icmp_unsigned("==", run, _I64(0))) as (alone, together):
            with alone:
                builder.store(_I64(0), first)
                builder.store(waves, last)
                refused = call(index)
                with builder.if_then(builder.icmp_unsigned("!=", refused, _I64(0)), likely=False):
                    builder.ret(index)
                builder.store(builder.add(index, _I64(1)), at)
            with together:
                builder.store(_I64(0), block)
                with while_below(builder, block, waves) as start:
                    end = builder.add(start, _I64(_BLOCK))
                    end = builder.select(builder.icmp_unsigned("<", end, waves), end, waves)
                    builder.store(start, first)
                    builder.store(end, last)
                    builder.store(index, within)
                    with while_below(builder, within, behind) as inner:
                        call(inner)
                        builder.store(builder.add(inner, _I64(1)), within)
                    builder.store(end, block)
                builder.store(behind, at)
    builder.ret(count)

"""What loops and threads run over, told to TVM's analyzer."""

from __future__ import annotations

from functools import partial

from tvm import ir, tirx
from tvm.sym import Analyzer
from tvm.tirx import AttrStmt, Bind, For, PrimFunc

from mfmadsl.passes.tir.expression import bits_of
from mfmadsl.passes.tir.walk import walk


def analyzer_of(function: PrimFunc) -> Analyzer:
    """An analyzer that knows what all loops of a function run over."""
    analyzer = Analyzer()
    walk(function.body, (For, partial(bind_loop, analyzer)))
    return analyzer


def bind_loop(analyzer: Analyzer, loop: For) -> None:
    """Tell the analyzer what a loop runs over."""
    analyzer.bind(loop.loop_var, ir.Range.from_min_extent(loop.min, loop.extent), True)


def bind_value(analyzer: Analyzer, statement: Bind) -> None:
    """Tell the analyzer what a value that is read of memory may be, if it is known to be any."""
    dtype = str(statement.var.ty.dtype)
    if dtype not in ("int32", "int64"):
        return
    bound = analyzer.const_int_bound(statement.value)
    least, most = int(bound.min_value), int(bound.max_value)
    limit = 1 << bits_of(dtype) - 1
    if -limit <= least and most + 1 < limit:
        ends = (tirx.const(each, dtype) for each in (least, most + 1))
        analyzer.bind(statement.var, ir.Range(*ends), True)


def bind_thread(analyzer: Analyzer, statement: AttrStmt) -> None:
    """Tell the analyzer what a thread index runs over; other attributes say nothing of it."""
    if statement.attr_key == "thread_extent":
        analyzer.bind(statement.node.var, ir.Range(0, statement.value), True)

"""What loops and threads run over, told to TVM's analyzer."""

from __future__ import annotations

from functools import partial

import tvm_ffi
from tvm import ir
from tvm.sym import Analyzer
from tvm.tirx import AttrStmt, For, PrimFunc


def analyzer_of(function: PrimFunc) -> Analyzer:
    """An analyzer that knows what all loops of a function run over."""
    analyzer = Analyzer()
    tvm_ffi.structural_walk(function.body, (For, partial(bind_loop, analyzer)))
    return analyzer


def bind_loop(analyzer: Analyzer, loop: For) -> None:
    """Tell the analyzer what a loop runs over."""
    analyzer.bind(loop.loop_var, ir.Range.from_min_extent(loop.min, loop.extent), True)


def bind_thread(analyzer: Analyzer, statement: AttrStmt) -> None:
    """Tell the analyzer what a thread index runs over; other attributes say nothing of it."""
    if statement.attr_key == "thread_extent":
        analyzer.bind(statement.node.var, ir.Range(0, statement.value), True)

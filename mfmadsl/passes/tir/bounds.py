"""What loops and threads run over, told to TVM's analyzer."""

from __future__ import annotations

from tvm import ir
from tvm.sym import Analyzer
from tvm.tirx import AttrStmt, For


def bind_loop(analyzer: Analyzer, loop: For) -> None:
    """Tell the analyzer what a loop runs over."""
    analyzer.bind(loop.loop_var, ir.Range.from_min_extent(loop.min, loop.extent), True)


def bind_thread(analyzer: Analyzer, statement: AttrStmt) -> None:
    """Tell the analyzer what a thread index runs over; other attributes say nothing of it."""
    if statement.attr_key == "thread_extent":
        analyzer.bind(statement.node.var, ir.Range(0, statement.value), True)

"""The pipeline: main loops that are annotated for it become fast ones, or stay as they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tvm import ir, tirx
from tvm.sym import Analyzer
from tvm.tirx import (
    AttrStmt,
    Bind,
    BufferStore,
    Expr,
    For,
    ForKind,
    IfThenElse,
    PrimFunc,
    SeqStmt,
    Stmt,
    Var,
)

from mfmadsl.model import DEFAULT_OVERLAP, OVERLAPS, Architecture, Read
from mfmadsl.passes.kernel.thread_index import renewed
from mfmadsl.passes.main_loop.analysis.kernel import EnclosingKernel, Threads
from mfmadsl.passes.main_loop.analysis.matrix import MatrixInstructions
from mfmadsl.passes.main_loop.analysis.register_use import RegisterUse
from mfmadsl.passes.main_loop.moves.traffic import traffic_of
from mfmadsl.passes.main_loop.order.early_loads import with_early_loads
from mfmadsl.passes.main_loop.order.fill import fills_at_end
from mfmadsl.passes.main_loop.order.iterations import Iterations
from mfmadsl.passes.tir.annotation import OVERLAP, PIPELINE, word
from mfmadsl.passes.tir.bounds import bind_loop, bind_thread, bind_value
from mfmadsl.passes.tir.error import NotUnderstoodError
from mfmadsl.passes.tir.expression import constant
from mfmadsl.passes.tir.walk import walk

_LARGEST = (1 << 31) - 1  # of an extent


@dataclass(frozen=True)
class Pipelined:
    """A device function with its annotated loops rewritten, and why others were left.

    `fast` is how many were rewritten. `spans` has (buffer, bytes) of each tile whose extents are
    known at the launch only: fewer than `fetch.SPAN_LIMIT` they must be.
    """

    function: PrimFunc
    remarks: tuple[str, ...]
    fast: int
    spans: tuple[tuple[str, Expr], ...]


def pipeline(
    function: PrimFunc, chip: Architecture, instructions: MatrixInstructions,
    reads: Sequence[Read] = (), register_use: RegisterUse = RegisterUse.TWO_AHEAD,
) -> Pipelined:  # fmt: skip
    """Rewrite the annotated loops of a device function.

    `instructions` and `reads` are what is described of the chip: its matrix instructions, and its
    reads of the LDS in which lanes exchange elements. What is not kept in registers takes a few
    instructions more.
    """
    remarks: list[str] = []
    fast: list[For] = []
    spans: dict[str, tuple[str, Expr]] = {}
    threads, analyzer = _threads(function)
    kernel = EnclosingKernel(
        function, threads, analyzer, chip, instructions, tuple(reads), register_use
    )
    anew = {v: threads.extents[tag] for tag, v in threads.variables.items() if kernel.lean}

    def rewrite(statement: Stmt, again: bool, fills: Sequence[BufferStore] = ()) -> Stmt:
        if isinstance(statement, For):
            if int(analyzer.const_int_bound(statement.extent).max_value) <= 0:
                return tirx.Evaluate(0)  # it never runs
            if PIPELINE in (statement.annotations or {}):
                stages = int(statement.annotations[PIPELINE])
                overlap = OVERLAPS[word(statement.annotations.get(OVERLAP, DEFAULT_OVERLAP))]
                try:
                    traffic = traffic_of(kernel, statement, stages)
                    rewritten = Iterations(traffic, stages, again, tuple(fills), overlap).emit()
                except NotUnderstoodError as left:
                    remarks.append(f"loop `{statement.loop_var.name}` is left as it is: {left}")
                    return statement
                for name, span in traffic.spans:
                    spans[f"{name} {span}"] = name, span
                fast.append(statement)
                return SeqStmt(renewed([rewritten], anew))
            bind_loop(analyzer, statement)
            again = again or statement.kind != ForKind.UNROLLED
        if isinstance(statement, Bind):
            bind_value(analyzer, statement)
        if isinstance(statement, SeqStmt):
            return SeqStmt(in_sequence(list(statement.seq), again))
        return _with_inner(statement, lambda inner: rewrite(inner, again))

    def in_sequence(statements: Sequence[Stmt], again: bool) -> list[Stmt]:
        """What comes after a rewritten loop has thread indices of its own."""
        done: list[Stmt] = []
        for number, statement in enumerate(statements):
            before = len(fast)
            taken = not chip.separate_files and _iterates_again(statement)
            fills = fills_at_end(done) if taken else []
            rewritten = rewrite(statement, again, fills)
            if len(fast) > before:
                rest = in_sequence(statements[number + 1 :], again)
                ahead, rewritten = with_early_loads(done[: len(done) - len(fills)], rewritten)
                return [*ahead, rewritten, *renewed(rest, anew)]
            done.append(rewritten)
        return done

    body = rewrite(function.body, False)
    return Pipelined(function.with_body(body), tuple(remarks), len(fast), tuple(spans.values()))


def _iterates_again(statement: Stmt) -> bool:
    """Whether it is an annotated loop of more than one iteration.

    Where it may run no time at all, its sums are needed all the same; of one iteration alone, LLVM
    needs no registers for zeros.
    """
    if not isinstance(statement, For) or PIPELINE not in (statement.annotations or {}):
        return False
    return (constant(statement.extent) or 0) > 1


def _with_inner(statement: Stmt, rewrite: Callable[[Stmt], Stmt]) -> Stmt:
    """A statement with those in it rewritten."""
    if isinstance(statement, For):
        return For(
            statement.loop_var, statement.min, statement.extent, statement.kind,
            rewrite(statement.body), statement.thread_binding, statement.annotations,
        )  # fmt: skip
    if isinstance(statement, AttrStmt):
        body = rewrite(statement.body)
        return AttrStmt(statement.node, statement.attr_key, statement.value, body)
    if isinstance(statement, IfThenElse):
        then, other = rewrite(statement.then_case), statement.else_case
        return IfThenElse(statement.condition, then, None if other is None else rewrite(other))
    return statement


def _threads(function: PrimFunc) -> tuple[Threads, Analyzer]:
    variables: dict[str, Var] = {}
    extents: dict[str, int] = {}
    analyzer = Analyzer()
    for parameter in function.params:  # extents of arguments among them
        kind = str(getattr(parameter.ty, "dtype", ""))
        if kind in ("int32", "int64"):
            analyzer.bind(parameter, ir.Range(tirx.const(1, kind), tirx.const(_LARGEST, kind)))

    def thread(node: AttrStmt) -> None:
        if node.attr_key != "thread_extent":
            return
        bind_thread(analyzer, node)
        tag, extent = str(node.node.thread_tag), constant(node.value)
        if tag.startswith("threadIdx") and extent is not None:
            variables[tag], extents[tag] = node.node.var, extent

    walk(function.body, (AttrStmt, thread))
    return Threads(variables, extents), analyzer

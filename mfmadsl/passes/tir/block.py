"""The blocks that a function is made of, and the same ones with parts of them changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tvm import tirx
from tvm.s_tir import SBlock, SBlockRealize
from tvm.tirx import Buffer, PrimFunc, Stmt


def statements(function: PrimFunc) -> list[Stmt]:
    """What the root block of a function runs, in order."""
    root = function.body
    body = root.block.body if isinstance(root, SBlockRealize) else root
    return list(body.seq) if isinstance(body, tirx.SeqStmt) else [body]


def in_sequence(several: Sequence[Stmt]) -> Stmt:
    """Statements as one, which runs them in order."""
    return several[0] if len(several) == 1 else tirx.SeqStmt(list(several))


def with_root(function: PrimFunc, root: SBlock) -> PrimFunc:
    """The function with another root block."""
    return function.with_body(SBlockRealize([], True, root))


def with_parts(
    block: SBlock, *, name: str | None = None, body: Stmt | None = None,
    allocated: Sequence[Buffer] | None = None, annotations: Mapping[str, object] | None = None,
) -> SBlock:  # fmt: skip
    """The block with those of its parts exchanged that are given."""
    return SBlock(
        block.iter_vars,
        block.reads,
        block.writes,
        block.name_hint if name is None else name,
        block.body if body is None else body,
        block.init,
        block.alloc_buffers if allocated is None else allocated,
        block.match_buffers,
        block.annotations if annotations is None else annotations,
    )

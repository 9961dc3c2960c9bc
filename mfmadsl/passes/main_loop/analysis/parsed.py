"""A main loop as the pipeline sees it: copies into the LDS, then reads of it and computing.

    for k in serial(n):                         annotated "mfmadsl.pipeline"
        shared[...] = ... global[...] ...       copies, ahead of the tile's first read
        (local[...] = shared[...]               reads of a register step: fragments
         local[...] = ... local[...] ...)*      computing: matrix instructions and others

Whatever else stands in it, or depends on what it must not, makes it no such loop, and says why.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from tvm import tirx
from tvm.ir import TensorLoad
from tvm.sym import Analyzer
from tvm.tirx import (
    AllocBuffer,
    Buffer,
    BufferStore,
    Expr,
    For,
    ForKind,
    IfThenElse,
    PrimFunc,
    Stmt,
)

from mfmadsl.passes.main_loop.analysis.cycles import stated_instructions
from mfmadsl.passes.main_loop.analysis.kernel import EnclosingKernel
from mfmadsl.passes.main_loop.analysis.matrix import MatrixInstructions
from mfmadsl.passes.main_loop.analysis.register_step import RegisterStep, register_steps
from mfmadsl.passes.main_loop.analysis.unrolled import kind_of, store_of, unrolled
from mfmadsl.passes.tir.annotation import PIPELINE
from mfmadsl.passes.tir.error import NotUnderstoodError
from mfmadsl.passes.tir.expression import constant, loads_of, scope_of
from mfmadsl.passes.tir.rewrite import with_body
from mfmadsl.passes.tir.walk import mapped, walk

_MOST_STATEMENTS = 20000


@dataclass(frozen=True)
class MainLoop:
    """A loop that was understood: every statement scalar but for matrix instructions."""

    loop: For
    allocations: tuple[AllocBuffer, ...]
    copies: tuple[BufferStore | IfThenElse, ...]
    steps: tuple[RegisterStep, ...]
    instructions: MatrixInstructions

    @property
    def variable(self) -> tirx.Var:
        """The loop's variable."""
        return self.loop.loop_var

    @property
    def is_sum(self) -> bool:
        """Whether the order of its iterations does not matter: all that it computes is added up."""
        return all(
            self.instructions.has(statement.value) and not uses(statement, self.variable)
            for step in self.steps
            for statement in step.computing
        )

    def with_tiles(
        self, tiles: Mapping[int, Buffer],
        place: Callable[[Expr, Buffer], Expr] = lambda index, _: index,
    ) -> MainLoop:  # fmt: skip
        """The loop with these tiles in place of those with their handles; what was read at an index
        lies at its `place` in the other one."""

        def load(node: TensorLoad) -> Expr:
            tile = tiles.get(node.source.__chandle__())
            if tile is None:
                return node
            return tirx.BufferLoad(tile, [place(index, tile) for index in node.indices])

        def read(store: BufferStore) -> BufferStore:
            value = mapped(store.value, (TensorLoad, load))
            return BufferStore(store.buffer, value, list(store.indices))

        allocated = (tiles.get(a.buffer.__chandle__(), a.buffer) for a in self.allocations)
        steps = (RegisterStep(tuple(map(read, s.reads)), s.computing) for s in self.steps)
        return replace(self, allocations=tuple(map(AllocBuffer, allocated)), steps=tuple(steps))


def scalar_loops(function: PrimFunc) -> PrimFunc:
    """The function with no vectors in the loops that the pipeline is to take: it makes its own."""

    def inner(loop: For) -> For:
        if loop.kind != ForKind.VECTORIZED:
            return loop
        return For(loop.loop_var, loop.min, loop.extent, ForKind.SERIAL, loop.body, None, {})

    def outer(loop: For) -> For:
        if PIPELINE not in (loop.annotations or {}):
            return loop
        body = mapped(loop.body, (For, inner))
        return For(
            loop.loop_var, loop.min, loop.extent, loop.kind, body, None, loop.annotations
        )  # fmt: skip

    return with_body(function, mapped(function.body, (For, outer)))


def uses(statement: Stmt, variable: tirx.Var) -> bool:
    """Whether a variable stands in a statement."""
    found: list[tirx.Var] = []
    walk(statement, (tirx.Var, lambda v: found.append(v) if v.same_as(variable) else None))
    return bool(found)


def main_loop(kernel: EnclosingKernel, loop: For, analyzer: Analyzer) -> MainLoop:
    """Take a loop apart; raises NotUnderstoodError, with the statement, for anything else in it.

    `analyzer` knows the ranges of all variables around the loop, and its own.
    """
    instructions = stated_instructions(loop, kernel.instructions)
    if constant(loop.min) != 0:
        raise NotUnderstoodError(f"loop `{loop.loop_var.name}` does not start at 0")
    flat = list(unrolled(loop.body, analyzer))
    if len(flat) > _MOST_STATEMENTS:
        raise NotUnderstoodError(
            f"loop `{loop.loop_var.name}` has {len(flat)} statements when unrolled"
        )
    own = {s.buffer.__chandle__(): s for s in flat if isinstance(s, AllocBuffer)}
    statements = [s for s in flat if not isinstance(s, AllocBuffer)]
    kinds = [kind_of(store_of(s)) for s in statements]
    copies = [s for s, kind in zip(statements, kinds, strict=True) if kind == "copy"]
    others = [store_of(s) for s, kind in zip(statements, kinds, strict=True) if kind != "copy"]
    if not copies:
        raise NotUnderstoodError("it has no copies into the LDS")
    _check_targets(loop, [store_of(s) for s in copies])
    _check_order(statements, kinds)
    kinds = [kind for kind in kinds if kind != "copy"]
    has_reads = "read" in kinds or not _stages(loop)
    if not has_reads or not any(instructions.has(s.value) for s in others):
        raise NotUnderstoodError("it has no reads of the LDS, or no matrix instruction")
    steps = register_steps(
        others, kinds, kernel.lane, kernel.reads, kernel.chip.wave_size, instructions
    )
    copied = {store_of(s).buffer.__chandle__() for s in copies}
    read = {load.source.__chandle__() for s in steps for r in s.reads for load in loads_of(r.value)}
    if read - copied:
        raise NotUnderstoodError("it reads LDS that it does not fill")
    return MainLoop(loop, tuple(own.values()), tuple(copies), tuple(steps), instructions)


def _stages(loop: For) -> int:
    """How many tiles of each operand there are in the LDS."""
    return int((loop.annotations or {}).get(PIPELINE, 1))


def _check_targets(loop: For, copies: Sequence[BufferStore]) -> None:
    """Copies are into the LDS, or where it has no stages into registers."""
    for store in copies:
        if (scope_of(store.buffer) == "local") == bool(_stages(loop)):
            raise NotUnderstoodError(
                f"`{store.buffer.name}[...] = {store.value}` has no place in it"
            )


def _check_order(statements: Sequence[Stmt], kinds: Sequence[str]) -> None:
    """All copies may be done first: none is into a tile that has been read before."""
    read: set[int] = set()
    for statement, kind in zip(statements, kinds, strict=True):
        if kind == "read":
            read |= {load.source.__chandle__() for load in loads_of(store_of(statement).value)}
        elif kind == "copy" and store_of(statement).buffer.__chandle__() in read:
            raise NotUnderstoodError(
                f"not all copies into `{store_of(statement).buffer.name}` come before its reads"
            )

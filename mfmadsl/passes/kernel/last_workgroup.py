"""A second kernel that the last workgroups of the first one run: one launch in place of two.

Where workgroups share a tile's sums, each leaves its part in a workspace, and another kernel adds
up the parts. Between two launches lies more time than that takes. So a block of the second kernel
may be annotated: a workgroup of it needs what those of the first one have left that stand at the
same place of the grid, whatever their part, and no more. The first kernel's workgroups then count
how many have come, in a word for each tile, and the last one goes on:

    part[z, y, x] = ...; release; n = arrived[y, x]++; if n == parts - 1: acquire; the second kernel

The counts are 0 before a launch, and the last workgroup leaves them so: memory of that kind is a
workspace that is `zero`. No scheme does without. Of memory that may hold anything, it may hold what
the other parts' workgroups would have left, and no workgroup can tell that they have not run.

TVM's own host code gives memory that holds anything, so there both kernels are launched.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import mul

from tvm import tirx
from tvm.ir import TensorLoad
from tvm.s_tir import SBlock, SBlockRealize
from tvm.sym import Analyzer
from tvm.tirx import (
    AllocBuffer,
    AttrStmt,
    Buffer,
    BufferStore,
    Evaluate,
    Expr,
    For,
    IfThenElse,
    PrimFunc,
    SeqStmt,
    Stmt,
)

from mfmadsl.passes.kernel.store_bounds import asked_ahead
from mfmadsl.passes.tir import device
from mfmadsl.passes.tir.error import LoweringError
from mfmadsl.passes.tir.expression import (
    constant,
    i32,
    loads_of,
    scope_of,
    substitute,
)
from mfmadsl.passes.tir.rewrite import with_body
from mfmadsl.passes.tir.walk import mapped, walk

LAST_WORKGROUP = "mfmadsl.last_workgroup"
"""The annotation of a block of a kernel that the last workgroups of the one before it may run. Its
value is how many rows of a part, its last dimension but one, the block needs; 0 for all of them."""

_COUNTED = "mfmadsl.counted"
"""The attribute of a function: {a workspace that is written by parts: the name of the counts}."""

_AXES = ("x", "y", "z")


@dataclass(frozen=True)
class Arrivals:
    """Counts of workgroups: what they are called, and of how many tiles."""

    name: str
    tiles: Expr


def counted(function: PrimFunc) -> tuple[PrimFunc, tuple[Arrivals, ...]]:
    """The function with its second kernels marked, for `by_last_workgroups` to move, and the counts
    that this takes.

    Raises LoweringError for an annotation at a block that reads no workspace.
    """
    root = getattr(function.body, "block", None)
    allocated = [] if root is None else [b for b in root.alloc_buffers if scope_of(b) == "global"]
    names = {str(each.name) for each in (*function.params, *allocated)}
    marked: dict[str, str] = {}
    found: list[Arrivals] = []
    bounds: list[tuple[Buffer, Expr]] = []
    loops: list[For] = []

    def block(node: SBlock) -> None:
        if LAST_WORKGROUP not in (node.annotations or {}):
            return
        sources = [read.source for read in loads_of(node)]
        parts = [b for b in allocated if any(map(b.same_as, sources))]
        if not parts:
            raise LoweringError(
                f"block `{node.name_hint}`: annotation {LAST_WORKGROUP}: it reads no workspace that"
                " another kernel has written"
            )
        rows = constant(node.annotations[LAST_WORKGROUP])
        if rows is None or rows < 0 or (rows and len(parts[0].shape) < 2):
            raise LoweringError(
                f"block `{node.name_hint}`: annotation {LAST_WORKGROUP}: is how many rows of a part"
                f" it needs, or 0 for all, not {node.annotations[LAST_WORKGROUP]}"
            )
        if rows:
            bounds.append((parts[0], i32(rows)))
        name = _unused("arrived", names)
        names.add(name)
        marked[str(parts[0].name)] = name
        inside = [loop for loop in loops if _holds(loop, node)]
        grid = [loop.extent for loop in inside if _is_of_grid(loop)]
        found.append(Arrivals(name, reduce(mul, grid, i32(1))))

    walk(function.body, (For, loops.append))
    walk(function.body, (SBlock, block))
    if not found:
        return function, ()
    for parts, rows in bounds:
        function = _of_rows(function, parts, rows)
    return function.with_attr(_COUNTED, marked), tuple(found)


def _of_rows(function: PrimFunc, parts: Buffer, rows: Expr) -> PrimFunc:
    """The function, which stores no other rows of the parts: of a tile at an edge, and more so of
    one that is taller than the matrix, they would cost as much as those that are needed."""

    def bounded(node: SBlockRealize) -> SBlockRealize:
        block = node.block
        written = [region for region in block.writes if region.source.same_as(parts)]
        stores = isinstance(block.body, BufferStore) and bool(written)
        if not stores:
            return node
        row = written[0].region[-2].min
        values = {
            axis.var: value for axis, value in zip(block.iter_vars, node.iter_values, strict=True)
        }
        row = substitute(row, values)
        inside = row < _as(rows, str(row.ty.dtype))
        asked = inside if constant(node.predicate) == 1 else tirx.And(node.predicate, inside)
        return SBlockRealize(list(node.iter_values), asked, block)

    return with_body(function, mapped(function.body, (SBlockRealize, bounded)))


def _unused(name: str, taken: set[str]) -> str:
    number = 0
    while (own := f"{name}_{number}" if number else name) in taken:
        number += 1
    return own


def _holds(loop: For, block: SBlock) -> bool:
    inside: list[SBlock] = []
    walk(loop.body, (SBlock, inside.append))
    return any(map(block.same_as, inside))


def _is_of_grid(loop: For) -> bool:
    binding = loop.thread_binding
    return binding is not None and str(binding.thread_tag).startswith("blockIdx")


def by_last_workgroups(function: PrimFunc) -> PrimFunc:
    """The function, lowered up to kernels, with those that `counted` has marked moved into the
    kernels before them.

    Raises LoweringError where the two kernels do not fit.
    """
    marked = {} if function.attrs is None else dict(function.attrs.get(_COUNTED, {}))
    if not marked:
        return function
    moved: list[str] = []

    def sequence(node: SeqStmt) -> Stmt:
        parts = list(node.seq)
        for name, counts in marked.items():
            stored = [n for n, part in enumerate(parts) if _is_kernel(part) and _stores(part, name)]
            read = [n for n, part in enumerate(parts) if _is_kernel(part) and _loads(part, name)]
            if not stored or not read:
                continue
            if len(stored) > 1 or read != [stored[0] + 1]:
                raise _refusal(name, "is written by one kernel, and read by the one behind it")
            parts[stored[0] : read[0] + 1] = _joined(
                name, str(counts), parts[stored[0]], parts[read[0]]
            )
            moved.append(str(name))
        return parts[0] if len(parts) == 1 else SeqStmt(parts)

    body = mapped(function.body, (SeqStmt, sequence))
    if len(moved) < len(marked):
        left = next(name for name in marked if name not in moved)
        raise _refusal(str(left), "is written by one kernel, and read by the one behind it")
    return with_body(function, body).without_attr(_COUNTED)


def _refusal(workspace: str, said: str) -> LoweringError:
    return LoweringError(f"annotation {LAST_WORKGROUP}: the workspace `{workspace}` {said}")


def _is_kernel(statement: Stmt) -> bool:
    return isinstance(statement, AttrStmt) and statement.attr_key == "thread_extent"


def _stores(statement: Stmt, name: str) -> bool:
    found: list[BufferStore] = []
    walk(statement, (BufferStore, found.append))
    return any(str(each.buffer.name) == name for each in found)


def _loads(statement: Stmt, name: str) -> bool:
    return any(str(load.source.name) == name for load in loads_of(statement))


@dataclass(frozen=True)
class _Threads:
    """What a kernel is launched with, by tags such as `blockIdx.x`, and what its threads do."""

    axes: dict[str, AttrStmt]
    body: Stmt

    def extent(self, tag: str) -> Expr:
        """How many there are along an axis."""
        return _narrow(self.axes[tag].value) if tag in self.axes else i32(1)

    def place(self, tag: str) -> Expr:
        """Which one this is."""
        return _narrow(self.axes[tag].node.var) if tag in self.axes else i32(0)


def _threads(kernel: Stmt) -> _Threads:
    axes: dict[str, AttrStmt] = {}
    while isinstance(kernel, AttrStmt) and kernel.attr_key == "thread_extent":
        axes[str(kernel.node.thread_tag)] = kernel
        kernel = kernel.body
    return _Threads(axes, kernel)


def _joined(workspace: str, counts: str, first: Stmt, second: Stmt) -> list[Stmt]:
    """(the allocation of the counts, the first kernel with what its last workgroups do)."""
    one, other = _threads(first), _threads(second)
    analyzer = Analyzer()
    for tag in ("threadIdx.x", "threadIdx.y", "threadIdx.z", "blockIdx.x", "blockIdx.y"):
        if not analyzer.can_prove_equal(one.extent(tag), other.extent(tag)):
            raise _refusal(
                workspace,
                f"is written with {tag} of {one.extent(tag)}, and read with {other.extent(tag)}",
            )
    layers, all_layers = other.extent("blockIdx.z"), one.extent("blockIdx.z")
    parts = analyzer.simplify(tirx.floordiv(all_layers, layers))
    if not analyzer.can_prove_equal(parts * layers, all_layers):
        raise _refusal(
            workspace, f"has blockIdx.z of {all_layers}, which is no multiple of {layers}"
        )
    own = {f"blockIdx.{axis}": one.place(f"blockIdx.{axis}") for axis in _AXES}
    own["blockIdx.z"] = analyzer.simplify(tirx.floormod(own["blockIdx.z"], layers))
    own |= {f"threadIdx.{axis}": one.place(f"threadIdx.{axis}") for axis in _AXES}
    taken = {
        statement.node.var: _as(own[tag], str(statement.node.var.ty.dtype))
        for tag, statement in other.axes.items()
    }
    extents = [other.extent(f"blockIdx.{axis}") for axis in _AXES]
    tile = (own["blockIdx.z"] * extents[1] + own["blockIdx.y"]) * extents[0] + own["blockIdx.x"]
    memory = _buffer(counts, reduce(mul, extents), "global")
    last = asked_ahead(substitute(other.body, taken))
    whole = _with_last(one, memory, tile, parts, _loaded_first(last, workspace))
    for statement in reversed(list(one.axes.values())):
        whole = AttrStmt(statement.node, statement.attr_key, statement.value, whole)
    return [AllocBuffer(memory), whole]


def _loaded_first(last: Stmt, workspace: str) -> Stmt:
    """What loads several parts into registers does so before anything is made of the first: LLVM
    would have one element after the other come."""

    def loads(statement: Stmt) -> bool:
        return (
            isinstance(statement, BufferStore)
            and scope_of(statement.buffer) == "local"
            and isinstance(statement.value, TensorLoad)
            and str(statement.value.source.name) == workspace
        )

    def sequence(node: SeqStmt) -> Stmt:
        found = [n for n, part in enumerate(node.seq) if loads(part)]
        if len(found) < 2 or found[-1] - found[0] >= len(found):
            return node
        behind = found[-1] + 1
        return SeqStmt([*node.seq[:behind], device.keep_order(), *node.seq[behind:]])

    return mapped(last, (SeqStmt, sequence))


def _with_last(one: _Threads, counts: Buffer, tile: Expr, parts: Expr, last: Stmt) -> Stmt:
    """What the threads of the first kernel do, and then those of the last workgroup of a tile."""
    here = _buffer(f"{counts.name}_before", i32(1), "shared")
    zero = i32(0)
    threads = [tag for tag in one.axes if tag.startswith("threadIdx")]
    is_first: list[Expr] = [tirx.EQ(one.place(tag), zero) for tag in threads]
    counted_up = device.call("int32", "arrive", counts.data, tile, parts - 1)
    asked = tirx.EQ(device.uniform(tirx.BufferLoad(here, [zero])), parts - 1)
    acquired = Evaluate(device.call("int32", "acquire"))
    body = list(one.body.seq) if isinstance(one.body, SeqStmt) else [one.body]
    return SeqStmt(
        [
            *body,
            AllocBuffer(here),
            Evaluate(device.call("int32", "release")),
            device.barrier(),
            IfThenElse(reduce(tirx.And, is_first), BufferStore(here, counted_up, [zero]), None),
            device.barrier(),
            IfThenElse(asked, SeqStmt([acquired, last]), None),
        ]
    )


def _buffer(name: str, extent: Expr, scope: str) -> Buffer:
    return tirx.decl_buffer((extent,), "int32", name, scope=scope)


def _narrow(extent: Expr) -> Expr:
    return _as(extent, "int32")


def _as(value: Expr, dtype: str) -> Expr:
    return value if str(value.ty.dtype) == dtype else tirx.Cast(dtype, value)

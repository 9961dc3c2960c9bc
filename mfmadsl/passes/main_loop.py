"""A main loop as the pipeline sees it: copies into the LDS, then reads of it and computing.

    for k in serial(n):                         annotated "mfmadsl.pipeline"
        shared[...] = ... global[...] ...       copies, ahead of the tile's first read
        (local[...] = shared[...]               reads of a register step: fragments
         local[...] = ... local[...] ...)*      computing: matrix instructions and others

Whatever else stands in it, or depends on what it must not, makes it no such loop, and says why.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import tvm_ffi
from tvm import ir, tirx
from tvm.ir import Call, TensorLoad
from tvm.sym import Analyzer
from tvm.target.codegen import llvm_get_intrinsic_name
from tvm.tirx import (
    AllocBuffer,
    BufferStore,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    PrimFunc,
    SeqStmt,
)

from mfmadsl.model import Read
from mfmadsl.passes.error import NotUnderstoodError
from mfmadsl.passes.exchange import exchanged
from mfmadsl.passes.expression import (
    aligned,
    bits_of,
    constant,
    loads_of,
    name_of,
    narrowed,
    ramp,
    scope_of,
    substitute,
)
from mfmadsl.passes.overlap import Statement, overlapped

PIPELINE = "mfmadsl.pipeline"
"""The annotation of a loop that the pipeline is to take; its value is the number of stages."""

_MOST_STATEMENTS = 20000
_MATRIX = (".mfma.", ".smfmac.")


@dataclass(frozen=True)
class RegisterStep:
    """Reads of fragments, and the computing that follows them."""

    reads: tuple[BufferStore, ...]
    computing: tuple[BufferStore, ...]


@dataclass(frozen=True)
class MainLoop:
    """A loop that was understood: every statement scalar but for matrix instructions."""

    loop: For
    allocations: tuple[AllocBuffer, ...]
    copies: tuple[BufferStore | IfThenElse, ...]
    steps: tuple[RegisterStep, ...]

    @property
    def variable(self) -> tirx.Var:
        return self.loop.loop_var

    @property
    def is_sum(self) -> bool:
        """Whether the order of its turns does not matter: all that it computes is added up."""
        return all(
            is_matrix(statement.value) and not uses(statement, self.variable)
            for step in self.steps
            for statement in step.computing
        )


def scalar_loops(function: PrimFunc) -> PrimFunc:
    """The function with no vectors in the loops that the pipeline is to take: it makes its own."""

    def inner(loop: For) -> For:
        if loop.kind != ForKind.VECTORIZED:
            return loop
        return For(loop.loop_var, loop.min, loop.extent, ForKind.SERIAL, loop.body, None, {})

    def outer(loop: For) -> For:
        if PIPELINE not in (loop.annotations or {}):
            return loop
        body = tvm_ffi.structural_map(loop.body, (For, inner))
        return For(
            loop.loop_var, loop.min, loop.extent, loop.kind, body, None, loop.annotations
        )  # fmt: skip

    return function.with_body(tvm_ffi.structural_map(function.body, (For, outer)))


def is_matrix(value: Any) -> bool:
    """Whether a value is that of a matrix instruction, whose sums are one of its operands."""
    return isinstance(value, Call) and any(part in called(value) for part in _MATRIX)


def called(call: Call) -> str:
    """The function of LLVM, or of another module, that is called; "" for TVM's own."""
    if not call.args:
        return ""
    if name_of(call).startswith("call_llvm"):
        number = constant(call.args[0])
        return "" if number is None else str(llvm_get_intrinsic_name(number))
    first = call.args[0]
    return str(first.value) if isinstance(first, ir.StringImm) else ""


def uses(statement: Any, variable: tirx.Var) -> bool:
    found: list[tirx.Var] = []
    tvm_ffi.structural_walk(
        statement, (tirx.Var, lambda v: found.append(v) if v.same_as(variable) else None)
    )
    return bool(found)


def main_loop(
    loop: For, analyzer: Analyzer, lane: tirx.Var | None, available: Sequence[Read]
) -> MainLoop:
    """Take a loop apart; raises NotUnderstoodError, with the statement, for anything else in it.

    `analyzer` knows the ranges of all variables around it; `lane` is threadIdx.x, if that is a
    wave's lane, and `available` what the chip has of reads in which lanes exchange elements.
    """
    if constant(loop.min) != 0:
        raise NotUnderstoodError(f"loop `{loop.loop_var.name}` does not start at 0")
    flat = list(_flat(loop.body, analyzer))
    if len(flat) > _MOST_STATEMENTS:
        raise NotUnderstoodError(
            f"loop `{loop.loop_var.name}` has {len(flat)} statements when unrolled"
        )
    own = {s.buffer.__chandle__(): s for s in flat if isinstance(s, AllocBuffer)}
    statements = [s for s in flat if not isinstance(s, AllocBuffer)]
    kinds = [_kind(store_of(s)) for s in statements]
    copies = [s for s, kind in zip(statements, kinds, strict=True) if kind == "copy"]
    others = [s for s, kind in zip(statements, kinds, strict=True) if kind != "copy"]
    if not copies:
        raise NotUnderstoodError("it has no copies into the LDS")
    _check_order(statements, kinds)
    kinds = [kind for kind in kinds if kind != "copy"]
    if "read" not in kinds or not any(is_matrix(store_of(s).value) for s in others):
        raise NotUnderstoodError("it has no reads of the LDS, or no matrix instruction")
    steps = _register_steps(others, kinds, lane, available)
    copied = {store_of(s).buffer.__chandle__() for s in copies}
    read = {load.source.__chandle__() for s in steps for r in s.reads for load in loads_of(r.value)}
    if read - copied:
        raise NotUnderstoodError("it reads LDS that it does not fill")
    return MainLoop(loop, tuple(own.values()), tuple(copies), tuple(steps))


def _check_order(statements: Sequence[Any], kinds: Sequence[str]) -> None:
    """All copies may be done first: none is into a tile that has been read before."""
    read: set[int] = set()
    for statement, kind in zip(statements, kinds, strict=True):
        if kind == "read":
            read |= {load.source.__chandle__() for load in loads_of(statement.value)}
        elif kind == "copy" and store_of(statement).buffer.__chandle__() in read:
            raise NotUnderstoodError(
                f"not all copies into `{store_of(statement).buffer.name}` come before its reads"
            )


def store_of(statement: Any) -> BufferStore:
    """The store itself, of one that may stand in branches."""
    while isinstance(statement, IfThenElse):
        statement = statement.then_case
    return statement


def _flat(statement: Any, analyzer: Analyzer) -> Iterator[Any]:
    """The statements in order: inner loops unrolled, barriers left out, vectors of copies and of
    reads spelled out element by element."""
    if isinstance(statement, SeqStmt):
        for each in statement.seq:
            yield from _flat(each, analyzer)
    elif isinstance(statement, For):
        extent, start = constant(statement.extent), constant(statement.min)
        if extent is None or start is None or statement.thread_binding is not None:
            raise NotUnderstoodError(
                f"loop `{statement.loop_var.name}` inside it has no fixed extent"
            )
        for x in range(start, start + extent):
            number = tirx.const(x, str(statement.loop_var.ty.dtype))
            yield from _flat(substitute(statement.body, {statement.loop_var: number}), analyzer)
    elif isinstance(statement, AllocBuffer):
        yield statement
    elif isinstance(statement, BufferStore):
        yield from _scalars(statement, analyzer)
    elif isinstance(statement, Evaluate) and isinstance(statement.value, Call):
        if name_of(statement.value) != "tvm_storage_sync":
            raise NotUnderstoodError(f"`{statement.value}` has an effect")
    elif isinstance(statement, IfThenElse) and statement.else_case is None:
        for each in _flat(statement.then_case, analyzer):
            if isinstance(each, AllocBuffer) or _kind(store_of(each)) != "copy":
                raise NotUnderstoodError(f"it has a branch, on `{statement.condition}`")
            yield IfThenElse(analyzer.simplify(statement.condition), each, None)
    else:
        raise NotUnderstoodError(f"it has a {type(statement).__name__} in it")


def _scalars(store: BufferStore, analyzer: Analyzer) -> Iterator[BufferStore]:
    """A store of a vector as stores of elements, but for what computes in registers."""
    if len(store.indices) != 1:
        raise NotUnderstoodError(f"`{store.buffer.name}` is not flat")
    index, lanes = store.indices[0], 1
    if isinstance(index, tirx.Ramp):
        lanes = int(index.lanes)
    in_registers = scope_of(store.buffer) == "local"
    from_memory = any(scope_of(load.source) != "local" for load in loads_of(store.value))
    if in_registers and not from_memory:
        yield _simplified(store, analyzer)
        return
    for lane in range(lanes):
        place = index.base + index.stride * lane if lanes > 1 else index
        value = element_of(store.value, lane, lanes)
        yield _simplified(BufferStore(store.buffer, value, [place]), analyzer)


def element_of(value: Any, lane: int, lanes: int) -> Any:
    """One element of a vector; raises NotUnderstoodError where that cannot be told."""
    if lanes == 1:
        return value
    if isinstance(value, tirx.Ramp):
        return value.base + value.stride * lane
    if isinstance(value, tirx.Broadcast):
        return value.value
    if isinstance(value, TensorLoad):
        return tirx.BufferLoad(value.source, [element_of(i, lane, lanes) for i in value.indices])
    if isinstance(value, tirx.Cast):
        return tirx.Cast(_scalar_type(value), element_of(value.value, lane, lanes))
    if isinstance(value, tirx.Select):
        parts = (value.condition, value.true_value, value.false_value)
        return tirx.Select(*(_part(part, lane, lanes) for part in parts))
    if hasattr(value, "a") and hasattr(value, "b"):
        return type(value)(_part(value.a, lane, lanes), _part(value.b, lane, lanes))
    if isinstance(value, Call) and name_of(value) == "if_then_else":
        return tirx.if_then_else(*(_part(argument, lane, lanes) for argument in value.args))
    raise NotUnderstoodError(f"no element can be told of the vector `{value}`")


def _part(value: Any, lane: int, lanes: int) -> Any:
    """An element of an operand, which may be a scalar for all lanes."""
    kind = str(value.ty.dtype)
    return element_of(value, lane, lanes) if "x" in kind.removeprefix("custom") else value


def _scalar_type(value: Any) -> str:
    return str(value.ty.dtype).partition("x")[0]


def _simplified(store: BufferStore, analyzer: Analyzer) -> BufferStore:
    def load(node: TensorLoad) -> Any:
        near = scope_of(node.source) != "global"
        return tirx.BufferLoad(node.source, [_simple(i, analyzer, near) for i in node.indices])

    value = tvm_ffi.structural_map(store.value, (TensorLoad, load))
    return BufferStore(store.buffer, value, [_simple(i, analyzer, True) for i in store.indices])


def _simple(index: Any, analyzer: Analyzer, near: bool) -> Any:
    """An index, simplified; in 32 bits, if it is one of the LDS or of registers."""
    if isinstance(index, tirx.Ramp):
        stride = narrowed(index.stride) if near else index.stride
        return tirx.Ramp(_simple(index.base, analyzer, near), stride, index.lanes)
    index = narrowed(index) if near else index
    return index if isinstance(index, tirx.IntImm) else analyzer.simplify(index)


def _kind(statement: BufferStore) -> str:
    """What a statement does: "copy", "read" or "compute"."""
    target = scope_of(statement.buffer)
    sources = {scope_of(load.source) for load in loads_of(statement.value)}
    if target == "shared" and sources <= {"global"}:
        return "copy"
    if target == "local" and sources <= {"local"}:
        return "compute"
    if target == "local" and sources == {"shared"} and isinstance(statement.value, TensorLoad):
        return "read"
    raise NotUnderstoodError(
        f"`{statement.buffer.name}[...] = {statement.value}` has no place in it"
    )


def _register_steps(
    statements: Sequence[BufferStore], kinds: Sequence[str], lane: tirx.Var | None,
    available: Sequence[Read],
) -> list[RegisterStep]:  # fmt: skip
    grouped: list[tuple[list[BufferStore], list[BufferStore]]] = []
    for kind, statement in zip(kinds, statements, strict=True):
        if not grouped or (kind == "read" and grouped[-1][1]):
            grouped.append(([], []))
        grouped[-1][0 if kind == "read" else 1].append(statement)
    if not grouped[-1][1]:
        raise NotUnderstoodError("nothing is computed with what it reads last")
    versions = _versions([(reads, computing) for reads, computing in grouped])
    computed = _overlapped([list(_dealt(computing)) for _, computing in versions], versions)
    return [
        RegisterStep(tuple(exchanged(list(_wide(reads)), lane, available)), tuple(computing))
        for (reads, _), computing in zip(versions, computed, strict=True)
    ]


def _overlapped(
    computed: list[list[BufferStore]], versions: Sequence[_Step]
) -> list[list[BufferStore]]:
    """The computing of all register steps, with what is no matrix instruction spread."""
    try:
        steps = [[_statement(store) for store in step] for step in computed]
    except NotUnderstoodError:
        return computed  # of registers that are told at run time
    fragments = {read.buffer.__chandle__() for reads, _ in versions for read in reads}
    return [[s.store for s in step] for step in overlapped(steps, fragments)]


def _statement(store: BufferStore) -> Statement:
    return Statement(
        store,
        is_matrix(store.value),
        frozenset(
            (load.source.__chandle__(), n)
            for load in loads_of(store.value)
            for n in elements_of(load.indices[0])
        ),
        frozenset((store.buffer.__chandle__(), n) for n in elements_of(store.indices[0])),
    )


_Step = tuple[list[BufferStore], list[BufferStore]]


def _versions(steps: Sequence[_Step]) -> list[_Step]:
    """Fragments of each step in buffers of their own, so that the next step's can be read early."""
    version: dict[tuple[int, int], int] = {}  # (buffer, element) to the step that read it
    buffers: dict[tuple[int, int], Any] = {}
    read_at_all = {s.buffer.__chandle__() for reads, _ in steps for s in reads}
    last_use: dict[int, int] = {}

    def of_step(buffer: Any, step: int) -> Any:
        key = buffer.__chandle__(), step
        if key not in buffers:
            name = f"{buffer.name}_{step}" if step else buffer.name
            buffers[key] = tirx.decl_buffer(buffer.shape, buffer.dtype, name, scope="local")
        return buffers[key]

    def step_of(node: TensorLoad) -> int:
        handle = node.source.__chandle__()
        found = {version.get((handle, element)) for element in elements_of(node.indices[0])}
        if len(found) != 1 or None in found:
            raise NotUnderstoodError(
                f"`{node.source.name}` is used before, or only partly, it is read"
            )
        (step,) = found
        assert step is not None
        return step

    def load(node: TensorLoad) -> Any:
        if node.source.__chandle__() not in read_at_all:
            return node
        return tirx.BufferLoad(of_step(node.source, step_of(node)), list(node.indices))

    renamed = []
    for number, (reads, computing) in enumerate(steps):
        new_reads = []
        for s in reads:
            for element in elements_of(s.indices[0]):
                version[s.buffer.__chandle__(), element] = number
            new_reads.append(
                BufferStore(of_step(s.buffer, number), s.value, list(s.indices))
            )  # fmt: skip
        for s in computing:
            if s.buffer.__chandle__() in read_at_all:
                raise NotUnderstoodError(f"`{s.buffer.name}` is read from the LDS, and computed")
            # Asked here, since an exception would lose its type on its way through TVM.
            for used in loads_of(s.value):
                if used.source.__chandle__() in read_at_all:
                    step = step_of(used)
                    last_use[step] = max(last_use.get(step, 0), number)
        computed = [
            BufferStore(
                s.buffer, tvm_ffi.structural_map(s.value, (TensorLoad, load)), list(s.indices)
            )
            for s in computing
        ]
        renamed.append((new_reads, computed))
    if last_use.get(0, 0) == len(steps) - 1 > 0:
        raise NotUnderstoodError("the fragments that are read first are used to the end")
    return renamed


def elements_of(index: Any) -> range:
    """The elements of an array of registers that an index names."""
    if isinstance(index, tirx.Ramp):
        start, stride = constant(index.base), constant(index.stride)
        if start is not None and stride == 1:
            return range(start, start + int(index.lanes))
    number = constant(index)
    if number is None:
        raise NotUnderstoodError(f"registers have no address, but `{index}` is one")
    return range(number, number + 1)


def _wide(reads: Iterable[BufferStore]) -> Iterator[BufferStore]:
    """Reads of neighbours as one, of at most 16 bytes, and aligned to as many."""
    run: list[BufferStore] = []
    analyzer = Analyzer()

    def flush() -> Iterator[BufferStore]:
        for piece in aligned(run, lambda read: read.value.indices[0]):
            first = piece[0]
            (load,) = loads_of(first.value)
            value = tirx.BufferLoad(load.source, [ramp(load.indices[0], len(piece))])
            yield BufferStore(first.buffer, value, [ramp(first.indices[0], len(piece))])
        run.clear()

    for read in reads:
        size = bits_of(read.buffer.dtype) // 8
        if run and not (
            len(run) * size < 16
            and read.buffer.same_as(run[-1].buffer)
            and read.value.source.same_as(run[-1].value.source)
            and constant(read.indices[0]) == (constant(run[-1].indices[0]) or 0) + 1
            and analyzer.can_prove_equal(read.value.indices[0] - run[-1].value.indices[0], 1)
        ):
            yield from flush()
        run.append(read)
    yield from flush()


def _dealt(computing: Sequence[BufferStore]) -> Iterator[BufferStore]:
    """Matrix instructions that add to the same sum as far apart as they can be."""
    run: list[BufferStore] = []
    for statement in computing:
        if is_matrix(statement.value):
            run.extend(_spelled(statement))
        else:
            yield from _by_turns(run)
            run = []
            yield statement
    yield from _by_turns(run)


def _spelled(statement: BufferStore) -> list[BufferStore]:
    """Matrix instructions whose sums are those of another one, one after the other."""
    chain: list[BufferStore] = []
    value = statement.value
    own = tirx.BufferLoad(statement.buffer, list(statement.indices))
    while True:
        inner = [n for n, argument in enumerate(value.args) if is_matrix(argument)]
        if not inner:
            chain.append(BufferStore(statement.buffer, value, list(statement.indices)))
            return chain[::-1]
        arguments = list(value.args)
        arguments[inner[0]], nested = own, arguments[inner[0]]
        rewritten = Call(value.op, arguments, attrs=value.attrs, ret_ty=value.ty)
        chain.append(BufferStore(statement.buffer, rewritten, list(statement.indices)))
        value = nested


def _by_turns(products: Sequence[BufferStore]) -> Iterator[BufferStore]:
    """One of each sum in turn; as they were if one takes the sums of another as its factor."""
    chains: dict[tuple[int, int], list[BufferStore]] = {}
    for statement in products:
        key = statement.buffer.__chandle__(), elements_of(statement.indices[0])[0]
        chains.setdefault(key, []).append(statement)
    targets = {s.buffer.__chandle__() for s in products}
    independent = all(
        load.source.__chandle__() not in targets
        or (
            load.source.same_as(s.buffer)
            and elements_of(load.indices[0]) == elements_of(s.indices[0])
        )
        for s in products
        for load in loads_of(s.value)
    )
    if not independent:
        yield from products
        return
    for turn in range(max(map(len, chains.values()), default=0)):
        for chain in chains.values():
            if turn < len(chain):
                yield chain[turn]

"""Register steps: the reads of fragments, and the computing that follows them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tvm import tirx
from tvm.ir import TensorLoad
from tvm.sym import Analyzer
from tvm.tirx import Buffer, BufferStore, Expr

from mfmadsl.model import Read
from mfmadsl.passes.main_loop.analysis.element_wise import Statement, overlapped
from mfmadsl.passes.main_loop.analysis.exchange import exchanged
from mfmadsl.passes.main_loop.analysis.matrix import MatrixInstructions, dealt
from mfmadsl.passes.main_loop.analysis.placed_sums import placed_sums
from mfmadsl.passes.main_loop.analysis.read_once import Step, read_once
from mfmadsl.passes.tir.error import NotUnderstoodError
from mfmadsl.passes.tir.expression import (
    aligned,
    bits_of,
    constant,
    distance,
    elements_of,
    load_of,
    loads_of,
    ramp,
)
from mfmadsl.passes.tir.walk import mapped


@dataclass(frozen=True)
class RegisterStep:
    """Reads of fragments, and the computing that follows them."""

    reads: tuple[BufferStore, ...]
    computing: tuple[BufferStore, ...]


def register_steps(
    statements: Sequence[BufferStore], kinds: Sequence[str], lane: tirx.Var | None,
    available: Sequence[Read], lanes: int, instructions: MatrixInstructions,
) -> list[RegisterStep]:  # fmt: skip
    """The statements of a loop, in steps that read fragments and then compute with them."""
    grouped: list[tuple[list[BufferStore], list[BufferStore]]] = []
    for kind, statement in zip(kinds, statements, strict=True):
        if not grouped or (kind == "read" and grouped[-1][1]):
            grouped.append(([], []))
        grouped[-1][0 if kind == "read" else 1].append(statement)
    if not grouped[-1][1]:
        raise NotUnderstoodError("nothing is computed with what it reads last")
    versions = _versions(read_once(list(_with_instructions(grouped, instructions))))
    computed = _overlapped(
        [list(dealt(computing, instructions)) for _, computing in versions], versions, instructions
    )
    return [
        RegisterStep(tuple(exchanged(list(_wide(reads)), lane, available, lanes)), tuple(computing))
        for (reads, _), computing in zip(versions, computed, strict=True)
    ]


def _with_instructions(steps: Iterable[Step], instructions: MatrixInstructions) -> Iterator[Step]:
    """The steps, with those that compute without matrix instructions as part of the one before:
    its instructions hide their reads."""
    last: Step | None = None
    for reads, computing in steps:
        alone = not any(instructions.has(s.value) for s in computing)
        if last is not None and alone and _arrays(last).isdisjoint(_arrays((reads, []))):
            last = [*last[0], *reads], [*last[1], *computing]
            continue
        if last is not None:
            yield last
        last = reads, computing
    if last is not None:
        yield last


def _arrays(step: Step) -> set[int]:
    """The registers, by the handles of their arrays, that a step fills or computes with."""
    reads, computing = step
    used = {load.source.__chandle__() for s in computing for load in loads_of(s.value)}
    return used | {s.buffer.__chandle__() for s in reads}


def _versions(steps: Sequence[Step]) -> list[Step]:
    """Fragments of each step in buffers of their own, so that the next step's can be read early."""
    version: dict[tuple[int, int], int] = {}  # (buffer, element) to the step that read it
    buffers: dict[tuple[int, int], Buffer] = {}
    read_at_all = {s.buffer.__chandle__() for reads, _ in steps for s in reads}

    def of_step(buffer: Buffer, step: int) -> Buffer:
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

    def load(node: TensorLoad) -> Expr:
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
                    step_of(used)
        computed = [
            BufferStore(s.buffer, mapped(s.value, (TensorLoad, load)), list(s.indices))
            for s in computing
        ]
        renamed.append((new_reads, computed))
    return renamed


def _wide(reads: Iterable[BufferStore]) -> Iterator[BufferStore]:
    """Reads of neighbours as one, of at most 16 bytes, and aligned to as many."""
    run: list[BufferStore] = []
    analyzer = Analyzer()

    def flush() -> Iterator[BufferStore]:
        for piece in aligned(run, lambda read: load_of(read).indices[0]):
            first = piece[0]
            load = load_of(first)
            value = tirx.BufferLoad(load.source, [ramp(load.indices[0], len(piece))])
            yield BufferStore(first.buffer, value, [ramp(first.indices[0], len(piece))])
        run.clear()

    for read in reads:
        size = bits_of(read.buffer.dtype) // 8
        if run and not (
            len(run) * size < 16
            and read.buffer.same_as(run[-1].buffer)
            and load_of(read).source.same_as(load_of(run[-1]).source)
            and constant(read.indices[0]) == (constant(run[-1].indices[0]) or 0) + 1
            and distance(load_of(read).indices[0], load_of(run[-1]).indices[0], analyzer) == 1
        ):
            yield from flush()
        run.append(read)
    yield from flush()


def _overlapped(
    computed: list[list[BufferStore]], versions: Sequence[Step], instructions: MatrixInstructions
) -> list[list[BufferStore]]:
    """The computing of all register steps, with what is no matrix instruction spread."""
    try:
        steps = [[_statement(store, instructions) for store in step] for step in computed]
    except NotUnderstoodError:
        return computed  # of registers that are told at run time
    fragments = {read.buffer.__chandle__() for reads, _ in versions for read in reads}
    return [list(placed_sums(step)) for step in overlapped(steps, fragments)]


def _statement(store: BufferStore, instructions: MatrixInstructions) -> Statement:
    return Statement(
        store,
        instructions.has(store.value),
        frozenset(
            (load.source.__chandle__(), n)
            for load in loads_of(store.value)
            for n in elements_of(load.indices[0])
        ),
        frozenset((store.buffer.__chandle__(), n) for n in elements_of(store.indices[0])),
    )

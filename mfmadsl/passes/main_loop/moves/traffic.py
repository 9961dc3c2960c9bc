"""The traffic of a main loop: its loads, its stores to the LDS and reads of it, and where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import tvm_ffi
from tvm import ir, tirx
from tvm.ir import TensorLoad
from tvm.sym import Analyzer
from tvm.tirx import BufferStore, Expr, For, Stmt

from mfmadsl.passes.main_loop.analysis.halves import in_halves, sum_words, words
from mfmadsl.passes.main_loop.analysis.joined import joined
from mfmadsl.passes.main_loop.analysis.kernel import EnclosingKernel
from mfmadsl.passes.main_loop.analysis.loop import Loop
from mfmadsl.passes.main_loop.analysis.parsed import MainLoop, main_loop
from mfmadsl.passes.main_loop.analysis.register_step import RegisterStep
from mfmadsl.passes.main_loop.lds.places import Places
from mfmadsl.passes.main_loop.moves.checks import check_buffers, check_places
from mfmadsl.passes.main_loop.moves.direct import DirectLoad, direct_load
from mfmadsl.passes.main_loop.moves.element import (
    WIDEST,
    Element,
    element,
    neighbours,
    runs,
    sources,
    with_common_places,
)
from mfmadsl.passes.main_loop.moves.fetch import Fetch, inside, loadable
from mfmadsl.passes.main_loop.moves.gathered import Gathered, gathered_ahead
from mfmadsl.passes.main_loop.moves.landing import Landing, landing
from mfmadsl.passes.main_loop.moves.named import Known
from mfmadsl.passes.main_loop.moves.pieces import reads_of_pieces
from mfmadsl.passes.main_loop.moves.put import Home, Put
from mfmadsl.passes.main_loop.moves.room import copied_by_all, tiles_with_room
from mfmadsl.passes.main_loop.moves.row_values import values_ahead
from mfmadsl.passes.main_loop.moves.short_tile import with_short_tiles
from mfmadsl.passes.main_loop.moves.swizzles import swizzles_of
from mfmadsl.passes.tir import device
from mfmadsl.passes.tir.annotation import EDGES, MOVING_EDGES, SWIZZLE
from mfmadsl.passes.tir.bounds import bind_loop
from mfmadsl.passes.tir.expression import constant
from mfmadsl.passes.tir.walk import mapped

_OTHER_REGISTERS = 48  # a lane's, beside sums and fragments


@dataclass(frozen=True)
class Traffic:
    """All that a loop moves, each thing with its place.

    `steps` are the reads and the computing of each register step. `direct` has a load straight into
    the LDS for each put, where all of them can be, and `landing` when those may start. `gathered`
    are the statements that read indices, and what rows are scaled with, ahead of the loop.
    """

    kernel: EnclosingKernel
    main: MainLoop
    places: Places
    fetches: tuple[Fetch, ...]
    puts: tuple[Put, ...]
    steps: tuple[RegisterStep, ...]
    direct: tuple[DirectLoad, ...] | None
    landing: Landing | None
    gathered: tuple[Stmt, ...] = ()

    @property
    def spans(self) -> list[tuple[str, Expr]]:
        """(buffer, bytes) of what is fetched, where that is known at the launch only."""
        return [
            (str(fetch.run[0].buffer.name), fetch.address.span)
            for fetch in self.fetches
            if constant(fetch.address.span) is None
        ]


def traffic_of(kernel: EnclosingKernel, loop: For, stages: int) -> Traffic:
    """The traffic of a loop, of which the LDS holds so many stages.

    Raises NotUnderstoodError for a loop that the pipeline cannot take.
    """
    annotations = loop.annotations or {}
    analyzer = kernel.analyzer.clone()
    bind_loop(analyzer, loop)
    parsed = main_loop(kernel, loop, analyzer)
    check_buffers(parsed, kernel.function)
    copies, values = values_ahead(parsed.copies, loop)
    copies, gathered = gathered_ahead(copies, loop, kernel, analyzer)
    narrow = replace(parsed, copies=tuple(copies))
    some = with_common_places([element(s) for s in narrow.copies], analyzer)
    gathered = gathered.within(some, analyzer, kernel.threads.counts)
    gathered.bind(analyzer)
    check_places(narrow, some)
    counts, chip = kernel.threads.counts, kernel.chip
    # In a single iteration nothing tells the end of K from other edges.
    named = str(annotations.get(EDGES, "")).split() if constant(loop.extent) != 1 else []
    some, narrow = with_short_tiles(some, narrow, named, counts, analyzer)
    rooms = tiles_with_room(some, narrow, kernel.function, counts, stages, chip)
    elements = [copied_by_all(each, rooms) for each in some]
    main = narrow.with_tiles({handle: room.buffer for handle, room in rooms.items()})
    loose = {e.buffer.__chandle__() for e in elements if e.buffer.name in named}
    facts = _facts(kernel, loop, analyzer, gathered)
    neighbouring = neighbours(elements)
    swizzled = stages and int(annotations.get(SWIZZLE, 1))
    swizzles = swizzles_of(kernel, main, neighbouring) if swizzled else {}
    places = Places(swizzles, counts, kernel.lean)
    fetches, home = _fetches(elements, facts, loose)
    puts = [
        Put(tuple(run), home, loop.loop_var, places.index(run[0].place, run[0].buffer))
        for run in neighbouring
    ]
    direct = _direct(kernel, facts, places, puts, loose, len(fetches)) if stages > 1 else None
    steps, halves = _register_steps(kernel, main, is_direct=bool(direct))
    placed = tuple(
        RegisterStep(tuple(_placed(r, places) for r in step.reads), step.computing)
        for step in steps
    )
    land = _landing(kernel, puts, steps, halves, stages) if direct else None
    found = None if direct is None else tuple(direct)
    meeting = [device.wait_for_lds(chip), device.barrier()] if values else []
    reads = (*meeting, *values, *gathered.statements(counts))
    return Traffic(kernel, main, places, tuple(fetches), tuple(puts), placed, found, land, reads)


def _facts(kernel: EnclosingKernel, loop: For, analyzer: Analyzer, gathered: Gathered) -> Loop:
    extent, before_last = loop.extent, kernel.analyzer.clone()
    count = constant(extent)
    least = tirx.const(1, str(extent.ty.dtype))
    most = tirx.max(extent - 1, least) if count is None else max(count - 1, 1)
    before_last.bind(loop.loop_var, ir.Range(0, most), True)
    gathered.bind(before_last)
    symbols = frozenset(str(p.name) for p in kernel.function.params)
    return Loop(
        loop.loop_var, extent, analyzer, before_last, kernel.threads.counts, symbols, kernel.lean,
        gathered.values, bool(int((loop.annotations or {}).get(MOVING_EDGES, 0))),
    )  # fmt: skip


def _fetches(elements: Sequence[Element], facts: Loop, loose: set[int]) -> tuple[list[Fetch], Home]:
    """The fetches of each tile: what two of them are made of is fetched for each."""
    found: list[Fetch] = []
    home: Home = {}
    known: Known = []
    for tile in dict.fromkeys(e.buffer.__chandle__() for e in elements):
        wanted = sources(e for e in elements if e.buffer.__chandle__() == tile)
        together = runs(wanted, lambda s: s.place, lambda s: s.buffer, lambda s: WIDEST // s.size)
        for run in [piece for each in together for piece in loadable(each)]:
            exact = tile not in loose
            for fetch in inside(run, facts, len(found), exact, known):
                found.append(fetch)
                for number, source in enumerate(fetch.run):
                    place = tvm_ffi.StructuralKey(source.place)
                    home[tile, source.buffer.__chandle__(), place] = fetch, number
    return found, home


def _direct(
    kernel: EnclosingKernel,
    facts: Loop,
    places: Places,
    puts: Sequence[Put],
    loose: set[int],
    number: int,
) -> list[DirectLoad] | None:
    """One for each put, numbered from `number` on, or None where one of them cannot."""
    lane = kernel.lane
    if lane is None or not kernel.chip.wide_loads_to_lds:
        return None
    loads: list[DirectLoad] = []
    for put in puts:
        swizzle, exact = places.of(put.buffer), put.buffer.__chandle__() not in loose
        made = direct_load(put, lane, swizzle, facts, exact, number + len(loads))
        if made is None:
            return None
        loads.append(made)
    return loads


def _register_steps(
    kernel: EnclosingKernel, main: MainLoop, is_direct: bool
) -> tuple[Sequence[RegisterStep], bool]:
    """The register steps, and whether they take the sums by halves, if registers do."""
    if is_direct and not kernel.lean:
        for halves in in_halves(main.steps, main.instructions):
            if _fits(kernel, halves):
                return halves, True
    longer = joined(main.steps, kernel.chip, main.instructions)
    return (longer if _fits(kernel, longer) else main.steps), False


def _fits(kernel: EnclosingKernel, steps: Sequence[RegisterStep]) -> bool:
    """Whether the registers of a lane hold what the steps need at a time."""
    needed = sum_words(steps) + words(steps) + _OTHER_REGISTERS
    return needed <= kernel.registers


def _placed(read: BufferStore, places: Places) -> BufferStore:
    """A read of where its elements are."""

    def load(node: TensorLoad) -> Expr:
        index = node.indices[0]
        if not isinstance(index, tirx.Ramp):
            return tirx.BufferLoad(node.source, [places.index(index, node.source)])
        base = places.index(index.base, node.source)
        return tirx.BufferLoad(node.source, [tirx.Ramp(base, index.stride, index.lanes)])

    value = mapped(read.value, (TensorLoad, load))
    return BufferStore(read.buffer, value, list(read.indices))


def _landing(
    kernel: EnclosingKernel,
    puts: Sequence[Put],
    steps: Sequence[RegisterStep],
    halves: bool,
    stages: int,
) -> Landing:
    lane = kernel.threads.variables["threadIdx.x"]
    reads = reads_of_pieces(puts, steps, lane, kernel.threads.counts)
    # Steps that go over the rows of a tile free those of the first half by themselves.
    freed = any(last < len(steps) // 2 for _, last in reads)
    return landing(reads, len(steps), halves or freed, stages)

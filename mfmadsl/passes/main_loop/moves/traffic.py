"""The traffic of a main loop: its loads, its stores to the LDS and reads of it, and where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, prod

import numpy as np
import numpy.typing as npt
import tvm_ffi
from tvm import ir, tirx
from tvm.ir import TensorLoad
from tvm.sym import Analyzer
from tvm.tirx import (
    AttrStmt,
    Buffer,
    BufferStore,
    Expr,
    For,
    IfThenElse,
    PrimFunc,
    SeqStmt,
    Stmt,
    Var,
)

from mfmadsl.language import reads
from mfmadsl.model import Architecture
from mfmadsl.passes.main_loop.analysis.halves import in_halves, sum_words, words
from mfmadsl.passes.main_loop.analysis.joined import joined
from mfmadsl.passes.main_loop.analysis.loop import Loop
from mfmadsl.passes.main_loop.analysis.parsed import MainLoop, main_loop
from mfmadsl.passes.main_loop.analysis.register_step import RegisterStep
from mfmadsl.passes.main_loop.analysis.unrolled import store_of
from mfmadsl.passes.main_loop.lds.places import Places, Swizzle
from mfmadsl.passes.main_loop.lds.swizzle import Access, choose, span
from mfmadsl.passes.main_loop.moves.direct import DirectLoad, direct_load
from mfmadsl.passes.main_loop.moves.element import (
    Element,
    element,
    runs,
    sources,
    with_common_places,
)
from mfmadsl.passes.main_loop.moves.fetch import Fetch, inside, loadable
from mfmadsl.passes.main_loop.moves.landing import Landing, landing
from mfmadsl.passes.main_loop.moves.pieces import reads_of_pieces
from mfmadsl.passes.main_loop.moves.put import Home, Put
from mfmadsl.passes.main_loop.moves.room import copied_by_all, reading_from, tiles_with_room
from mfmadsl.passes.tir.annotation import EDGES, SWIZZLE
from mfmadsl.passes.tir.error import NotUnderstoodError
from mfmadsl.passes.tir.expression import (
    NotNumbersError,
    aligned,
    bits_of,
    constant,
    depends,
    elements_of,
    loads_of,
    multiple_of,
    numbers,
    terms_of,
    total,
    variables_of,
)

_WIDEST = 16  # bytes of an access
_OTHER_REGISTERS = 48  # a lane's, beside sums and fragments


@dataclass(frozen=True)
class Threads:
    """The thread indices of a kernel: variables, by tag, and how many there are of each."""

    variables: dict[str, Var]
    extents: dict[str, int]

    @property
    def counts(self) -> dict[str, int]:
        """How many values each variable has, by its name."""
        return {v.name: self.extents[tag] for tag, v in self.variables.items()}


def bind_loop(analyzer: Analyzer, loop: For) -> None:
    """Tell the analyzer what a loop runs over."""
    analyzer.bind(loop.loop_var, ir.Range.from_min_extent(loop.min, loop.extent), True)


@dataclass(frozen=True)
class Kernel:
    """What a loop stands in: the function, its threads, what is known of them, and the chip.

    `lean` says that registers are scarce.
    """

    function: PrimFunc
    threads: Threads
    analyzer: Analyzer
    chip: Architecture
    lean: bool = False

    @property
    def registers(self) -> int:
        """How many a lane has, if a compute unit has but one workgroup."""
        threads = prod(self.threads.extents.values())
        waves = ceil(threads / self.chip.wave_size)
        return self.chip.registers // max(1, ceil(waves / self.chip.simds))


class Traffic:
    """All that a loop moves, each thing with its place.

    Raises NotUnderstoodError for a loop that the pipeline cannot take.
    """

    def __init__(self, kernel: Kernel, loop: For, stages: int) -> None:
        self.kernel, self.loop, threads = kernel, loop, kernel.threads
        annotations = loop.annotations or {}
        analyzer = kernel.analyzer.clone()
        bind_loop(analyzer, loop)
        lane = threads.variables.get("threadIdx.x")
        if threads.extents.get("threadIdx.x") != kernel.chip.wave_size:
            lane = None
        available = [r for r in reads().values() if kernel.chip.name in r.chips]
        self.main: MainLoop = main_loop(loop, analyzer, lane, available, kernel.chip.wave_size)
        self._check_buffers()
        self.facts = self._facts(analyzer)
        elements = with_common_places([element(s) for s in self.main.copies])
        self._check_places(elements)
        tiles = tiles_with_room(
            elements, self.main, kernel.function, threads.counts, stages, kernel.chip
        )
        elements = [copied_by_all(each, tiles) for each in elements]
        self.main = reading_from(self.main, tiles)
        # With one turn nothing tells the end of K from the other edges.
        loose = str(annotations.get(EDGES, "")) if constant(loop.extent) != 1 else ""
        self.loose = {
            e.buffer.__chandle__() for e in elements if e.buffer.name in loose.split()
        }  # fmt: skip
        swizzle = int(annotations.get(SWIZZLE, 1))
        self.places = Places(
            self._swizzles(elements) if swizzle else {}, threads.counts, kernel.lean
        )
        self.fetches, home = self._fetches(elements)
        self.puts = self._puts(elements, home)
        self.direct = self._direct() if stages > 1 else None
        steps, halves = self._order()
        self.steps = [
            ([self._placed(r) for r in step.reads], list(step.computing)) for step in steps
        ]
        self.landing = self._landing(steps, halves, stages)

    @property
    def spans(self) -> list[tuple[str, Expr]]:
        """(buffer, bytes) of what is fetched, where that is known at the launch only."""
        return [
            (str(fetch.run[0].buffer.name), fetch.address.span)
            for fetch in self.fetches
            if constant(fetch.address.span) is None
        ]

    def _facts(self, analyzer: Analyzer) -> Loop:
        extent, before_last = self.loop.extent, self.kernel.analyzer.clone()
        count = constant(extent)
        least = tirx.const(1, str(extent.ty.dtype))
        most = tirx.max(extent - 1, least) if count is None else max(count - 1, 1)
        before_last.bind(self.main.variable, ir.Range(0, most), True)
        threads = self.kernel.threads.counts
        symbols = frozenset(str(p.name) for p in self.kernel.function.params)
        lean = self.kernel.lean
        return Loop(self.main.variable, extent, analyzer, before_last, threads, symbols, lean)

    def _check_places(self, elements: Sequence[Element]) -> None:
        """All turns use the same places: what one does not fill is not left from the one before."""
        variable = self.main.variable
        for each in elements:
            for guard in each.guards:
                if depends(guard, variable):
                    raise NotUnderstoodError(f"it copies in some turns only, if `{guard}`")
        reads = [load for s in self.main.steps for r in s.reads for load in loads_of(r.value)]
        places = [(e.buffer, e.place) for e in elements] + [(r.source, r.indices[0]) for r in reads]
        for buffer, place in places:
            if depends(place, variable):
                raise NotUnderstoodError(f"each turn has other places of `{buffer.name}`: {place}")

    def _check_buffers(self) -> None:
        """The tiles are this loop's alone: nobody else reaches them and sees other contents."""
        tiles = {s.buffer.__chandle__() for s in map(store_of, self.main.copies)}
        outside: list[str] = []

        def walk(statement: Stmt) -> None:
            if statement.same_as(self.loop):
                return
            if isinstance(statement, BufferStore):
                names = [load.source for load in loads_of(statement.value)] + [statement.buffer]
                outside.extend(b.name for b in names if b.__chandle__() in tiles)
            elif isinstance(statement, SeqStmt):
                for each in statement.seq:
                    walk(each)
            elif isinstance(statement, For | AttrStmt):
                walk(statement.body)
            elif isinstance(statement, IfThenElse):
                walk(statement.then_case)
                if statement.else_case is not None:
                    walk(statement.else_case)

        walk(self.kernel.function.body)
        if outside:
            raise NotUnderstoodError(f"`{outside[0]}` is used outside of it, too")

    def _swizzles(self, elements: Sequence[Element]) -> dict[int, Swizzle]:
        """The choice for each tile whose size and accesses are all known."""
        tiles = {e.buffer.__chandle__(): e.buffer for e in elements}
        accesses: dict[int, list[Access | None]] = {handle: [] for handle in tiles}
        for run in self._neighbours(elements):
            tile = run[0].buffer
            accesses[tile.__chandle__()].append(self._access(tile, run[0].place, len(run), False))
        for step in self.main.steps:
            for read in step.reads:
                (load,) = loads_of(read.value)
                index = load.indices[0]
                base = index.base if isinstance(index, tirx.Ramp) else index
                count = len(elements_of(read.indices[0]))
                found = self._access(load.source, base, count, True)
                accesses[load.source.__chandle__()].append(found)
        swizzles = {}
        for handle, tile in tiles.items():
            length, size = constant(tile.shape[0]), bits_of(tile.dtype) // 8
            known = [access for access in accesses[handle] if access is not None]
            if length and len(known) == len(accesses[handle]):
                swizzles[handle] = choose(known, size, length, self.kernel.chip)
        return swizzles

    def _access(self, tile: Buffer, place: Expr, count: int, is_read: bool) -> Access | None:
        """An access of wave 0 in turn 0; None if others may be aligned otherwise, or unknown."""
        lanes = self.kernel.threads.extents.get("threadIdx.x", 0)
        wave = self.kernel.chip.wave_size
        if not lanes or lanes % wave:
            return None
        lane = self.kernel.threads.variables["threadIdx.x"]
        values: dict[str, npt.ArrayLike] = {v.name: 0 for v in variables_of(place)}
        try:
            where = numbers(place, {**values, lane.name: np.arange(lanes)})
        except NotNumbersError:
            return None
        size = count * bits_of(tile.dtype) // 8
        places = np.broadcast_to(where, (lanes,))[:wave]
        access = Access(tuple(int(x) for x in places), size, is_read)
        uniform = total([t for t in terms_of(place) if not depends(t, lane)])
        aligned = multiple_of(uniform) % span(access, bits_of(tile.dtype) // 8) == 0
        return access if aligned or constant(uniform) is not None else None

    def _neighbours(self, elements: Sequence[Element]) -> list[list[Element]]:
        """Runs in the LDS, aligned to their lengths, of elements with the same guards."""
        groups: dict[str, list[Element]] = {}
        for each in elements:
            groups.setdefault(" ".join(map(str, each.guards)), []).append(each)
        return [
            piece
            for group in groups.values()
            for run in runs(group, lambda e: e.place, lambda e: e.buffer,
                            lambda e: _WIDEST * 8 // bits_of(e.buffer.dtype))
            for piece in aligned(run, lambda e: e.place)
        ]  # fmt: skip

    def _fetches(self, elements: Sequence[Element]) -> tuple[list[Fetch], Home]:
        """The fetches of each tile: what two of them are made of is fetched for each."""
        found: list[Fetch] = []
        home: Home = {}
        for tile in dict.fromkeys(e.buffer.__chandle__() for e in elements):
            wanted = sources(e for e in elements if e.buffer.__chandle__() == tile)
            together = runs(
                wanted, lambda s: s.place, lambda s: s.buffer, lambda s: _WIDEST // s.size
            )
            for run in [piece for each in together for piece in loadable(each)]:
                exact = tile not in self.loose
                for fetch in inside(run, self.facts, len(found), exact):
                    found.append(fetch)
                    for number, source in enumerate(fetch.run):
                        home[tile, source.buffer.__chandle__(), str(source.place)] = fetch, number
        return found, home

    def _puts(self, elements: Sequence[Element], home: Home) -> list[Put]:
        return [
            Put(tuple(run), home, self.main.variable,
                self.places.index(run[0].place, run[0].buffer))
            for run in self._neighbours(elements)
        ]  # fmt: skip

    def _placed(self, read: BufferStore) -> BufferStore:
        """A read of where its elements are."""

        def load(node: TensorLoad) -> Expr:
            index = node.indices[0]
            if not isinstance(index, tirx.Ramp):
                return tirx.BufferLoad(node.source, [self.places.index(index, node.source)])
            base = self.places.index(index.base, node.source)
            return tirx.BufferLoad(node.source, [tirx.Ramp(base, index.stride, index.lanes)])

        value = tvm_ffi.structural_map(read.value, (TensorLoad, load))
        return BufferStore(read.buffer, value, list(read.indices))

    def _order(self) -> tuple[Sequence[RegisterStep], bool]:
        """The register steps, and whether they take the sums by halves, if registers do."""
        if self.direct and not self.kernel.lean:
            for halves in in_halves(self.main.steps):
                if self._fits(halves):
                    return halves, True
        longer = joined(self.main.steps, self.kernel.chip)
        return (longer if self._fits(longer) else self.main.steps), False

    def _fits(self, steps: Sequence[RegisterStep]) -> bool:
        """Whether the registers of a lane hold what the steps need at a time."""
        needed = sum_words(steps) + words(steps) + _OTHER_REGISTERS
        return needed <= self.kernel.registers

    def _landing(self, steps: Sequence[RegisterStep], halves: bool, stages: int) -> Landing | None:
        if not self.direct:
            return None
        threads = self.kernel.threads
        lane = threads.variables["threadIdx.x"]
        reads = reads_of_pieces(self.puts, steps, lane, threads.counts)
        return landing(reads, len(steps), halves, stages)

    def _direct(self) -> list[DirectLoad] | None:
        """One for each put, or None where one of them cannot."""
        lane = self.kernel.threads.variables.get("threadIdx.x")
        chip, threads = self.kernel.chip, self.kernel.threads
        if lane is None or threads.extents["threadIdx.x"] != chip.wave_size:
            return None
        if not chip.wide_loads_to_lds:
            return None
        loads: list[DirectLoad] = []
        for put in self.puts:
            swizzle, exact = self.places.of(put.buffer), put.buffer.__chandle__() not in self.loose
            number = len(self.fetches) + len(loads)
            made = direct_load(put, lane, swizzle, self.facts, exact, number)
            if made is None:
                return None
            loads.append(made)
        return loads

"""What moves in an attention's kernel: copies into the LDS, and from there into registers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from tvm import tirx
from tvm.script.ir_builder import tirx as script
from tvm.sym import Analyzer
from tvm.tirx import Buffer, Expr

from mfmadsl.model import Operand
from mfmadsl.passes.tir.expression import bits_of
from mfmadsl.schedule.flash_attention import elements
from mfmadsl.schedule.flash_attention.chain import at, slot
from mfmadsl.schedule.flash_attention.loops import block, loops, named
from mfmadsl.schedule.flash_attention.steps import KeySteps, Phase
from mfmadsl.schedule.flash_attention.turned import chunk_turned
from mfmadsl.schedule.flash_attention.wave import Cut, Tiles, WavePlace, WaveRegisters
from mfmadsl.schedule.matrix_core.tiling.resources import CHUNK


def load_queries(cut: Cut, place: WavePlace, held: WaveRegisters) -> None:
    """Q, which stays in registers, and what scores read of a query alone, from memory.

    Queries behind the last one are computed as that is, and not stored.
    """
    load_rows(cut, place, held.q)
    load_row_reads(cut, place, held.reads)


def load_rows(cut: Cut, place: WavePlace, held: Buffer) -> None:
    """Elements of the queries, for a product."""
    operand, sizes = cut.chain.first.b, cut.sizes
    _, k, column = operand.layout.inverse("lane", "register")
    with cut.lanes() as lane:
        for t, n, r in loops(sizes.depth, sizes.queries, operand.layout.elements_per_lane):
            row = place.row + n * cut.chain.intrinsic.n + at(column, lane=lane, register=r)
            depth = t * cut.chain.first.k + at(k, lane=lane, register=r)
            element = elements.query(cut, place, row, depth).nearest()
            if not elements.divides(cut.chain.first.k, cut.found.axes.depth.extent):
                zero = tirx.const(0, cut.found.dtype)
                element = tirx.if_then_else(depth < cut.found.axes.depth.extent, element, zero)
            script.buffer_store(held, element, [t, n, lane, r])


def load_row_reads(cut: Cut, place: WavePlace, reads: Mapping[str, Buffer]) -> None:
    """What scores read of a query alone."""
    with cut.lanes() as lane:
        for (n,) in loops(cut.sizes.queries):
            for read in cut.score.reads:
                if not read.of_keys:
                    row = cut.row(place, n, lane)
                    element = elements.read(cut, place, read.load, row, None).nearest()
                    script.buffer_store(reads[read.name], element, [n, lane, 0])


def copy_first_keys(cut: Cut, place: WavePlace, steps: KeySteps, name: str = "K_first") -> Buffer:
    """Copy K of the first step into the LDS, ahead of the loops: scores of keys behind the last one
    are masked, and those of what is behind the depth are multiplied by zero."""
    dtype, threads = cut.found.dtype, cut.tiling.waves * cut.chip.wave_size
    rows, columns = cut.tiling.keys, cut.sizes.depth * cut.chain.first.k
    tile: Buffer = named(name, script.sblock_alloc_buffer((rows, columns), dtype, scope="shared"))
    width = CHUNK * 8 // bits_of(dtype)
    while width > 1 and (columns % width or rows * columns < width * threads):
        width //= 2
    chunks, wave = columns // width, tirx.floordiv(place.own_row, cut.tiling.rows)
    with cut.lanes() as lane:
        for (piece,) in loops(ceil(rows * chunks / threads)):
            number = piece * threads + wave * cut.chip.wave_size + lane
            row = tirx.floordiv(number, chunks)
            with script.If(Analyzer().simplify(number < rows * chunks)), script.Then():
                for (e,) in loops(width):
                    depth = tirx.floormod(number, chunks) * width + e
                    key = steps.start + cut.key_of(row)
                    element = elements.key(cut, place, key, depth).nearest()
                    script.buffer_store(tile, element, chunk_turned(tile, row, depth))
    return tile


def load_first_keys(
    cut: Cut, place: WavePlace, held: Buffer, x: Expr, steps: KeySteps, tile: Buffer | None
) -> None:
    """A row of tiles of K of the first step, from the LDS or, without a tile there, memory."""
    operand, first = cut.chain.first.a, cut.chain.first
    _, row, k = operand.layout.inverse("lane", "register")
    with cut.lanes() as lane:
        for t, r in loops(cut.sizes.depth, operand.layout.elements_per_lane):
            of_tile = x * cut.chain.intrinsic.m + at(row, lane=lane, register=r)
            depth = t * first.k + at(k, lane=lane, register=r)
            if tile is not None:
                element = tile[tuple(chunk_turned(tile, of_tile, depth))]
            else:
                key = steps.start + cut.key_of(of_tile)
                element = elements.key(cut, place, key, depth).nearest()
            script.buffer_store(held, element, [x, t, lane, r])


def load_reads(cut: Cut, place: WavePlace, reads: Mapping[str, Buffer], steps: KeySteps) -> None:
    """What scores of the first step read for each key, from memory."""
    for read in cut.score.reads:
        if read.of_keys:
            with cut.lanes() as lane:
                for x, n, r in loops(cut.sizes.keys, cut.sizes.queries, cut.sums):
                    row, key = cut.row(place, n, lane), steps.start + _key(cut, x, lane, r)
                    element = elements.read(cut, place, read.load, row, key).nearest()
                    script.buffer_store(reads[read.name], element, [x, n, lane, r])


def _key(cut: Cut, x: Expr, lane: Expr, register: Expr) -> Expr:
    """The key, from the first of a step on, of an element of S."""
    row = at(cut.chain.row, lane=lane, register=register)
    return cut.key_of(x * cut.chain.intrinsic.m + row)


def copy_tiles(
    cut: Cut, place: WavePlace, tiles: Tiles, steps: KeySteps, phase: Phase, step: Expr, suffix: str
) -> None:
    """Copy V of a step into the LDS, and of the following one K and what scores read."""
    at_step = StepPlace(place, steps, phase, step, suffix)
    copy_keys(cut, tiles.k, at_step)
    copy_values(cut, tiles.v, at_step)
    copy_reads(cut, tiles.reads, at_step)


@dataclass(frozen=True)
class StepPlace:
    """A wave's place, and a step of a loop over keys, of which names of blocks end in `suffix`."""

    wave: WavePlace
    steps: KeySteps
    phase: Phase
    step: Expr
    suffix: str

    @property
    def outer(self) -> list[tuple[Expr | int, Expr]]:
        """The axis of a block that runs in each step."""
        return [(self.phase.count, self.step)]


def copy_keys(cut: Cut, tile: Buffer, at_step: StepPlace, name: str = "K") -> None:
    """Copy K of the following step; its rows are in the order in which P is taken."""
    steps, phase = at_step.steps, at_step.phase
    name = f"{name}_copy{at_step.suffix}"
    with block(name, at_step.outer, _shape(tile)) as ((own,), (row, depth)):
        number = steps.key(phase.first + own + 1, cut) + cut.key_of(row)
        is_there = steps.has(phase.first + own + 1)
        element = elements.key(cut, at_step.wave, number, depth).copied(is_there)
        script.buffer_store(tile, element, [row, depth])


def copy_values(cut: Cut, tile: Buffer, at_step: StepPlace, name: str = "V") -> None:
    """Copy V of a step, turned around, since the product with it sums over keys, unless reads of
    the LDS do that."""
    steps, phase = at_step.steps, at_step.phase
    name = f"{name}_copy{at_step.suffix}"
    with block(name, at_step.outer, _shape(tile)) as ((own,), inside):
        row, column = inside if cut.turns_values else inside[::-1]
        number = steps.key(phase.first + own, cut) + row
        element = elements.value(cut, at_step.wave, number, column).copied()
        script.buffer_store(tile, element, inside)


def copy_reads(cut: Cut, tiles: Mapping[str, Buffer], at_step: StepPlace) -> None:
    """Copy what scores of the following step read for each key."""
    place, steps, phase = at_step.wave, at_step.steps, at_step.phase
    for read in cut.score.reads:
        if read.of_keys:
            tile, name = tiles[read.name], f"{read.name}_copy{at_step.suffix}"
            with block(name, at_step.outer, _shape(tile)) as ((own,), (row, column)):
                following = phase.first + own + 1
                query, number = place.group_row + row, steps.key(following, cut) + column
                is_there = steps.has(following)
                element = elements.read(cut, place, read.load, query, number).copied(is_there)
                script.buffer_store(tile, element, [row, column])


def _shape(buffer: Buffer) -> list[int]:
    return [int(extent) for extent in buffer.shape]


def load_tile(
    name: str, held: Buffer, tile: Sequence[Expr], memory: Buffer, operand: Operand,
    turned: bool = False,
) -> None:  # fmt: skip
    """A fragment of a tile in the LDS, which may lie there turned around."""
    rows, columns = operand.layout.rows, operand.layout.columns
    outer = list(zip(held.shape[:2], tile, strict=True))
    with block(name, outer, [columns, rows] if turned else [rows, columns]) as ((x, t), inside):
        i, k = inside[::-1] if turned else inside
        place = x * rows + i, t * columns + k
        element = memory[place[::-1] if turned else place]
        script.buffer_store(held, element, [x, t, *slot(operand, i, k)])


def load_read_tiles(
    cut: Cut, place: WavePlace, reads: Mapping[str, Buffer], tiles: Mapping[str, Buffer]
) -> None:
    """What scores of the following step read for each key, from the LDS."""
    for read in cut.score.reads:
        if read.of_keys:
            tile = tiles[read.name]
            with cut.lanes() as lane:
                for x, n, r in loops(cut.sizes.keys, cut.sizes.queries, cut.sums):
                    row = place.own_row + cut.row_of_wave(n, lane) if read.of_queries else 0
                    element = tile[row, _key(cut, x, lane, r)]
                    script.buffer_store(reads[read.name], element, [x, n, lane, r])

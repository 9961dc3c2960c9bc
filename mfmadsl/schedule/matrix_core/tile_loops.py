"""Loops of tiles: what threads copy, what the lanes of a wave hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, prod
from types import ModuleType

from tvm import tirx
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import LoopRV, SBlockRV
from tvm.tirx import Expr

from mfmadsl.model import Architecture
from mfmadsl.schedule.matrix_core.tiling.resources import CHUNK

WORD = 4
"""Bytes that go straight into the LDS at least."""


def bind_copy(sch: Schedule, loops: Sequence[LoopRV], waves: int, chip: Architecture) -> None:
    """Share the units of a copy, the first of its loops, among the threads of a workgroup."""
    units, *inside = loops
    _, wave, lane, own = sch.split(units, [None, waves, chip.wave_size, 1])
    sch.reorder(wave, lane, own, *inside)
    sch.bind(wave, "threadIdx.y")
    sch.bind(lane, "threadIdx.x")


def chunks_along_k(
    sch: Schedule, rows: LoopRV, k: LoopRV, counts: Sequence[int], size: int, threads: int,
    straight: bool, blocks: int = 1, made: int | None = None, groups: tuple[int, int] = (1, 1),
) -> list[LoopRV]:  # fmt: skip
    """[units, what a thread copies of each]: a chunk of a row, as wide as there is work for all;
    but what goes straight into the LDS is as wide as can be.

    Of a tile whose elements are computed on the way, no more than so many rows are `made`: all
    threads share these. Where `groups` of rows, or of k, have something in common, a thread takes
    what it can of one.
    """
    width, pieces = max(CHUNK // size, 1), blocks * prod(counts)
    if made is not None and not straight:
        while width * size > WORD and made * counts[1] < width * threads:
            width //= 2
    while width > 1 and (
        counts[1] % width or (not straight and leaves_idle(pieces, width, threads))
    ):
        width //= 2
    if straight and WORD < width * size < CHUNK:  # what goes straight there is a word or a chunk
        width = WORD // size
    chunk, inside = sch.split(k, [None, width])
    turns = pieces // (width * threads)
    row, rows_apart = of_one_group(sch, rows, counts[0], turns, groups[0])
    chunks = counts[1] // width
    place, places_apart = of_one_group(sch, chunk, chunks, turns, groups[1] // width, True)
    units = [*row, *place, *rows_apart, *places_apart]
    sch.reorder(*units, inside)
    return [sch.fuse(*units), inside]


def of_one_group(
    sch: Schedule, loop: LoopRV, extent: int, turns: int, group: int, neighbours: bool = False
) -> tuple[list[LoopRV], list[LoopRV]]:
    """(the loop over what a thread takes in so many turns, the loops over threads), such that all
    of it is of one group of neighbours, or are neighbours; no such loop where that can't be."""
    group = min(group, extent)
    if not 2 <= turns <= group or group % turns or extent % group:
        return [], [loop]
    if neighbours:
        others, turn = sch.split(loop, [None, turns])
        return [turn], [others]
    groups, turn, others = sch.split(loop, [None, turns, group // turns])
    return [turn], [groups, others]


def leaves_idle(pieces: int, width: int, threads: int) -> bool:
    """Whether some of the threads would take so many pieces at once and others none, though all of
    them were done sooner with half as many at once."""

    def most(each: int) -> int:
        return ceil(pieces / (each * threads)) * each

    return pieces < width * threads and most(width) > most(width // 2)


def blocks_of(tile: ModuleType) -> int:
    """How many products the instruction of a module does at once."""
    return int(getattr(tile, "BLOCKS", 1))


def of_tile(
    index_map: Callable[..., Sequence[Expr]], axes: int, several: bool
) -> Callable[..., tuple[Expr, ...]]:
    """The index map of the last two coordinates, or of three with blocks; those before stay."""
    lead = axes - (3 if several else 2)

    def at(*place: Expr) -> tuple[Expr, ...]:
        inner = index_map(*place[lead:])
        return (
            *place[:lead],
            *(tirx.const(x, "int32") if isinstance(x, int) else x for x in inner),
        )

    def of_two(i: Expr, j: Expr) -> tuple[Expr, ...]:
        return at(i, j)

    def of_three(s: Expr, i: Expr, j: Expr) -> tuple[Expr, ...]:
        return at(s, i, j)

    def of_four(p: Expr, s: Expr, i: Expr, j: Expr) -> tuple[Expr, ...]:
        return at(p, s, i, j)

    def of_five(w: Expr, p: Expr, s: Expr, i: Expr, j: Expr) -> tuple[Expr, ...]:
        return at(w, p, s, i, j)

    found: dict[int, Callable[..., tuple[Expr, ...]]] = {
        2: of_two, 3: of_three, 4: of_four, 5: of_five,
    }  # fmt: skip
    return found[axes]  # TVM counts their parameters


def tiled(
    sch: Schedule, block: SBlockRV, tile: ModuleType, height: int, width: int
) -> tuple[list[LoopRV], list[LoopRV]]:
    """The loops over tiles, and those of a tile, of its blocks first if there are several."""
    *_, matrices, rows, columns = sch.get_loops(block)
    row_tile, rows = sch.split(rows, [None, height])
    column_tile, columns = sch.split(columns, [None, width])
    inner = [*([matrices] if blocks_of(tile) > 1 else []), rows, columns]
    sch.reorder(row_tile, column_tile, *inner)
    return [row_tile, column_tile], inner


def per_lane(
    sch: Schedule, loops: Sequence[LoopRV], slot: Callable[..., tuple[int, int]]
) -> tuple[LoopRV, LoopRV | None]:
    """The loops of a tile as lane and register, by where each bit of a coordinate goes."""
    parts: list[tuple[bool, int, LoopRV]] = []
    for axis, loop in enumerate(loops):
        runs: list[tuple[bool, int, int]] = []  # to the lane or not, the lowest bit there, bits
        for bit in range(int(sch.get(loop).extent).bit_length() - 1):
            lane, register = slot(*((1 << bit) if a == axis else 0 for a in range(len(loops))))
            place = lane > 0, (lane or register).bit_length() - 1
            if runs and (runs[-1][0], runs[-1][1] + runs[-1][2]) == place:
                runs[-1] = (*runs[-1][:2], runs[-1][2] + 1)
            else:
                runs.append((*place, 1))
        if not runs:
            continue
        split = [loop] if len(runs) == 1 else sch.split(loop, [1 << r[2] for r in reversed(runs)])
        parts += [(r[0], r[1], x) for r, x in zip(reversed(runs), split, strict=True)]
    parts.sort(key=lambda part: -part[1])
    lanes, registers = ([part[2] for part in parts if part[0] == kind] for kind in (True, False))
    sch.reorder(*lanes, *registers)
    return sch.fuse(*lanes), sch.fuse(*registers) if registers else None

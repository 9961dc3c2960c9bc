"""Attention written out as one kernel, whose softmax is kept up to date as it walks over the keys.

For each query a lane keeps the largest score so far and the sum of exponentials. A step makes a
tile of scores, S = K x Q^T; where the largest grows, what is summed up so far becomes less in
proportion. The next step's S is made before this one's product with V, so that its exponentials are
computed while the matrix cores are busy. S, its exponentials P and the sums O stay in registers.

The function has blocks of single products, loads and copies, for a schedule to tensorize and bind;
what a lane does with its own registers is written for the lane.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod

from tvm import ir, tirx
from tvm.script.ir_builder import tirx as script
from tvm.tirx import Buffer, Expr, PrimFunc, Var
from tvm.tirx.buffer import BufferType

from mfmadsl.passes.tir.expression import constant
from mfmadsl.schedule.flash_attention.described import at_places, narrow
from mfmadsl.schedule.flash_attention.loops import bound, function_like, held, named
from mfmadsl.schedule.flash_attention.moves import copy_tiles, load_queries, load_read_tiles
from mfmadsl.schedule.flash_attention.packed_rows import kept, packed_rows, tile_count
from mfmadsl.schedule.flash_attention.parts import KeyParts, join_parts, parts_of, store_part
from mfmadsl.schedule.flash_attention.products import attend, first_scores, next_scores
from mfmadsl.schedule.flash_attention.softmax import clear, lower, rescale, softmax
from mfmadsl.schedule.flash_attention.steps import KeySteps, Phase, steps_of
from mfmadsl.schedule.flash_attention.stores import store_results
from mfmadsl.schedule.flash_attention.wave import (
    Cut,
    WavePlace,
    WaveRegisters,
    batch_places,
    registers,
    tiles,
)
from mfmadsl.schedule.product.nest import is_number

_FAR = (1 << 31) - 2


@dataclass(frozen=True)
class Online:
    """A function, and what tells its loops over keys apart: the names of their blocks end in it."""

    function: PrimFunc
    suffixes: tuple[str, ...]


def online(cut: Cut) -> Online:
    """The function of an attention that is cut: its parameters are those of the attention's own."""
    source = cut.found.function
    with function_like(source) as builder:
        suffixes = _kernel(cut)
    return Online(builder.get(), suffixes)


def _kernel(cut: Cut) -> tuple[str, ...]:
    rows, tiling = cut.found.axes.row.extent, cut.tiling
    packed = cut.found.packed
    if packed is None:
        groups = tirx.floordiv(rows + (tiling.block - 1), tiling.block)
    else:
        groups = tile_count(packed, tiling.block)
    batches = prod((axis.extent for axis in cut.found.axes.batch), start=tirx.const(1, "int32"))
    parts = parts_of(cut, batches) if tiling.splits > 1 else None
    extents = cut.parts, batches, groups, tiling.waves
    with (
        bound(cut.parts, "blockIdx.z", "split") as part,
        bound(batches, "blockIdx.x", "batch") as batch,
        bound(groups, "blockIdx.y", "group") as group,
        bound(tiling.waves, "threadIdx.y", "wave") as wave,
        script.sblock("attention"),
    ):
        loops = zip(extents, (part, batch, group, wave), strict=True)
        split, number, own_group, own_wave = [script.axis.spatial(*each) for each in loops]
        for name, axis in zip(
            ("own_split", "own_batch", "own_group", "own_wave"),
            (split, number, own_group, own_wave), strict=True,
        ):  # fmt: skip
            named(name, axis)
        if cut.score.count is not None or packed is not None or cut.found.offsets:
            accesses(cut, _written(cut, parts))
        place = _place(cut, split, number, own_group, groups, own_wave * tiling.rows)
        suffixes = _walk(cut, place, registers(cut), parts, number)
    if parts is not None:
        join_parts(cut, parts, batches)
    return suffixes


def _place(cut: Cut, split: Expr, number: Expr, group: Expr, groups: Expr, own: Expr) -> WavePlace:
    """The place of a wave in the grid; `own` is that in its workgroup."""
    batch, rows = batch_places(cut, number), cut.found.axes.row.extent
    packed = cut.found.packed
    if packed is None:
        first = in_order(cut, group, groups) * cut.tiling.block
        keys = _known_keys(cut, batch)
        return WavePlace(batch, held("keys", keys), rows, split, first, first + own, own)
    found = packed_rows(packed, cut.tiling.block, group, cut.seen.end is not None)
    assert isinstance(rows, Var)
    batch |= {packed.batch.var: found.batch, packed.first: found.first, rows: found.count}
    first = found.group_row
    some = tirx.Select(first < found.count, _known_keys(cut, batch), tirx.const(0, "int32"))
    keys = kept("keys", some, cut.found.axes.key.extent)
    return WavePlace(batch, keys, found.count, split, first, first + own, own)


def _known_keys(cut: Cut, batch: dict[Var, Expr]) -> Expr:
    """How many keys a batch has; where they begin, `batch` knows from here on.

    There are none before an array, and none behind it, whatever memory says.
    """
    for offset in cut.found.offsets:
        read: Expr = at_places(offset.load, batch)
        if offset.is_start:
            read = tirx.max(tirx.min(read, _FAR), 0)
        batch[offset.variable] = held(offset.variable.name, read)
    keys = cut.keys_of(batch)
    for offset in cut.found.offsets:
        for end in offset.ends:
            keys = tirx.max(tirx.min(keys, narrow(end - batch[offset.variable])), 0)
    return keys


def accesses(cut: Cut, written: Sequence[Buffer]) -> None:
    """Say what the block accesses: TVM would say it by what the block itself reads first."""

    def whole(buffers: Sequence[Buffer]) -> list[tirx.BufferRegion]:
        regions = [[ir.Range(0, extent) for extent in each.shape] for each in buffers]
        return [tirx.BufferRegion(*each) for each in zip(buffers, regions, strict=True)]

    arrays = [each for each in cut.found.function.params if isinstance(each.ty, BufferType)]
    results = [*written, *(each.store.buffer for each in cut.found.results)]
    given = [each for each in arrays if not any(map(each.same_as, results))]
    script.reads(*whole(given))
    script.writes(*whole(written))


def _written(cut: Cut, parts: KeyParts | None) -> list[Buffer]:
    return parts.buffers if parts is not None else [each.store.buffer for each in cut.found.results]


def in_order(cut: Cut, group: Expr, groups: Expr) -> Expr:
    """Which queries a workgroup takes: where later ones see more keys, those that take longest
    begin first, so that all compute units end at about the same time.

    Passes could not tell that places are in an array if they were counted from an unknown end.
    """
    if cut.seen.end is None or constant(cut.found.axes.row.extent) is None:
        return group
    return groups - 1 - group


def _walk(
    cut: Cut, place: WavePlace, held: WaveRegisters, parts: KeyParts | None, batch: Expr
) -> tuple[str, ...]:
    steps = steps_of(cut, place)
    clear(cut, held)
    with where(steps.some):
        load_queries(cut, place, held)
        first_scores(cut, place, held, steps)
        softmax(cut, place, held, steps.start, True)
    suffixes = []
    for place_of, phase in enumerate(steps.phases):
        suffixes.append(f"_{place_of}" if place_of else "")
        _loop(cut, place, held, steps, phase, suffixes[-1])
    if cut.raised:
        lower(cut, held)
    if parts is None:
        store_results(cut, place, held)
    else:
        store_part(cut, place, held, parts, batch)
    return tuple(suffixes)


@contextmanager
def where(condition: Expr) -> Iterator[None]:
    """A branch of all threads, or nothing where a condition is known to hold."""
    if is_number(condition, 1):
        yield
        return
    with script.If(condition), script.Then():
        yield


def _loop(
    cut: Cut, place: WavePlace, held: WaveRegisters, steps: KeySteps, phase: Phase, suffix: str
) -> None:
    own = tiles(cut, suffix)
    with script.serial(0, phase.count) as step:
        named("step", step)
        copy_tiles(cut, place, own, steps, phase, step, suffix)
        rescale(cut, held)
        next_scores(cut, held, own, suffix)
        load_read_tiles(cut, place, held.reads, own.reads)
        attend(cut, held, own, suffix)
        softmax(cut, place, held, steps.key(phase.first + step + 1, cut), phase.masked)

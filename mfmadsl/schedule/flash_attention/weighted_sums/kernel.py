"""Weighted sums written out as one kernel, which walks over the keys as an attention's does.

A step makes the products of the next one's keys before it adds this one's weighted values, so that
weights are computed while the matrix cores are busy. There is no softmax to keep up to date.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import prod

from tvm import tirx
from tvm.script.ir_builder import tirx as script
from tvm.tirx import Buffer, BufferStore, Expr

from mfmadsl.schedule.flash_attention.described import Result, at_places
from mfmadsl.schedule.flash_attention.loops import bound, function_like, held, loops, named
from mfmadsl.schedule.flash_attention.moves import (
    StepPlace,
    copy_keys,
    copy_reads,
    copy_values,
    load_read_tiles,
    load_reads,
    load_row_reads,
    load_rows,
)
from mfmadsl.schedule.flash_attention.online import Online, accesses, in_order, where
from mfmadsl.schedule.flash_attention.products import add_product, first_product, next_product
from mfmadsl.schedule.flash_attention.results import column_of
from mfmadsl.schedule.flash_attention.steps import KeySteps, Phase, steps_of
from mfmadsl.schedule.flash_attention.stores import store_columns
from mfmadsl.schedule.flash_attention.wave import Cut, WavePlace, batch_places
from mfmadsl.schedule.flash_attention.weighted_sums.cut import (
    SumRegisters,
    SumsCut,
    sum_registers,
    sum_tiles,
)
from mfmadsl.schedule.flash_attention.weighted_sums.described import WeightedSum
from mfmadsl.schedule.flash_attention.weighted_sums.weight import make_weights


def written_out(cut: SumsCut) -> Online:
    """The function of weighted sums that are cut: its parameters are those of their own."""
    source = cut.found.function
    with function_like(source) as builder:
        suffixes = _kernel(cut)
    return Online(builder.get(), suffixes)


def _kernel(cut: SumsCut) -> tuple[str, ...]:
    axes, tiling = cut.found.axes, cut.whole.tiling
    rows = axes.row.extent
    groups = tirx.floordiv(rows + (tiling.block - 1), tiling.block)
    batches = prod((axis.extent for axis in axes.batch), start=tirx.const(1, "int32"))
    extents = batches, groups, tiling.waves
    with (
        bound(batches, "blockIdx.x", "batch") as batch,
        bound(groups, "blockIdx.y", "group") as group,
        bound(tiling.waves, "threadIdx.y", "wave") as wave,
        script.sblock("weighted_sums"),
    ):
        own = [
            named(f"own_{name}", script.axis.spatial(extent, loop))
            for name, extent, loop in zip(
                ("batch", "group", "wave"), extents, (batch, group, wave), strict=True
            )
        ]
        accesses(cut.whole, [result.store.buffer for each in cut.found.sums
                             for result in each.results])  # fmt: skip
        return _walk(cut, _place(cut, groups, own), sum_registers(cut))


def _place(cut: SumsCut, groups: Expr, own: list[Expr]) -> WavePlace:
    whole, (number, group, wave) = cut.whole, own
    batch, of_group = batch_places(whole, number), wave * whole.tiling.rows
    first = in_order(whole, group, groups) * whole.tiling.block
    axes, split = whole.found.axes, tirx.const(0, "int32")
    return WavePlace(
        batch, axes.key.extent, axes.row.extent, split, first, first + of_group, of_group
    )


def _walk(cut: SumsCut, place: WavePlace, own: SumRegisters) -> tuple[str, ...]:
    _clear(cut, own)
    suffixes: list[str] = []
    repeats = cut.found.repeats
    for numbers in loops(*(each.extent for each in repeats)):
        # Blocks in a loop may not have its variable, but what is made of it.
        batch = {**place.batch, **{
            each.var: named("repeat", script.bind(number))
            for each, number in zip(repeats, numbers, strict=True)
        }}  # fmt: skip
        keys = held("keys", cut.whole.keys_of(batch))
        _walk_once(cut, replace(place, batch=batch, keys=keys), own, suffixes)
    _store(cut, place, own)
    return tuple(suffixes)


def _walk_once(cut: SumsCut, place: WavePlace, held: SumRegisters, suffixes: list[str]) -> None:
    """Add up what all keys give; the loops' `suffixes` become known."""
    steps = steps_of(cut.whole, place)
    if cut.found.repeats and len(steps.phases) > 1:
        # Passes have one place for the tiles of several loops only where those run once.
        whole = Phase(tirx.const(0, "int32"), steps.count, True)
        steps = replace(steps, phases=(whole,))
    with where(steps.some):
        load_row_reads(cut.whole, place, held.reads)
        load_reads(cut.whole, place, held.reads, steps)
        for n, (each, registers) in enumerate(zip(cut.products, held.products, strict=True)):
            load_rows(each, place, registers.b)
            first_product(each, place, registers, steps, str(n), not cut.found.repeats)
        make_weights(cut, place, held, steps.start, True)
    for number, phase in enumerate(steps.phases):
        suffixes.append(f"_{number}" if number else "")
        _loop(cut, place, held, steps, phase, suffixes[-1])


def _clear(cut: SumsCut, held: SumRegisters) -> None:
    with cut.whole.lanes() as lane:
        for each, registers in zip(cut.sums, held.sums, strict=True):
            for c, n, r in loops(each.sizes.columns, each.sizes.queries, each.sums):
                script.buffer_store(registers.c, tirx.const(0, "float32"), [c, n, lane, r])


def _loop(
    cut: SumsCut, place: WavePlace, held: SumRegisters, steps: KeySteps, phase: Phase, suffix: str
) -> None:
    own = sum_tiles(cut, suffix)
    with script.serial(0, phase.count) as step:
        named("step", step)
        at_step = StepPlace(place, steps, phase, step, suffix)
        for n, each in enumerate(cut.products):
            copy_keys(each, own.keys[n], at_step, f"K{n}")
        for n, each in enumerate(cut.sums):
            copy_values(each, own.values[n], at_step, f"V{n}")
        copy_reads(cut.whole, own.reads, at_step)
        for n, each in enumerate(cut.products):
            next_product(each, held.products[n], own.keys[n], f"{n}{suffix}")
        for n, each in enumerate(cut.sums):
            add_product(each, held.sums[n], own.values[n], f"{n}{suffix}")
        load_read_tiles(cut.whole, place, held.reads, own.reads)
        following = steps.key(phase.first + step + 1, cut.whole)
        make_weights(cut, place, held, following, phase.masked)


def _store(cut: SumsCut, place: WavePlace, held: SumRegisters) -> None:
    """Store all results of the sums."""
    for each, found, registers in zip(cut.sums, cut.found.sums, held.sums, strict=True):
        for result in found.results:
            made = partial(_made, each, found, registers.c, place, result)
            store_columns(each, place, result.store, made)


def _made(
    cut: Cut, found: WeightedSum, sums: Buffer, place: WavePlace, result: Result, c: Expr, n: Expr,
    lane: Expr, r: Expr,
) -> BufferStore:  # fmt: skip
    """What a result is for an element of a sum."""
    known = {
        found.summed: sums[c, n, lane, r], found.column.var: column_of(cut, c, lane, r),
        cut.found.axes.row.var: cut.row(place, n, lane), **place.batch,
    }  # fmt: skip
    return at_places(result.store, known)

"""Attention written out as one kernel, whose softmax is kept up to date as it walks over the keys.

For each query a lane keeps the largest score so far and the sum of exponentials. A step makes a
tile of scores, S = K x Q^T; where the largest grows, what is summed up so far becomes less in
proportion. The next step's S is made before this one's product with V, so that its exponentials are
computed while the matrix cores are busy. S, its exponentials P and the sums O stay in registers.

The function has blocks of single products, loads and copies, for a schedule to tensorize and bind;
what a lane does with its own registers is written for the lane.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from tvm import tirx
from tvm.script.ir_builder import IRBuilder
from tvm.script.ir_builder import tirx as script
from tvm.tirx import Expr, PrimFunc, Var

from mfmadsl.schedule.attention.loops import bound, named
from mfmadsl.schedule.attention.moves import copy_tiles, load_queries, load_read_tiles
from mfmadsl.schedule.attention.products import attend, first_scores, next_scores
from mfmadsl.schedule.attention.results import store_results
from mfmadsl.schedule.attention.softmax import clear, rescale, softmax
from mfmadsl.schedule.attention.steps import Phase, steps_of
from mfmadsl.schedule.attention.wave import Cut, Place, Registers, registers, tiles


@dataclass(frozen=True)
class Online:
    """A function, and what tells its loops over keys apart: the names of their blocks end in it."""

    function: PrimFunc
    suffixes: tuple[str, ...]


def online(cut: Cut) -> Online:
    """The function of an attention that is cut: its parameters are those of the attention's own."""
    source = cut.found.function
    with IRBuilder() as builder, script.prim_func(s_tir=True):
        script.func_name(str(source.attrs.get("global_symbol", "main")) if source.attrs else "main")
        script.func_attr(dict(source.attrs or {}))
        for parameter in source.params:
            script.arg(parameter.name, parameter)
        suffixes = _kernel(cut)
    return Online(builder.get(), suffixes)


def _kernel(cut: Cut) -> tuple[str, ...]:
    axes, block = cut.found.axes, cut.tiling.block
    groups = tirx.floordiv(axes.row.dom.extent + (block - 1), block)
    batches = prod((axis.dom.extent for axis in axes.batch), start=tirx.const(1, "int32"))
    extents = ("batch", batches, "blockIdx.y"), ("group", groups, "blockIdx.x"), (
        "wave", cut.tiling.waves, "threadIdx.y"
    )  # fmt: skip
    (batch, group, wave) = extents
    with (
        bound(batch[1], batch[2], batch[0]) as b,
        bound(group[1], group[2], group[0]) as g,
        bound(wave[1], wave[2], wave[0]) as w,
        script.sblock("attention"),
    ):
        number, own_group, own_wave = (
            named(f"own_{name}", script.axis.spatial(extent, loop))
            for (name, extent, _), loop in zip(extents, (b, g, w), strict=True)
        )
        first, own = own_group * block, own_wave * cut.tiling.rows
        place = Place(_batch(cut, number), first, first + own, own)
        return _walk(cut, place, registers(cut))


def _batch(cut: Cut, number: Expr) -> dict[Var, Expr]:
    """The batch axes, of one number for all of them."""
    found: dict[Var, Expr] = {}
    for axis in reversed(cut.found.axes.batch):
        found[axis.var] = tirx.floormod(number, axis.dom.extent)
        number = tirx.floordiv(number, axis.dom.extent)
    return found


def _walk(cut: Cut, place: Place, held: Registers) -> tuple[str, ...]:
    steps = steps_of(cut, place)
    load_queries(cut, place, held)
    clear(cut, held)
    first_scores(cut, place, held, steps.start)
    softmax(cut, place, held, steps.start, True)
    suffixes = []
    for number, phase in enumerate(steps.phases):
        suffixes.append(f"_{number}" if number else "")
        _loop(cut, place, held, steps.start, phase, suffixes[-1])
    store_results(cut, place, held)
    return tuple(suffixes)


def _loop(cut: Cut, place: Place, held: Registers, start: Expr, phase: Phase, suffix: str) -> None:
    def key(step: Expr) -> Expr:
        return start + (phase.first + step) * cut.tiling.keys

    own = tiles(cut, suffix)
    with script.serial(0, phase.count) as step:
        named("step", step)
        copy_tiles(cut, place, own, (phase.count, step), key, suffix)
        rescale(cut, held)
        next_scores(cut, held, own, suffix)
        load_read_tiles(cut, place, held, own)
        attend(cut, held, own, suffix)
        softmax(cut, place, held, key(step + 1), phase.masked)

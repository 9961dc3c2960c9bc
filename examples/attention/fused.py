"""Fused: one kernel that makes the scores twice, and has them in memory not once."""

from __future__ import annotations

from tvm.s_tir import Schedule
from tvm.script.ir_builder import tirx as script

from examples.attention.kernel import UNPIPELINED, InOrder, cut_of, scheduled
from examples.attention.key_loop import copy_keys, copy_values, key_steps
from examples.attention.size import Size
from examples.attention.weights_tile import load_weights, store_weights, weights_tile
from mfmadsl.schedule.flash_attention.loops import loops
from mfmadsl.schedule.flash_attention.moves import load_queries
from mfmadsl.schedule.flash_attention.products import attend, next_scores
from mfmadsl.schedule.flash_attention.softmax import (
    add_up,
    clear,
    find_largest,
    make_exponentials,
    make_scores,
)
from mfmadsl.schedule.flash_attention.stores import store_results
from mfmadsl.schedule.flash_attention.wave import Cut, WavePlace, WaveRegisters, tiles


def schedule(size: Size, arch: str) -> Schedule:
    """A workgroup walks over the keys twice."""
    return scheduled(cut_of(size, UNPIPELINED[arch], arch, kind=InOrder), body)


def body(cut: Cut, place: WavePlace, held: WaveRegisters) -> None:
    """What a wave does."""
    load_queries(cut, place, held)
    clear(cut, held)
    _find_sums(cut, place, held)
    _attend(cut, place, held)
    store_results(cut, place, held)


def _find_sums(cut: Cut, place: WavePlace, held: WaveRegisters) -> None:
    """The largest score of each query, and the sum of its exponentials."""
    own = tiles(cut, "")
    with key_steps(cut, place, "", pipelined=False) as step:
        copy_keys(cut, place, own, step)
        next_scores(cut, held, own, step.suffix)
        with cut.lanes() as lane:
            make_scores(cut, place, held, step.start, lane, step.masked)
            for (n,) in loops(cut.sizes.queries):
                find_largest(cut, held, n, lane)
                make_exponentials(cut, held, n, lane)
                add_up(cut, held, n, lane)
                less = held.total[n, lane, 0] * held.rescale[n, lane, 0]
                script.buffer_store(held.total, less + held.partial[n, lane, 0], [n, lane, 0])


def _attend(cut: Cut, place: WavePlace, held: WaveRegisters) -> None:
    """The same scores again, and the product of their exponentials with V."""
    own, weights = tiles(cut, "_1"), weights_tile(cut)
    with key_steps(cut, place, "_1", pipelined=False) as step:
        copy_keys(cut, place, own, step)
        copy_values(cut, place, own, step)
        next_scores(cut, held, own, step.suffix)
        with cut.lanes() as lane:
            make_scores(cut, place, held, step.start, lane, step.masked)
            for (n,) in loops(cut.sizes.queries):
                make_exponentials(cut, held, n, lane)
        store_weights(cut, place, held, weights)
        load_weights(cut, place, held, weights)
        attend(cut, held, own, step.suffix)

"""Registers: a lane's scores are its factors of the second product, which no LDS sees."""

from __future__ import annotations

from tvm.s_tir import Schedule

from examples.attention.kernel import UNPIPELINED, Body, TurnedInRegisters, cut_of, scheduled
from examples.attention.key_loop import copy_keys, copy_values, key_steps
from examples.attention.size import Size
from mfmadsl.schedule.flash_attention.moves import load_queries
from mfmadsl.schedule.flash_attention.products import attend, next_scores
from mfmadsl.schedule.flash_attention.softmax import clear, rescale, softmax
from mfmadsl.schedule.flash_attention.stores import store_results
from mfmadsl.schedule.flash_attention.wave import Cut, WavePlace, WaveRegisters, tiles


def schedule(size: Size, arch: str) -> Schedule:
    """Rows of K lie in the LDS in the order in which the second product takes P."""
    cut = cut_of(size, UNPIPELINED[arch], arch, kind=TurnedInRegisters)
    return scheduled(cut, body_of(pipelined=False))


def body_of(pipelined: bool) -> Body:
    """What a wave does, in a loop with the pipeline's annotation or without."""

    def body(cut: Cut, place: WavePlace, held: WaveRegisters) -> None:
        load_queries(cut, place, held)
        clear(cut, held)
        own = tiles(cut, "")
        with key_steps(cut, place, "", pipelined) as step:
            copy_keys(cut, place, own, step)
            copy_values(cut, place, own, step)
            next_scores(cut, held, own, step.suffix)
            softmax(cut, place, held, step.start, step.masked)
            rescale(cut, held)
            attend(cut, held, own, step.suffix)
        store_results(cut, place, held)

    return body

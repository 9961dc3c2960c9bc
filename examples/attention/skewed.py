"""Skewed: the next step's scores are made before this step's product with V.

So matrix cores multiply while vector ALUs make exponentials of what they have made before.
"""

from __future__ import annotations

from tvm.s_tir import Schedule
from tvm.script.ir_builder import tirx as script
from tvm.tirx import Expr

from examples.attention.kernel import TILINGS, TurnedInRegisters, cut_of, scheduled
from examples.attention.size import Size
from mfmadsl.schedule.flash_attention.copies import pipeline_of
from mfmadsl.schedule.flash_attention.loops import named
from mfmadsl.schedule.flash_attention.moves import copy_tiles, load_queries
from mfmadsl.schedule.flash_attention.products import attend, first_scores, next_scores
from mfmadsl.schedule.flash_attention.softmax import clear, rescale, softmax
from mfmadsl.schedule.flash_attention.steps import KeySteps, Phase, steps_of
from mfmadsl.schedule.flash_attention.stores import store_results
from mfmadsl.schedule.flash_attention.wave import Cut, WavePlace, WaveRegisters, tiles


def schedule(size: Size, arch: str) -> Schedule:
    """The first step's scores come before the loop, of keys that come through the LDS."""
    return scheduled(cut_of(size, TILINGS[arch], arch, kind=TurnedInRegisters), body)


def body(cut: Cut, place: WavePlace, held: WaveRegisters) -> None:
    """What a wave does, with a loop for each phase: steps with masks have one of their own."""
    walk(cut, place, held, steps_of(cut, place))


def walk(cut: Cut, place: WavePlace, held: WaveRegisters, steps: KeySteps) -> None:
    """All of a wave's steps, of which there is at least one."""
    clear(cut, held)
    with script.If(steps.some), script.Then():
        load_queries(cut, place, held)
        first_scores(cut, place, held, steps)
        softmax(cut, place, held, steps.start, True)
    for number, phase in enumerate(steps.phases):
        suffix = f"_{number}" if number else ""
        with script.serial(
            0, phase.count, annotations=pipeline_of(cut.tiling, [f"K_tile{suffix}"])
        ) as step:
            named("step", step)
            _step(cut, place, held, steps, phase, step, suffix)
    store_results(cut, place, held)


def _step(
    cut: Cut, place: WavePlace, held: WaveRegisters, steps: KeySteps, phase: Phase, step: Expr,
    suffix: str,
) -> None:  # fmt: skip
    own = tiles(cut, suffix)
    copy_tiles(cut, place, own, steps, phase, step, suffix)  # K of the next step, V of this one
    rescale(cut, held)
    next_scores(cut, held, own, suffix)
    attend(cut, held, own, suffix)
    softmax(cut, place, held, steps.key(phase.first + step + 1, cut), phase.masked)

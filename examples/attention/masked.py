"""Masked: a query sees no key behind its own place, but all keys are multiplied as before."""

from __future__ import annotations

from tvm import tirx
from tvm.s_tir import Schedule

from examples.attention.kernel import CAUSAL, cut_of, scheduled
from examples.attention.size import Size
from examples.attention.skewed import walk
from mfmadsl.schedule.flash_attention.steps import KeySteps, Phase
from mfmadsl.schedule.flash_attention.wave import Cut, WavePlace, WaveRegisters


def schedule(size: Size, arch: str) -> Schedule:
    """Each step asks of each score whether it counts."""
    return scheduled(cut_of(size, CAUSAL[arch], arch, causal=True), body)


def body(cut: Cut, place: WavePlace, held: WaveRegisters) -> None:
    """What a wave does."""
    zero, keys = tirx.const(0, "int32"), cut.tiling.keys
    count = tirx.floordiv(place.keys + (keys - 1), keys)
    walk(cut, place, held, KeySteps(zero, count, (Phase(zero, count, True),)))

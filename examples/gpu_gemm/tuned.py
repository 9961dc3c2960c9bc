"""Tuned: TVM's MetaSchedule looks for a better tile, and the profiler is its stop watch.

The space is the double-buffered schedule with each of its extents left open. The search draws them
at random, from a fixed seed; what it measures is the profiler's time, so it needs no GPU, and finds
the same again each time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import tvm
from tvm.s_tir import Schedule

from examples.gpu_gemm import double_buffer
from examples.gpu_gemm.large_tiles import TILE
from examples.gpu_gemm.predict import predict
from examples.gpu_gemm.step import plain, scheduled
from examples.gpu_gemm.tile import Tile
from examples.metaschedule import FAILED, drawn
from examples.product import Size
from mfmadsl import MfmadslError

PARTS, THREADS, K_STEPS = (1, 2), (8, 16), (8, 16)
CHOICES = PARTS, PARTS, THREADS, THREADS, K_STEPS
SEED = 4
LEAST_K = 128
"""Tiles are ranked at an eighth of K, but at no less than this: turns are alike."""


@dataclass(frozen=True)
class Trial:
    """A tile, and its microseconds in the model; None if no kernel can be made of it."""

    tile: Tile
    microseconds: float | None


def trials_for(size: Size) -> int:
    """Fewer where the profiler takes longer: of a product of many workgroups."""
    return 8 if size.m * size.n <= 2**20 else 3


def tune(size: Size, arch: str, trials: int, seed: int = SEED) -> list[Trial]:
    """Draw so many tiles, and time each: the fastest first, those without a kernel last.

    The tile that was chosen by hand is timed as well, so that the first is never slower than it.
    """
    ranked = replace(size, k=min(size.k, max(LEAST_K, size.k // 8)))
    found = {trial.tile: trial for trial in _searched(ranked, arch, trials, seed)}
    if TILE not in found:
        by_hand = scheduled(lambda sch: double_buffer.schedule(sch, TILE), ranked)
        found[TILE] = Trial(TILE, predict(by_hand, ranked, arch).microseconds)
    return sorted(found.values(), key=lambda trial: trial.microseconds or float("inf"))


def schedule(size: Size, tile: Tile) -> Schedule:
    """The double-buffered schedule with a tile that was found."""
    return scheduled(lambda sch: double_buffer.schedule(sch, tile), size)


def space(sch: Schedule) -> None:
    """Draw a tile and schedule it; the trace remembers what was drawn."""

    def draw(choices: tuple[int, ...]) -> Any:
        return sch.sample_categorical(list(choices), [1 / len(choices)] * len(choices))

    rows, columns, thread_rows, thread_columns, k_step = map(draw, CHOICES)
    tile = Tile((thread_rows, thread_columns), TILE.elements, k_step, (rows, columns))
    double_buffer.schedule(sch, tile)


def _searched(size: Size, arch: str, trials: int, seed: int) -> list[Trial]:
    """Have MetaSchedule draw schedules of the space, and time them in the model of the chip."""

    def seconds(module: tvm.IRModule) -> float:
        return predict(Schedule(module), size, arch).microseconds / 1e6

    # Too much shared memory is refused, and a split that does not come out.
    records = drawn(plain(size).mod, space, seconds, trials, seed, refused=(MfmadslError,))
    return [_trial(record) for record in records]


def _trial(record: Any) -> Trial:
    """What a record's trace has drawn. A failed run is recorded with a time that none takes."""
    extents = [
        choices[int(record.trace.get_decision(instruction))]
        for instruction, choices in zip(
            (each for each in record.trace.insts if each.kind.name == "SampleCategorical"),
            CHOICES,
            strict=True,
        )
    ]
    rows, columns, thread_rows, thread_columns, k_step = extents
    tile = Tile((thread_rows, thread_columns), TILE.elements, k_step, (rows, columns))
    seconds = float(record.run_secs[0])
    return Trial(tile, seconds * 1e6 if seconds < FAILED else None)

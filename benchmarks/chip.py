"""The model of a whole chip beside what was measured on chips: the tables of docs/chip.md.

    python -m benchmarks.chip [--kernels FOLDER] [--workers N]

Triton compiles the kernels here (a few minutes, kept in FOLDER), and the model takes some 40
minutes of one core for all of them. Of Triton's matmul that setting counts which the model finds
the fastest at 4096 cubed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from benchmarks.call import command, count
from benchmarks.gemm.case import Case
from benchmarks.gemm.peer import ROOT, Kernel, kernels
from benchmarks.measured.figures import FIGURES, SOURCES, Figure, Shape
from benchmarks.measured.kernel import compile_all, profile
from mfmadsl.emulator.profiler import ChipTime
from tests.emulator.profiler.tile_orders import LARGE, SMALL, by_dies, by_rows, hits, of_tiles

CASE = Case("gfx950", "bf16", "bt")

RATES = [
    ("14592, by rows", by_rows(57), LARGE, (0.36, 0.76)),
    ("14592, window 8, chunk 542", by_dies(76 * 57, 57, 8, 541), LARGE, (0.79, 0.07)),
    ("14592, window 8, chunk 64", by_dies(76 * 57, 57, 8, 64), LARGE, (0.78, 0.55)),
    ("9216, by rows", by_rows(36), SMALL, (0.55, 0.95)),
    ("9216, window 7, chunk 216", by_dies(48 * 36, 36, 7, 216), SMALL, (0.79, 0.24)),
    ("9216, window 5, chunk 25", by_dies(48 * 36, 36, 5, 25), SMALL, (0.75, 0.93)),
]

Point = tuple[str, str, str, Shape]


class Modelled(NamedTuple):
    """TFLOP/s, the share of time that the matrix cores are busy, and the clock in MHz."""

    tflops: float
    busy: float
    clock: float

    @classmethod
    def of(cls, time: ChipTime) -> Modelled:
        return cls(time.tflops, time.shares["matrix cores"], time.clock)


def point_of(figure: Figure) -> Point:
    """What is modelled of a figure: its kernel, product, type and shape."""
    return figure.kernel, figure.product, figure.kind, figure.shape


def modelled(point: Point, folder: Path) -> Modelled:
    """What the model says of one of the kernels that are written in Gluon."""
    name, product, kind, shape = point
    found = Modelled.of(profile(folder, name, product, kind, shape).on_chip)
    print(*point, f"{found.tflops:.0f} TFLOP/s", file=sys.stderr, flush=True)
    return found


def triton(folder: Path, pool: Executor) -> Kernel:
    """The setting of Triton's matmul that the model finds the fastest."""
    every = kernels(CASE, folder)
    seconds = pool.map(partial(Kernel.seconds, shape=(4096, 4096, 4096)), every)
    return min(zip(seconds, every, strict=True), key=lambda pair: pair[0])[1]


def row(figure: Figure, time: Modelled) -> str:
    m, n, k = figure.shape
    return (
        f"| {figure.kernel} ({figure.source}) | {figure.product} | {figure.kind} | {m}x{n}x{k} "
        f"| {figure.measured:g} | {time.tflops:.0f} | {time.tflops / figure.measured - 1:+.0%} "
        f"| {time.busy:.0%} | {time.clock:.0f} | {figure.found} |"
    )


def table(figures: Sequence[Figure], times: Sequence[Modelled]) -> Iterator[str]:
    """All figures beside the model, and how far it is off on the average."""
    yield (
        "| kernel | product | type | M x N x K | measured, TFLOP/s | model | off by | matrix cores "
        "| MHz | found with it |"
    )
    yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    for figure, time in zip(figures, times, strict=True):
        yield row(figure, time)
    errors = [abs(t.tflops / f.measured - 1) for f, t in zip(figures, times, strict=True)]
    predicted = [error for f, error in zip(figures, errors, strict=True) if not f.found]
    yield ""
    yield (
        f"Of {len(figures)} figures {len(predicted)} are predicted. These are off by "
        f"{fmean(predicted):.1%} on the average and {max(predicted):.0%} at most, all by "
        f"{fmean(errors):.1%}."
    )
    yield ""
    for letter, source in SOURCES.items():
        yield f"- {letter}: {source}"


def rates() -> Iterator[str]:
    yield "| M = N = K, order | L2, measured | model | behind it, measured | model |"
    yield "| --- | --- | --- | --- | --- |"
    for name, order, tiles, (l2, behind) in RATES:
        own = hits(of_tiles(order, *tiles, 256))
        yield f"| {name} | {l2:.0%} | {own[0]:.0%} | {behind:.0%} | {own[1]:.0%} |"


def main() -> None:
    """Print the tables."""
    parser = command(__doc__)
    parser.add_argument("--kernels", type=Path, default=ROOT / "build" / "measured")
    parser.add_argument("--workers", type=count, default=os.cpu_count() or 1)
    given = parser.parse_args()
    folder = given.kernels
    compile_all(folder)
    own = [figure for figure in FIGURES if figure.kernel != "triton"]
    points = list(dict.fromkeys(map(point_of, own)))
    with ProcessPoolExecutor(given.workers) as pool:
        found = dict(zip(points, pool.map(partial(modelled, folder=folder), points), strict=True))
        best = triton(folder, pool)
    times = [found[point_of(figure)] for figure in own]
    others = [figure for figure in FIGURES if figure.kernel == "triton"]
    times += [Modelled.of(best.profile(figure.shape).on_chip) for figure in others]
    for line in (*table([*own, *others], times), "", f"Triton's setting: {best.setting}", "",
                 *rates()):  # fmt: skip
        print(line, flush=True)


if __name__ == "__main__":
    main()

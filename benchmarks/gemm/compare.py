"""Our GEMM kernels beside Triton's best, for every type and order of B: `make bench`.

    python -m benchmarks.gemm.compare [--types f16 fp8] [--orders bt] [--kernels FOLDER]
                                      [--output FILE]

Triton compiles every setting of `triton_kernels.settings` for each case, and that which is the
fastest in the chip model counts; of ours the one that nobody chose by hand. llvm-mca is a second
witness of the main loops where there is a `llvm-mca-22` (Debian's package llvm-22). All types and
orders take some hours on two cores; what Triton has compiled into FOLDER already is taken from
there.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import mfmadsl
from benchmarks.call import command
from benchmarks.gemm import peer
from benchmarks.gemm.case import LARGE, LOW, Case, Shape, cases
from benchmarks.gemm.loop import Loop, measure
from benchmarks.gemm.ours import chosen
from mfmadsl.backend import build
from mfmadsl.emulator.profiler import Profile
from mfmadsl.schedule import gemm_schedule
from tests.schedule.matrix_core.gemm.case import CHIPS, ORDERS, TYPES

WITNESSED = LARGE[1]
"""The shape whose main loops llvm-mca is asked about, and whose building is timed."""
CUBES = (8192, 16384)
"""Larger M = N = K, of one type and order of B."""
CUBED = ("bf16", "bt")


@dataclass(frozen=True)
class Entry:
    """A kernel in the chip model, `unlimited` with all the power that it would take; and its main
    loop, with the LDS cycles beyond the least possible."""

    setting: str
    seconds: float
    unlimited: float
    limit: str
    lds_bytes: int
    conflicts: int
    loop: Loop


@dataclass(frozen=True)
class Pair:
    """Ours and Triton's, for one product."""

    case: Case
    shape: Shape
    ours: Entry
    peer: Entry

    @property
    def speed(self) -> float:
        """Triton's time over ours."""
        return self.peer.seconds / self.ours.seconds

    @property
    def unlimited(self) -> float:
        """The same, if power were no limit."""
        return self.peer.unlimited / self.ours.unlimited


def ours(case: Case, shape: Shape) -> Entry:
    """The kernel that `gemm_schedule` makes, nothing chosen by hand."""
    own = chosen(case, shape)
    profile = mfmadsl.profile(own.kernel, case.arrays(*shape))
    return entry(case, own.setting(case), profile, own.kernel.assembly, own.kernel.lds_bytes)


def triton(kernel: peer.Kernel, shape: Shape) -> Entry:
    """A kernel of Triton's."""
    profile = kernel.profile(shape)
    assembly = kernel.path.read_text()
    return entry(kernel.case, kernel.setting, profile, assembly, kernel.lds_bytes)


def entry(case: Case, setting: str, profile: Profile, assembly: str, lds_bytes: int) -> Entry:
    chip = profile.on_chip
    conflicts = profile.loop.lds_conflict_cycles if profile.loop else 0
    unlimited = chip.seconds * chip.clock / chip.product.clock
    loop = measure(assembly, case.arch)
    return Entry(setting, chip.seconds, unlimited, chip.limit, lds_bytes, conflicts, loop)


def measured(of: Sequence[Case], folder: Path, pool: Executor) -> list[Pair]:
    """All pairs of these cases."""
    kernels = {
        (case, shape): kernel
        for case in of
        for shape, kernel in peer.fastest(case, folder, pool).items()
    }
    for case in of:
        if (case.kind, case.order) == CUBED:
            kernels |= {(case, (size, size, size)): kernels[case, LARGE[-1]] for size in CUBES}
    shapes = [shape for _, shape in kernels]
    own = pool.map(ours, [case for case, _ in kernels], shapes)
    theirs = pool.map(triton, kernels.values(), shapes)
    return [Pair(*each) for each in zip(*zip(*kernels, strict=True), own, theirs, strict=True)]


def chip_rows(pair: Pair) -> Iterator[str]:
    m, n, k = pair.shape
    for name, one in (("ours", pair.ours), ("Triton", pair.peer)):
        speed = f"{pair.speed:.2f} | {pair.unlimited:.2f}" if name == "ours" else " | "
        yield (
            f"| {pair.case.title} | {m} x {n} x {k} | {name} | {one.setting} "
            f"| {one.seconds * 1e6:.1f} | {2 * m * n * k / one.seconds / 1e12:.0f} | {one.limit} "
            f"| {speed} |"
        )


def loop_rows(pair: Pair) -> Iterator[str]:
    for name, one in (("ours", pair.ours), ("Triton", pair.peer)):
        share = one.loop.efficiency(pair.case.per_cycle)
        yield (
            f"| {pair.case.title} | {name} | {one.setting} | {one.loop.per_unit:.2f} "
            f"| {one.loop.registers} | {one.loop.spilled} | {one.lds_bytes} | {one.conflicts} "
            f"| {'' if share is None else f'{share:.3f}'} |"
        )


def mean(ratios: Iterable[float]) -> float:
    """The geometric one."""
    logs = [math.log(ratio) for ratio in ratios]
    return math.exp(sum(logs) / len(logs))


def summary(pairs: Sequence[Pair]) -> Iterator[str]:
    """What the ratios come to."""
    least = min(pairs, key=lambda pair: pair.speed)
    name = f"{least.case.title}, {' x '.join(map(str, least.shape))}"
    yield (
        f"All {len(pairs)} products: geometric mean {mean(p.speed for p in pairs):.2f}, least "
        f"{least.speed:.2f} ({name}); at full power {mean(p.unlimited for p in pairs):.2f}, "
        f"least {min(p.unlimited for p in pairs):.2f}."
    )
    yield ""
    yield "| M x N x K | mean | least | most |"
    yield "| --- | --- | --- | --- |"
    by_shape = {pair.shape: [p.speed for p in pairs if p.shape == pair.shape] for pair in pairs}
    for shape, speeds in by_shape.items():
        extents = " x ".join(map(str, shape))
        yield f"| {extents} | {mean(speeds):.2f} | {min(speeds):.2f} | {max(speeds):.2f} |"
    yield ""
    types = list(dict.fromkeys(pair.case.kind for pair in pairs))
    yield "| geometric mean | " + " | ".join(types) + " | M = 16 | the large ones |"
    yield "| --- | " + " | ".join("---" for _ in (*types, *CHIPS)) + " |"
    for arch in CHIPS:
        own = [pair for pair in pairs if pair.case.arch == arch]
        of_types = (mean(p.speed for p in own if p.case.kind == kind) for kind in types)
        of_low = mean(p.speed for p in own if p.shape == LOW)
        of_large = mean(p.speed for p in own if p.shape != LOW)
        cells = [f"{ratio:.2f}" for ratio in (*of_types, of_low, of_large)]
        yield f"| {arch} | " + " | ".join(cells) + " |"


def instruction_of(case: Case) -> str:
    """The one that is chosen for the product whose building is timed."""
    return mfmadsl.gemm_tiling(case.workload(*WITNESSED), arch=case.arch).instruction


def building(pairs: Sequence[Pair], folder: Path) -> Iterator[str]:
    """Seconds of schedule and code generation, and of Triton for its kernel of the same product.

    One after the other, the best of three each, warmed up by another tile with the same
    instruction, nothing of the kernel cached.
    """
    ratios = []
    yield "| case | ours, s | Triton, s |"
    yield "| --- | --- | --- |"
    for pair in pairs:
        seconds = []
        for shape in ((256, 256, 1024), *peer.RUNS * (pair.shape,)):
            workload = pair.case.workload(*shape)
            start = time.perf_counter()
            schedule = gemm_schedule(workload, instruction_of(pair.case), pair.case.arch)
            build(schedule, pair.case.arch)
            seconds.append(time.perf_counter() - start)
        own = min(seconds[1:])
        kernel = next(k for k in peer.kernels(pair.case, folder) if k.setting == pair.peer.setting)
        theirs = peer.seconds_to_compile(kernel)
        ratios.append(own / theirs)
        yield f"| {pair.case.title} | {own:.2f} | {theirs:.2f} |"
    yield ""
    yield f"Ours over Triton's: geometric mean {mean(ratios):.2f}, most {max(ratios):.2f}."


def page(pairs: Sequence[Pair], folder: Path, called: str) -> Iterator[str]:
    witnessed = [pair for pair in pairs if pair.shape == WITNESSED]
    yield "# The GEMM compared with Triton"
    yield ""
    yield (
        "Our default GEMM kernels and Triton's best, in [the chip model](chip.md); nothing is "
        "measured on a chip."
    )
    yield f"`{called}` writes this page."
    yield "[The GEMM](gemm.md#compared-with-triton) explains the columns and limits."
    yield ""
    yield from summary(pairs)
    yield ""
    yield "## Chip model"
    yield ""
    yield "| case | M x N x K | kernel | setting | us | TFLOP/s | limit | speed | at full power |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    for pair in pairs:
        yield from chip_rows(pair)
    yield ""
    yield f"## Main loops, {' x '.join(map(str, WITNESSED))}"
    yield ""
    yield (
        "| case | kernel | setting | instructions / 65536 multiply-adds | registers | spilled "
        "| LDS bytes | LDS conflict cycles | bound / cycles by llvm-mca |"
    )
    yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    for pair in witnessed:
        yield from loop_rows(pair)
    yield ""
    yield f"## Build times, {' x '.join(map(str, WITNESSED))}"
    yield ""
    yield from building(witnessed, folder)


def main() -> None:
    """Measure, print the page, and write it."""
    parser = command(__doc__)
    parser.add_argument("--kernels", type=Path, default=peer.ROOT / "build" / "triton")
    parser.add_argument("--output", type=Path, default=peer.ROOT / "docs" / "gemm-benchmark.md")
    parser.add_argument("--types", nargs="+", choices=TYPES, default=TYPES)
    parser.add_argument("--orders", nargs="+", choices=ORDERS, default=ORDERS)
    options = parser.parse_args()
    of = list(cases(options.types, options.orders))
    peer.compile_all(options.kernels, of)
    with ProcessPoolExecutor(peer.WORKERS, mp_context=get_context("spawn")) as pool:
        pairs = measured(of, options.kernels, pool)
    called = "make bench"
    if len(of) < len(list(cases())):
        names = f"--types {' '.join(options.types)} --orders {' '.join(options.orders)}"
        called = f"python -m benchmarks.gemm.compare {names}"
    text = "".join(f"{line}\n" for line in page(pairs, options.kernels, called))
    print(text)
    options.output.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

"""Our GEMM kernels beside those of IREE and of Gluon, in the chip model: `make bench-peers`.

    python -m benchmarks.gemm.iree_and_gluon [--chips gfx942 gfx950] [--types f16]
                                             [--workers N] [--kernels FOLDER] [--output FILE]

IREE's compiler makes a kernel for each product, as it comes and with each of
`iree_kernels.settings`, and that which is the fastest in the model counts. Gluon's kernel is the
ping-pong of `benchmarks.measured`. Both chips take half an hour on two idle cores.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path

import mfmadsl
from benchmarks.call import command, count
from benchmarks.gemm import iree_kernels
from benchmarks.gemm.case import LANGUAGE, LARGE, LOW, Case, Shape
from benchmarks.gemm.compare import mean
from benchmarks.gemm.ours import chosen
from benchmarks.gemm.peer import ROOT
from benchmarks.measured import kernel as gluon
from mfmadsl.model import product_of
from tests.schedule.matrix_core.gemm.case import CHIPS, TYPES

SHAPES = tuple(dict.fromkeys((*LARGE, LOW, *LANGUAGE)))
TILED: tuple[Shape, ...] = (
    *((size, size, size) for size in (2048, 4096, 8192)), (2048, 4096, 4096), (4096, 4096, 8192),
    (4096, 14336, 4096), (4864, 4096, 4160), (4864, 4096, 8192), (4864, 4096, 8256),
)  # fmt: skip
DEPTHS = {"gfx942": 64, "gfx950": 128}
"""What K is a multiple of, for Gluon's ping-pong: a step, or two of them."""
PING_PONG = "ping-pong"
GLUON_TYPES = ("f16", "bf16")
BEHIND = 1.02


@dataclass(frozen=True)
class Row:
    """One product: seconds of ours, and of each of the peer's settings that were tried; and of
    what is another product, of operands that lie `packed`."""

    case: Case
    shape: Shape
    setting: str
    ours: float
    peers: dict[str, float]
    packed: float | None = None

    @property
    def best(self) -> str:
        """The peer's fastest setting."""
        return min(self.peers, key=lambda name: self.peers[name])

    def speed(self, setting: str = "") -> float:
        """The peer's time over ours, with its best setting or another."""
        return self.peers[setting or self.best] / self.ours

    @property
    def name(self) -> str:
        return f"{self.case.arch} {self.case.kind}, {' x '.join(map(str, self.shape))}"


def own_seconds(case: Case, shape: Shape, output: str = "") -> tuple[str, float]:
    """The setting of our kernel, and its time on the chip."""
    own = chosen(case, shape, output)
    profile = mfmadsl.profile(own.kernel, case.arrays(*shape, output))
    return own.setting(case), profile.on_chip.seconds


def beside_iree(cell: tuple[Case, Shape], folder: Path) -> Row:
    """A product of ours and of IREE's, with all settings, of which those that change nothing are
    left out."""
    case, shape = cell
    tried: list[iree_kernels.Product] = []
    seconds = {}
    for setting in iree_kernels.settings(shape):
        product = iree_kernels.compiled(case, shape, setting, folder)
        if product is None or any(map(product.same_as, tried)):
            continue
        tried.append(product)
        seconds[setting] = product.time().seconds
    tiled = iree_kernels.compiled(case, shape, iree_kernels.PACKED, folder)
    packed = None if tiled is None else tiled.time().seconds
    return _told(Row(case, shape, *own_seconds(case, shape), seconds, packed))


def beside_gluon(cell: tuple[Case, Shape], folder: Path) -> Row:
    """A product of ours, with a C as narrow as Gluon's, and of Gluon's."""
    case, shape = cell
    product = product_of(case.arch).name
    peer = gluon.profile(folder, PING_PONG, product, case.kind, shape).on_chip.seconds
    own = own_seconds(case, shape, gluon.output_of(case.kind))
    return _told(Row(case, shape, *own, {PING_PONG: peer}))


def _told(row: Row) -> Row:
    peers = ", ".join(f"{name} {seconds * 1e6:.1f}" for name, seconds in row.peers.items())
    packed = f", packed {row.packed * 1e6:.1f}" if row.packed else ""
    print(f"{row.name}: {row.ours * 1e6:.1f} us, {peers}{packed}", file=sys.stderr, flush=True)
    return row


def summary(rows: Sequence[Row], setting: str = "") -> Iterator[str]:
    """What the ratios of each chip come to, and where ours is behind."""
    yield "| chip | products | geometric mean | least | behind by more than 2 % |"
    yield "| --- | --- | --- | --- | --- |"
    for arch in dict.fromkeys(row.case.arch for row in rows):
        own = [row for row in rows if row.case.arch == arch]
        speeds = [row.speed(setting) for row in own]
        behind = ", ".join(row.name for row in own if row.speed(setting) * BEHIND < 1) or "none"
        yield f"| {arch} | {len(speeds)} | {mean(speeds):.2f} | {min(speeds):.2f} | {behind} |"


def iree_table(rows: Sequence[Row]) -> Iterator[str]:
    yield (
        "| product | ours | us | IREE as it comes, us | speed | IREE's best, us | its setting "
        "| speed | A and B packed, us |"
    )
    yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    for row in rows:
        default, best = row.peers[iree_kernels.DEFAULT], row.peers[row.best]
        yield (
            f"| {row.name} | {row.setting} | {row.ours * 1e6:.1f} | {default * 1e6:.1f} "
            f"| {row.speed(iree_kernels.DEFAULT):.2f} | {best * 1e6:.1f} | {row.best} "
            f"| {row.speed():.2f} | {f'{row.packed * 1e6:.1f}' if row.packed else ''} |"
        )


def gluon_table(rows: Sequence[Row]) -> Iterator[str]:
    yield "| product | ours | us | Gluon's, us | speed |"
    yield "| --- | --- | --- | --- | --- |"
    for row in rows:
        yield (
            f"| {row.name} | {row.setting} | {row.ours * 1e6:.1f} "
            f"| {row.peers[PING_PONG] * 1e6:.1f} | {row.speed():.2f} |"
        )


def page(iree: Sequence[Row], ping_pong: Sequence[Row], called: str) -> Iterator[str]:
    """The page, in Markdown."""
    yield "# The GEMM compared with IREE and Gluon"
    yield ""
    yield "Our default GEMM kernels beside those of two other compilers. All times are those of"
    yield "[the chip model](chip.md), of an MI300X (gfx942) and an MI355X (gfx950); nothing is"
    yield "measured on a chip. `speed` is the peer's time over ours, and"
    yield "[the GEMM](gemm.md#compared-with-iree-and-gluon) explains the settings and limits."
    yield f"`{called}` writes this page."
    yield f"IREE is {version('iree-base-compiler')}, Gluon that of Triton {version('triton')}."
    looks = (("As it comes:", iree_kernels.DEFAULT), ("With its best setting:", ""))
    if iree:
        yield from ("", "## IREE")
        for title, setting in looks:
            yield from ("", title, "", *summary(iree, setting))
        yield from ("", *iree_table(iree))
    if ping_pong:
        yield from ("", "## Gluon's ping-pong", "", *summary(ping_pong))
        yield from ("", *gluon_table(ping_pong))


def main() -> None:
    """Measure, print the page, and write it."""
    parser = command(__doc__)
    parser.add_argument("--chips", nargs="+", choices=CHIPS, default=CHIPS)
    parser.add_argument("--types", nargs="+", choices=TYPES, default=["f16"])
    parser.add_argument("--workers", type=count, default=os.cpu_count() or 1)
    parser.add_argument("--kernels", type=Path, default=ROOT / "build")
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "gemm-peers.md")
    given = parser.parse_args()
    cases = [Case(arch, kind, "bt") for arch in given.chips for kind in given.types]
    tiled = [
        (case, shape) for case in cases if case.kind in GLUON_TYPES
        for shape in TILED if not shape[2] % DEPTHS[case.arch]
    ]  # fmt: skip
    if not iree_kernels.COMPILER.exists():
        raise SystemExit(iree_kernels.MISSING)
    names = [f"{PING_PONG}-{case.arch}-{case.kind}" for case in cases if case.kind in GLUON_TYPES]
    if names:
        gluon.compile_all(given.kernels / "measured", names)
    with ProcessPoolExecutor(given.workers, mp_context=get_context("spawn")) as pool:
        gluons = partial(beside_gluon, folder=given.kernels / "measured")
        irees = partial(beside_iree, folder=given.kernels / "iree")
        ping_pong = list(pool.map(gluons, tiled))
        iree = list(pool.map(irees, [(case, shape) for case in cases for shape in SHAPES]))
    called = "make bench-peers"
    if (list(given.chips), list(given.types)) != (list(CHIPS), ["f16"]):
        names = [f"--chips {' '.join(given.chips)}", f"--types {' '.join(given.types)}"]
        called = f"python -m benchmarks.gemm.iree_and_gluon {' '.join(names)}"
    text = "".join(f"{line}\n" for line in page(iree, ping_pong, called))
    print(text)
    given.output.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

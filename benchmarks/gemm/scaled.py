"""GEMMs of scaled operands beside Triton's best, on the chip model of an MI355X.

    python -m benchmarks.gemm.scaled [--kernels FOLDER]

Triton compiles `dot_scaled` with each setting of `triton_scaled`; that which is the fastest in the
model counts. It reads scales by rows, ours by rows and by words. It takes half an hour on two
cores; what Triton has compiled into FOLDER already is taken from there.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import click
import numpy as np
import numpy.typing as npt

import mfmadsl
from mfmadsl.emulator.profiler.chip import ChipTime
from mfmadsl.model import ARCHITECTURES, product_of

ARCH = "gfx950"
ROOT = Path(__file__).parent.parent.parent
TYPES = {
    "mxfp8": ("float8_e4m3fn", "float8_e4m3fn"),
    "mxfp4": ("float4_e2m1fn", "float4_e2m1fn"),
    "mixed": ("float8_e4m3fn", "float4_e2m1fn"),
}
CUBES = (4096, 8192)
TRIAL = (4096, 4096, 1024)  # with which the finalists are found
FINALISTS = 8
GROUP = 4  # rows of tiles that Triton's kernel goes through together


@dataclass(frozen=True)
class Peer:
    """A kernel of Triton's, with one of its settings."""

    path: Path
    lds_bytes: int
    waves: int

    @property
    def kind(self) -> str:
        return self.path.stem.split("-")[0]

    @property
    def setting(self) -> str:
        return self.path.stem.removeprefix(f"{self.kind}-")

    def profile(self, shape: tuple[int, int, int]) -> ChipTime:
        """A whole product, in the order that keeps neighbours on one die."""
        m, n, _ = shape
        rows, columns = map(int, self.setting.split("x")[:2])
        groups = -(-m // rows) * -(-n // columns)
        dies = product_of(ARCH).dies
        order = dies if groups % dies == 0 else 1, GROUP
        found = mfmadsl.profile(
            self.path.read_text(),
            [*arrays(TYPES[self.kind], shape), *map(np.int32, (*shape, *order)), None, None],
            (groups,),
            (64 * self.waves,),
            lds_bytes=self.lds_bytes,
        )
        return found.on_chip


def arrays(
    types: tuple[str, str], shape: tuple[int, int, int], order: str = "rows"
) -> list[npt.NDArray[Any]]:
    """A, B and their scales, of bytes, and C."""
    m, n, k = shape
    bits = [{"float8_e4m3fn": 8, "float4_e2m1fn": 4}[each] for each in types]
    octets = [np.zeros((rows, k * b // 8), np.uint8) for rows, b in zip((m, n), bits, strict=True)]
    shapes: list[dict[str, tuple[int, ...]]] = [
        {
            "rows": (rows, k // 32), "words": (k // 128, rows, 4),
            "shuffled": (rows // 32, k // 256, 4, 16, 2, 2),
        }
        for rows in (m, n)
    ]  # fmt: skip
    scales = [np.full(each[order], 127, np.uint8) for each in shapes]
    return [*octets, *scales, np.zeros((m, n), np.float32)]


def ours(types: tuple[str, str], shape: tuple[int, int, int], order: str) -> tuple[str, ChipTime]:
    """The kernel that `gemm_schedule` makes, nothing chosen by hand, but of one tile a workgroup:
    one that walks over many takes minutes to emulate."""
    workload = mfmadsl.scaled_matmul(*shape, *types, order)
    tiling = replace(mfmadsl.gemm_tiling(workload, arch=ARCH), persistent=False)
    kernel = mfmadsl.build(mfmadsl.gemm_schedule(workload, arch=ARCH, tiling=tiling), ARCH)
    assert kernel.registers.spilled == 0
    found = mfmadsl.profile(kernel, arrays(types, shape, order)).on_chip
    setting = (
        f"{tiling.block[0]}x{tiling.block[1]}x{tiling.k_step}-w{tiling.wave_count}"
        f"-s{tiling.stages}-i{tiling.instruction.split('_')[3].split('x')[0]}"
    )
    return setting, found


def peers(folder: Path) -> list[Peer]:
    """Triton's kernels, compiled in a process of its own, that the chip has enough LDS for."""
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "benchmarks.gemm.triton_scaled", str(folder)]
    environment = {**os.environ, "TRITON_CACHE_DIR": str(folder / "cache")}
    subprocess.run(command, cwd=ROOT, env=environment, check=True, stderr=subprocess.DEVNULL)
    found = []
    for path in sorted(folder.glob("*.s")):
        facts = json.loads(path.with_suffix(".json").read_text())
        if facts["lds_bytes"] <= ARCHITECTURES[ARCH].lds_bytes:
            found.append(Peer(path, facts["lds_bytes"], facts["waves"]))
    return found


def best(of: Sequence[Peer], shape: tuple[int, int, int], pool: Executor) -> list[Peer]:
    """The fastest first."""
    seconds: Iterable[float] = pool.map(partial(_seconds, shape=shape), of)
    ranked = sorted(zip(seconds, of, strict=True), key=lambda pair: pair[0])
    return [kernel for _, kernel in ranked]


def _seconds(peer: Peer, shape: tuple[int, int, int]) -> float:
    return float(peer.profile(shape).seconds)


@click.command()
@click.option("--kernels", type=click.Path(path_type=Path), default=Path("build/triton_scaled"))
def main(kernels: Path) -> None:
    """Print the table."""
    every = peers(kernels)
    print("| MI355X (modelled) | scales | ours | us | limit | Triton | us | limit | speed |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        finalists = {
            kind: best([each for each in every if each.kind == kind], TRIAL, pool)[:FINALISTS]
            for kind in TYPES
        }
        for kind, types in TYPES.items():
            for size in CUBES:
                shape = (size, size, size)
                peer = best(finalists[kind], shape, pool)[0]
                time = peer.profile(shape)
                theirs = [peer.setting, f"{time.seconds * 1e6:.0f}", time.limit]
                for order in ("rows", "words", "shuffled"):
                    setting, found = ours(types, shape, order)
                    own = [setting, f"{found.seconds * 1e6:.0f}", found.limit]
                    speed = f"{time.seconds / found.seconds:.2f}"
                    row = [f"{kind}, {size} cubed", order, *own, *theirs, speed]
                    print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()

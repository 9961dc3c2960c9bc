"""Attention in the chip model: `attention_schedule` beside the best of Triton's settings.

.venv-bench/bin/python -m benchmarks.attention.compare [--arch gfx942]      # after `make bench`

Triton compiles every setting of `triton_kernels.settings` for each case; those that are the best of
a short sequence are tried with the whole one. What is masked does not count as work.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import mfmadsl
from mfmadsl.columns import columns
from mfmadsl.model import ARCHITECTURES

ROOT = Path(__file__).parent.parent.parent
FINALISTS = 3
TRIAL = 1024  # queries and keys of the sequence that chooses the finalists


@dataclass(frozen=True)
class Case:
    """Heads of queries and of keys, queries, keys, and depth, of a type."""

    heads: int
    queries: int
    keys: int
    depth: int
    kind: str = "f16"
    causal: bool = False
    shared: int = 1

    def __str__(self) -> str:
        mask = " causal" if self.causal else ""
        group = f" / {self.heads // self.shared}" if self.shared > 1 else ""
        shape = f"{self.heads}{group} x {self.queries} x {self.keys} x {self.depth}"
        return f"{shape} {self.kind}{mask}"

    @property
    def operations(self) -> float:
        """Multiplications and additions of both products."""
        whole = 4.0 * self.heads * self.queries * self.keys * self.depth
        return whole * (1 - self.queries / self.keys / 2) if self.causal else whole

    def arrays(self) -> list[Any]:
        """Q, K, V and room for O, all zeros: the model does not look at them."""
        own, shared = self.heads, self.heads // self.shared
        lengths = (own, self.queries), (shared, self.keys), (shared, self.keys), (own, self.queries)
        return [np.zeros((1, *length, self.depth), np.float16) for length in lengths]


CASES = (
    Case(64, 4096, 4096, 128), Case(16, 16384, 16384, 128), Case(64, 4096, 4096, 64),
    Case(64, 4096, 4096, 128, shared=8), Case(64, 4096, 4096, 128, "bf16"),
    Case(64, 4096, 4096, 128, causal=True),
)  # fmt: skip
TYPES = {"f16": "float16", "bf16": "bfloat16"}


def ours(case: Case, arch: str) -> float:
    """Seconds of our kernel."""
    workload = mfmadsl.attention(
        1, case.heads, case.queries, case.keys, case.depth, TYPES[case.kind],
        kv_heads=case.heads // case.shared, causal=case.causal,
    )  # fmt: skip
    kernel = mfmadsl.build(mfmadsl.attention_schedule(workload, arch), arch)
    return float(mfmadsl.profile(kernel, case.arrays()).on_chip.seconds)


def compiled(cases: Sequence[Case], arch: str, folder: Path) -> None:
    """Compile all settings, in a process of its own, for Triton brings an LLVM that TVM's must not
    meet."""
    folder.mkdir(parents=True, exist_ok=True)
    names = sorted({_name(case, arch) for case in cases})
    environment = {**os.environ, "TRITON_CACHE_DIR": str(folder / "cache")}
    program = [sys.executable, "-m", "benchmarks.attention.triton_kernels", str(folder), *names]
    try:
        subprocess.run(program, check=True, cwd=ROOT, env=environment, stderr=subprocess.DEVNULL)
    except subprocess.CalledProcessError as error:
        raise SystemExit("Triton failed: is it installed? pip install '.[bench]'") from error


def _name(case: Case, arch: str) -> str:
    return f"{arch}.{case.kind}.{case.depth}.{'causal' if case.causal else 'full'}"


def theirs(case: Case, arch: str, folder: Path, pool: Executor) -> tuple[float, str]:
    """(seconds, setting) of Triton's best."""
    found = [
        path for path in sorted(folder.glob(f"{_name(case, arch)}-*.s"))
        if _facts(path)["lds_bytes"] <= ARCHITECTURES[arch].lds_bytes
    ]  # fmt: skip
    short = replace(case, queries=TRIAL, keys=TRIAL)
    seconds = pool.map(partial(_seconds, short), found)
    finalists = [path for _, path in sorted(zip(seconds, found, strict=True))[:FINALISTS]]
    best, path = min(zip(pool.map(partial(_seconds, case), finalists), finalists, strict=True))
    return best, path.stem.removeprefix(f"{_name(case, arch)}-")


def _facts(path: Path) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(path.with_suffix(".json").read_text())
    return facts


def _seconds(case: Case, path: Path) -> float:
    facts, queries = _facts(path), int(path.stem.rpartition(".")[2].partition("-")[2].split("x")[0])
    m, n, d = case.queries, case.keys, case.depth
    integers = map(np.int32, (m, n, d, d, m * d, n * d, case.shared))
    scale = np.float32(d**-0.5 * np.log2(np.e))
    arguments = [*case.arrays(), *integers, scale, None, None]
    profile = mfmadsl.profile(
        path.read_text(), arguments, (case.heads, m // queries), (64 * facts["waves"],),
        lds_bytes=facts["lds_bytes"],
    )  # fmt: skip
    return float(profile.on_chip.seconds)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--arch", choices=("gfx942", "gfx950"), default="gfx942")
    parser.add_argument("--kernels", type=Path, default=ROOT / "build" / "triton-attention")
    parser.add_argument("--only", default="", help="cases with this in their lines, such as causal")
    asked = parser.parse_args()
    cases = [case for case in CASES if asked.only in str(case)]
    compiled(cases, asked.arch, asked.kernels)
    rows = [("HEADS x QUERIES x KEYS x DEPTH", "US", "TFLOP/s", "TRITON", "RATIO", "ITS SETTING")]
    with ProcessPoolExecutor() as pool:
        for case in cases:
            own, (other, setting) = ours(case, asked.arch), theirs(
                case, asked.arch, asked.kernels, pool
            )  # fmt: skip
            rows.append((
                str(case), f"{own * 1e6:.1f}", f"{case.operations / own / 1e12:.0f}",
                f"{other * 1e6:.1f}", f"{other / own:.2f}", setting,
            ))  # fmt: skip
    print(columns(rows))


if __name__ == "__main__":
    main()

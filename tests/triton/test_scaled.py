"""Triton's `dot_scaled` in the emulator: another witness for whole scaled products."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mfmadsl
from mfmadsl.emulator.sanitizer import sanitize
from tests.schedule.matrix_core.scaled.operands import scaled

ROOT = Path(__file__).parent.parent.parent
KINDS = {
    "mxfp8": ("float8_e4m3fn", "float8_e4m3fn"),
    "mxfp4": ("float4_e2m1fn", "float4_e2m1fn"),
    "mixed": ("float8_e4m3fn", "float4_e2m1fn"),
}
SETTING = "128x128x128-w4-s2-i16"
M, N, K = 144, 160, 384  # multiples of 16, as the kernels are told, but not of the tile


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("triton_scaled")
    subprocess.run(
        [
            sys.executable, "-m", "benchmarks.gemm.triton_scaled", folder,
            *(f"{kind}-{SETTING}" for kind in KINDS),
        ],
        check=True,
        cwd=ROOT,
        env={**os.environ, "TRITON_CACHE_DIR": str(folder / "cache")},
    )  # fmt: skip
    return folder


@pytest.mark.xdist_group("triton")
@pytest.mark.parametrize("kind", KINDS)
def test_our_kernel_gives_what_tritons_does(kind: str, compiled: Path) -> None:
    path = compiled / f"{kind}-{SETTING}.s"
    facts = json.loads(path.with_suffix(".json").read_text())
    rng = np.random.default_rng(11)
    a, b = (scaled(rng, rows, K, dtype) for rows, dtype in zip((M, N), KINDS[kind], strict=True))
    theirs, ours = (np.full((M, N), 99, np.float32) for _ in range(2))
    sizes = map(np.int32, (M, N, K, 1, 1))
    # Triton passes two more pointers, to memory that these kernels do not use.
    found = sanitize(
        path.read_text(),
        [a.packed, b.packed, a.scales, b.scales, theirs, *sizes, None, None],
        (4,), (64 * facts["waves"],), lds_bytes=facts["lds_bytes"], keep_going=True,
    )  # fmt: skip
    assert [str(fault) for fault in found.faults] == []
    workload = mfmadsl.scaled_matmul(M, N, K, *KINDS[kind])
    kernel = mfmadsl.build(mfmadsl.gemm_schedule(workload, arch="gfx950"), "gfx950")
    mfmadsl.sanitize(kernel, [a.packed, b.packed, a.scales, b.scales, ours])
    wanted = a.values @ b.values.T
    bound = 2.0**-23 * K * (np.abs(a.values) @ np.abs(b.values).T)
    for c in (theirs, ours):
        assert (np.abs(c - wanted) <= bound).all()
    assert (np.abs(theirs - ours) <= bound).all()

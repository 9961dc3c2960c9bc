"""An instruction that LLVM does not have gets as far as LLVM allows: all but machine code."""

from __future__ import annotations

from pathlib import Path

import pytest

import mfmadsl
from mfmadsl.schedule import default_factors
from tests.emulator.matrix.test_described import INVENTED, invented
from tests.test_cli import run


@pytest.mark.parametrize(("m", "n"), [(8, 32), (32, 16)])
def test_it_is_scheduled_and_not_built(m: int, n: int) -> None:
    intrinsic = invented(m, n)
    tile = mfmadsl.load_intrinsic(intrinsic)
    factors = default_factors(intrinsic, 64, 64, 64)
    schedule = mfmadsl.mfma_schedule(
        mfmadsl.matmul(64, 64, 64, "float16", "float32"),
        tile.K,
        "float16",
        False,
        factors.i,
        factors.j,
        factors.k,
        tile.index_map_A,
        tile.index_map_B,
        tile.index_map_C,
        tile.LOAD_A_SHARED,
        tile.LOAD_B_SHARED,
        tile.COMPUTE,
        tile.FILL,
        tile.STORE_GLOBAL,
    )
    assert tile.COMPUTE in str(schedule.trace)
    call = f"llvm.amdgcn.mfma.f32.{m}x{n}x16.f16"
    with pytest.raises(mfmadsl.LoweringError, match=f"LLVM has no intrinsic `{call}`"):
        mfmadsl.build(schedule, arch="gfx942")


def test_every_command_takes_it_or_says_why_not(tmp_path: Path) -> None:
    path = tmp_path / "invented.mfma"
    path.write_text(INVENTED.format(m=8, n=32, a=2, b=8))
    name = "mfma_f32_8x32x16_f16"
    assert run("check", path).exit_code == 0
    assert run("fmt", "--check", path).exit_code in (0, 1)
    assert run("compile", path, "-o", tmp_path / "out").exit_code == 0
    shown = run("show", name, "--spec", path)
    assert shown.exit_code == 0
    assert "call    llvm.amdgcn.mfma.f32.8x32x16.f16, which LLVM does not have" in shown.output
    gemm = ("gemm", "--intrinsic", name, "--spec", path, "--arch", "gfx942")
    refused = run(*gemm, "-m", 64, "-n", 64, "-k", 64)
    assert refused.exit_code == 1
    assert "LLVM has no intrinsic `llvm.amdgcn.mfma.f32.8x32x16.f16`" in refused.output

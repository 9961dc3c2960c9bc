"""An instruction that LLVM does not have gets as far as LLVM allows: all but machine code."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from tvm.s_tir import Schedule

import mfmadsl
from mfmadsl.model import CDNA, ElementType, Intrinsic, Layout, Operand, source_lane
from mfmadsl.schedule import default_factors
from tests.cli.command import run
from tests.emulator.instructions.matrix.test_described import INVENTED, invented
from tests.schedule.matrix_core.gemm.workloads import Workload
from tests.schedule.simple import simple_schedule


def scheduled(intrinsic: Intrinsic) -> Schedule:
    workload = mfmadsl.matmul(64, 64, 128, "float16", "float32")
    factors = default_factors(intrinsic, 64, 64, 128)
    tile = mfmadsl.load_intrinsic(intrinsic)
    return simple_schedule(workload, tile, factors.i, factors.j, factors.k)


@pytest.mark.parametrize(("m", "n"), [(8, 32), (32, 16)])
def test_it_is_scheduled_and_not_built(m: int, n: int) -> None:
    intrinsic = invented(m, n)
    schedule = scheduled(intrinsic)
    assert mfmadsl.load_intrinsic(intrinsic).COMPUTE in str(schedule.trace)
    with pytest.raises(mfmadsl.LoweringError, match=f"LLVM has no intrinsic `{intrinsic.call}`"):
        mfmadsl.build(schedule, arch="gfx942")


@pytest.mark.parametrize(("m", "n"), [(8, 32), (32, 8), (32, 16), (16, 64)])
@pytest.mark.parametrize("shape", [(64, 128, 256), (37, 50, 70)])
def test_a_gemm_of_tiles_that_are_not_square(m: int, n: int, shape: tuple[int, int, int]) -> None:
    intrinsic = invented(m, n)
    schedule = mfmadsl.gemm_schedule(Workload(*shape).function(), intrinsic, "gfx942")
    assert f"{intrinsic.name}_" in str(schedule.trace)
    with pytest.raises(mfmadsl.LoweringError, match=f"LLVM has no intrinsic `{intrinsic.call}`"):
        mfmadsl.build(schedule, arch="gfx942")


def in_order(m: int, n: int, k: int) -> Intrinsic:
    """An instruction whose operands fill the lanes in the order of their elements."""

    def operand(name: str, dtype: ElementType, rows: int, columns: int) -> Operand:
        slots = tuple((x % CDNA.wave_size, x // CDNA.wave_size) for x in range(rows * columns))
        layout = Layout(rows, columns, CDNA.wave_size, len(slots) // CDNA.wave_size, slots)
        return Operand(name, dtype, layout)

    plain = invented(8, 32)
    a, b = operand("a", plain.a.type, m, k), operand("b", plain.b.type, k, n)
    name = f"mfma_f32_{m}x{n}x{k}_f16"
    return replace(plain, name=name, m=m, n=n, k=k, a=a, b=b, c=operand("c", plain.c.type, m, n))


@pytest.mark.parametrize("shape", [(1, 64, 128), (64, 1, 128), (1, 64, 64), (64, 64, 1)])
def test_tiles_of_a_single_row_column_or_product(shape: tuple[int, int, int]) -> None:
    intrinsic = in_order(*shape)
    tile, trace = mfmadsl.load_intrinsic(intrinsic), str(scheduled(intrinsic).trace)
    assert all(name in trace for name in (tile.COMPUTE, tile.FILL, tile.STORE_GLOBAL))


@pytest.mark.parametrize("shape", [(1, 64, 128), (64, 1, 128)])
def test_gemms_of_a_single_row_or_column(shape: tuple[int, int, int]) -> None:
    workload = Workload(70, 70, 300).function()
    schedule = mfmadsl.gemm_schedule(workload, in_order(*shape), "gfx942")
    assert f"{in_order(*shape).name}_" in str(schedule.trace)


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


def test_lanes_of_b_that_count_down_are_rearranged_by_what_they_are() -> None:
    """Descriptions number them so that they count up; `blgp` knows them as the chip does."""
    plain = mfmadsl.find("mfma_f32_16x16x4_f32")
    last = plain.wave_size - 1
    slots = tuple((last - lane, register) for lane, register in plain.b.layout.slots)
    turned = replace(plain, b=replace(plain.b, layout=replace(plain.b.layout, slots=slots)))
    tile = mfmadsl.load_intrinsic(turned)
    for blgp, lane in product(range(8), range(plain.wave_size)):
        source = source_lane(last - lane, blgp, plain.wave_size)
        assert tile._source_lane(lane, blgp) == last - source

"""Sums of groups of k that vector instructions scale and add up, in each order of an iteration."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

import mfmadsl
from mfmadsl import Tiling
from tests.schedule.matrix_core.scaled.blocks import FLOATS, Blocks, built, check

FP8 = {arch: types[:1] * 2 for arch, types in FLOATS.items()}
CDNA3 = Tiling((64, 96), 128, (2, 2), "mfma_f32_16x16x32_fp8_fp8", 2, stages=1)
CDNA4 = Tiling((96, 64), 128, (2, 2), "mfma_scale_f32_16x16x128_f8f6f4_fp8_fp8", 1, stages=2)
SMALL = {"gfx942": CDNA3, "gfx950": CDNA4}
LARGE = {
    "gfx942": replace(CDNA3, block=(256, 224), waves=(4, 2)),
    "gfx950": replace(CDNA4, block=(256, 256), waves=(2, 4)),
}
COLUMNS = Blocks(turned="SA")


def check_groups(arch: str, tiling: Tiling, groups: int) -> None:
    m, n = (2 * size for size in tiling.block)
    shape = m, n, 128 * groups
    check(built(COLUMNS.workload(shape, FP8[arch]), arch, tiling), COLUMNS, shape, FP8[arch])


def large(arch: str) -> mfmadsl.Kernel:
    tiling = LARGE[arch]
    return built(COLUMNS.workload((*tiling.block, 4096), FP8[arch]), arch, tiling)


@pytest.mark.parametrize("groups", [1, 2, 3, 5])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("arch", SMALL)
def test_any_number_of_groups(arch: str, turned: bool, groups: int) -> None:
    """A wave holds the shorter side of its tile, whichever that is."""
    tiling = SMALL[arch]
    check_groups(arch, replace(tiling, block=tiling.block[::-1]) if turned else tiling, groups)


@pytest.mark.parametrize(
    ("overlap", "stages"), [("nothing", 1), ("loads", 1), ("fragments", 1), ("fragments", 2)]
)
@pytest.mark.parametrize("arch", SMALL)
def test_any_order(arch: str, overlap: str, stages: int) -> None:
    check_groups(arch, replace(SMALL[arch], stages=stages, overlap=overlap), 4)


@pytest.mark.parametrize("stages", [1, 2])
def test_tiles_that_lie_twice_in_the_lds(stages: int) -> None:
    check_groups("gfx942", replace(CDNA3, block=(64, 64), stages=stages), 5)


@pytest.mark.parametrize("arch", LARGE)
def test_nothing_is_spilled_in_a_long_loop(arch: str) -> None:
    assert large(arch).registers.spilled == 0


def test_rows_that_the_first_half_has_read_are_loaded_anew_in_the_middle() -> None:
    loop = re.search(
        r"^(\.LBB0_\d+):$(.*?)s_cbranch\w* \1$", large("gfx950").assembly, re.MULTILINE | re.DOTALL
    )
    assert loop is not None
    iterations = re.split(r"s_barrier", loop[2])
    assert len(iterations) == 5  # two halves of two iterations
    assert sum("buffer_load_dwordx4" in part for part in iterations) >= 4

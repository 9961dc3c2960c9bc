"""What is legal, what is said of what is not, and what is chosen."""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from random import Random
from typing import Any

import pytest
from tvm import te

from mfmadsl.backend import build
from mfmadsl.language import find
from mfmadsl.model import ARCHITECTURES
from mfmadsl.schedule import ScheduleError, Tiling, gemm_schedule, gemm_tiling
from mfmadsl.schedule.matrix_core.tiling.resources import Loads, takes_halves
from tests.schedule.matrix_core.gemm.workloads import FP8, Workload

LARGE = Workload(4096, 4096, 4096)
GOOD = Tiling((256, 256), 64, (2, 4), "mfma_f32_32x32x8_f16", 2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"k_step": 128}, "take 131072 bytes of LDS, more than the 65536 of gfx942"),
        ({"waves": (4, 8)},
         "4 x 8 waves of 64 lanes are 2048 threads, more than the 1024 of a workgroup"),
        ({"waves": (1, 2), "k_step": 32},
         "needs about 696 registers a lane, more than the 512 that 128 threads leave it on gfx942"),
        ({"block": (96, 256)}, "96 of M for 2 waves are no whole tiles of mfma_f32_32x32x8_f16"),
        ({"block": (32, 256)}, "32 of M for 2 waves are no whole tiles of mfma_f32_32x32x8_f16"),
        ({"k_pack": 4}, "k_pack=4 makes LDS reads of 32 bytes, but the widest have 16"),
        ({"k_step": 16}, "k_step=16 is 32 bytes; mfma_f32_32x32x8_f16 needs a multiple of 64"),
        ({"split_k": 65}, "split_k=65 is more than the 64 steps that K has"),
        ({"split_k": 0}, "split_k: 0 is no positive number"),
        ({"group": 0}, "group: 0 is no positive number"),
        ({"stages": 2}, "two times tiles of 256 and 256 rows of 128 bytes take 131072 bytes"),
        ({"stages": 3}, "stages=3: gfx942 has no loads straight into the LDS"),
        ({"stages": -1}, "stages: there are 0 to 4, not -1"),
        ({"stages": 5}, "stages: there are 0 to 4, not 5"),
    ],
    ids=str,
)  # fmt: skip
def test_a_limit_that_is_broken_is_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        gemm_schedule(LARGE.function(), tiling=replace(GOOD, **change))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("stages", "message"),
    [
        (3, "three times tiles of 256 and 256 rows of 128 bytes take 196608 bytes of LDS"),
        (4, "four times tiles of 256 and 256 rows of 128 bytes take 262144 bytes of LDS"),
    ],
)
def test_more_stages_than_the_lds_has_room_for(stages: int, message: str) -> None:
    tiling = replace(GOOD, instruction="mfma_f32_32x32x16_f16", k_pack=1, stages=stages)
    with pytest.raises(ScheduleError, match=message):
        gemm_schedule(LARGE.function(), arch="gfx950", tiling=tiling)


@pytest.mark.parametrize(
    ("shape", "stages"),
    [
        ((4096, 4096, 4096), 2),
        ((1024, 1024, 1024), 4),
        ((512, 512, 2048), 4),
        ((64, 4096, 4096), 4),
    ],
)
def test_stages_hide_the_memory(shape: tuple[int, int, int], stages: int) -> None:
    """As many as fit and are of use: of 256 x 256 two."""
    assert gemm_tiling(Workload(*shape).function(), arch="gfx950").stages == stages


def test_what_goes_through_registers_is_not_deepened() -> None:
    """Rows of an odd length are moved into place on their way."""
    assert gemm_tiling(Workload(512, 512, 2049).function(), arch="gfx950").stages <= 2


def test_gfx950_has_more_lds() -> None:
    tiling = Tiling((256, 128), 128, (2, 2), "mfma_f32_32x32x16_f16", 1)
    gemm_schedule(LARGE.function(), arch="gfx950", tiling=tiling)
    with pytest.raises(ScheduleError, match="98304 bytes of LDS, more than the 65536 of gfx942"):
        gemm_schedule(LARGE.function(), tiling=replace(tiling, instruction=GOOD.instruction))


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950"])
@pytest.mark.parametrize(
    "kind", ["float16", "bfloat16", "int8", "float32", "float64"],
)  # fmt: skip
@pytest.mark.parametrize("m", [1, 100, 4096])
def test_there_is_a_legal_default_for_every_chip_and_type(arch: str, kind: str, m: int) -> None:
    workload = Workload(m, 512, 512, kind, kind).function()
    tiling = gemm_tiling(workload, arch=arch)
    gemm_schedule(workload, arch=arch, tiling=tiling)  # raises nothing


def test_products_that_fill_the_chip_with_it_take_the_largest_tile() -> None:
    assert gemm_tiling(Workload(4096, 4864, 4096).function()) == GOOD


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
@pytest.mark.parametrize("kind", ["float16", "bfloat16", "int8"])
@pytest.mark.parametrize("size", [4096, 5120, 8192])
def test_large_products_use_the_chip(arch: str, kind: str, size: int) -> None:
    """Of what its compute units multiply in so many rounds, nearly all belongs to the product."""
    tiling = gemm_tiling(Workload(size, size, size, kind, kind).function(), arch=arch)
    tiles = ceil(size / tiling.block[0]) * ceil(size / tiling.block[1])
    units = ARCHITECTURES[arch].compute_units
    taken = ceil(tiles / units) * units * tiling.block[0] * tiling.block[1]
    assert size * size / taken >= 0.95


@pytest.mark.parametrize("m", [4, 16])
def test_few_rows_take_a_small_instruction(m: int) -> None:
    tiling = gemm_tiling(Workload(m, 4096, 4096).function())
    assert tiling.instruction == "mfma_f32_16x16x16_f16"
    assert tiling.block[0] == 16


def test_no_tile_is_twice_as_high_as_the_matrix() -> None:
    for m in (1, 16, 17, 33, 100):
        assert gemm_tiling(Workload(m, 4096, 4096).function()).block[0] < max(17, 2 * m)


@pytest.mark.parametrize("size", [4096, 5120, 8192])
@pytest.mark.parametrize(("arch", "units"), [("gfx942", 304), ("gfx950", 256)])
@pytest.mark.parametrize("kind", ["float16", "bfloat16", "int8"])
def test_large_products_use_all_compute_units(arch: str, units: int, kind: str, size: int) -> None:
    """What is multiplied of what all of them could in as many rounds of tiles."""
    block = gemm_tiling(Workload(size, size, size, kind, kind).function(), arch=arch).block
    tiles = ceil(size / block[0]) * ceil(size / block[1])
    assert size * size / (ceil(tiles / units) * units * block[0] * block[1]) > 0.95


@pytest.mark.parametrize("shape", [(1, 4096, 4096), (16, 4096, 4096)])
@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_a_vector_has_many_bytes_on_their_way(arch: str, shape: tuple[int, int, int]) -> None:
    """HBM gives 14 KiB to each compute unit while the first of them comes."""
    workload = Workload(*shape)
    tiling = gemm_tiling(workload.function(), arch=arch)
    assert tiling.split_k == 1
    assert sum(tiling.block) * tiling.k_step * 2 * tiling.stages >= 14 * 1024


@pytest.mark.parametrize("shape", [(2304, 16, 4352), (8192, 16, 1024), (4096, 64, 4096)])
@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_few_columns_are_taken_as_few_rows_are(arch: str, shape: tuple[int, int, int]) -> None:
    """The transpose of a product is as much work, and as much memory, where both lie along K."""
    m, n, k = shape
    tall, wide = (
        gemm_tiling(Workload(*each).function(), arch=arch) for each in ((m, n, k), (n, m, k))
    )
    assert tall.block == wide.block[::-1]
    assert tall.waves == wide.waves[::-1]
    assert (tall.k_step, tall.split_k, tall.k_waves) == (wide.k_step, wide.split_k, wide.k_waves)


def test_an_unknown_m_has_a_tiling_too() -> None:
    assert gemm_tiling(LARGE.function(te.var("m"))).block[0] >= 64


def test_what_you_choose_is_what_you_get() -> None:
    tiling = replace(gemm_tiling(LARGE.function()), block=(128, 128), waves=(2, 2))
    kernel = gemm_schedule(LARGE.function(), tiling=tiling).mod["main"].script()
    assert 'T.thread_binding(4, thread="threadIdx.y")' in kernel


EXTENTS = [64, 300, 333, 999, 1000, 2048, 4095, 4096, 8192]
LENGTHS = [1, 7, 62, 126, 397, 998, 1023, 4094, 4095, 4096, 8191]


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("seed", range(8))
def test_no_default_spills_or_is_slow(arch: str, seed: int) -> None:
    """Of random shapes, types and orders: all registers fit, and the pipeline takes every loop."""
    draw = Random(f"{arch} {seed}")
    kinds = ["float16", "bfloat16", "float32", "int8"]
    kinds += ["float64"] if arch != "gfx908" else []
    kinds += [FP8[arch]] if arch in FP8 else []
    kind, by_rows = draw.choice(kinds), [draw.random() < 0.7 for _ in "ABC"]
    m, n, k = draw.choice(EXTENTS), draw.choice(EXTENTS), draw.choice(LENGTHS)
    workload = Workload(m, n, k, kind, kind, *by_rows)
    kernel = build(gemm_schedule(workload.function(), arch=arch), arch)
    for each in kernel.chain():
        assert each.registers.spilled == each.registers.scratch_bytes == 0, workload
    assert not kernel.remarks, workload


@pytest.mark.parametrize("by_rows", [True, False])
def test_sums_of_float64_leave_registers(by_rows: bool) -> None:
    """The largest tile of a large product: four waves would keep 256 registers for sums."""
    workload = Workload(8192, 8192, 8192, "float64", "float64", b_rows=by_rows)
    tiling = replace(gemm_tiling(workload.function()), block=(256, 128), waves=(4, 2))
    kernel = build(gemm_schedule(workload.function(), tiling=tiling))
    assert kernel.registers.spilled == 0


def test_an_instruction_that_is_not_the_tilings() -> None:
    with pytest.raises(ScheduleError, match="intrinsic: is mfma_f32_16x16x16_f16, but the tiling"):
        gemm_schedule(LARGE.function(), "mfma_f32_16x16x16_f16", tiling=GOOD)
    gemm_schedule(LARGE.function(), "v_mfma_f32_32x32x8_f16", tiling=GOOD)


@pytest.mark.parametrize(
    ("change", "halves"),
    [
        ({}, True),
        ({"block": (64, 64)}, True),  # eight tiles of the instruction for each wave
        ({"block": (64, 32)}, False),  # four are too few
        ({"block": (96, 256), "waves": (2, 2)}, False),  # three rows of tiles have no half
        ({"stages": 1}, False),  # what goes through registers is not loaded piece by piece
    ],
)
def test_sums_are_taken_by_halves_where_there_are_two(change: dict[str, Any], halves: bool) -> None:
    tiling = Tiling((256, 256), 64, (2, 1), "mfma_f32_16x16x32_f16", 1, stages=2)
    intrinsic = find("mfma_f32_16x16x32_f16")
    found = replace(tiling, **change)
    assert takes_halves(found, intrinsic, Loads(direct=True)) is halves
    assert not takes_halves(found, intrinsic, Loads(direct=False))

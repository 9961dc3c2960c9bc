"""The time on a whole chip: rounds, limits, power, and several launches."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import jsonschema
import numpy as np
import pytest
from tvm import te, tirx

from mfmadsl.backend import build
from mfmadsl.emulator.profiler import Profile, profile
from mfmadsl.emulator.profiler.chip import ChipTime, ModelError, chip_time, together
from mfmadsl.emulator.profiler.launch_time import Work
from mfmadsl.emulator.profiler.timing import Timing
from mfmadsl.error import ArgumentError
from mfmadsl.gemm import Gemm
from mfmadsl.language import find
from mfmadsl.model import PRODUCTS, architecture
from mfmadsl.model.energy import RISE
from mfmadsl.model.traffic import Path, Sharing
from mfmadsl.report.profile import profile_json, profile_table
from mfmadsl.report.schema import json_schema
from mfmadsl.schedule import Tiling, gemm_schedule, matmul
from tests.emulator.waves import kernel

CHIP, PRODUCT = architecture("gfx942"), PRODUCTS["MI300X"]
ALONE = Sharing(1, 1)


def work(groups: int = 304, resident: int = 1, **changed: Any) -> Work:
    """Workgroups that read and write next to nothing."""
    return replace(Work(groups, resident, 1, 0, 1 << 40, ALONE, 0, {}, 1.0, {}), **changed)


def taking(cycles: Mapping[int, int]) -> Any:
    """A compute unit that needs so many cycles for so many workgroups at once."""

    def simulate(groups: int, path: Path) -> Timing:
        return Timing(cycles[groups], {}, {}, ())

    return simulate


def time_of(done: Work, cycles: Mapping[int, int]) -> ChipTime:
    return chip_time(PRODUCT, CHIP, done, taking(cycles))


def test_clocks_that_hardly_differ_say_nothing_of_far_ones() -> None:
    """Cycles differ by chance from one way to memory to another, and a line through two such clocks
    leads to a time that is next to none."""
    assert PRODUCT.power is not None
    cycles, fewer = 60000, iter(range(1000))
    seconds = cycles / PRODUCT.clock / 1e6
    joules = (PRODUCT.power.watts - PRODUCT.power.idle) * seconds * 1.0003
    done = work(lds=joules * 1e12 / PRODUCT.power.lds / 304)
    found = chip_time(
        PRODUCT, CHIP, done, lambda groups, path: Timing(cycles - 50 * next(fewer), {}, {}, ())
    )
    assert found.clock < PRODUCT.clock
    assert found.seconds == pytest.approx(seconds, rel=1e-3)


@pytest.mark.parametrize(
    ("groups", "resident", "cycles"),
    [
        (1, 1, 100),
        (304, 1, 100),
        (305, 1, 200),  # a die has 38 compute units, and one of the dies 39 workgroups
        (608, 1, 200),
        (304, 2, 100),
        (608, 2, 150),
        (912, 2, 250),
        (912, 3, 210),
    ],
)
def test_workgroups_come_in_rounds(groups: int, resident: int, cycles: int) -> None:
    found = time_of(work(groups, resident), {1: 100, 2: 150, 3: 210})
    assert found.cycles == cycles
    assert found.seconds == pytest.approx(cycles / 2.1e9)


def test_idle_compute_units_of_the_last_round_are_told() -> None:
    found = time_of(work(305), {1: 100})
    assert found.rounds == 2
    assert found.shares["idle compute units"] == pytest.approx(303 / 608)


@pytest.mark.parametrize(
    ("limit", "bytes_of", "sharing"),
    [
        ("L2", {"requested": 34.406e9}, Sharing(0.01, 0.001)),
        ("MALL", {"requested": 7.31e9}, Sharing(1, 0.1)),
        ("HBM", {"requested": 5.3e9 * 0.81}, Sharing(1, 1)),
        ("HBM", {"stored": 5.3e9 * 0.81}, Sharing(1, 1)),
    ],
)
def test_a_launch_takes_no_less_than_its_bytes_need(
    limit: str, bytes_of: Mapping[str, Any], sharing: Sharing
) -> None:
    """A second of one path to memory, in a thousand workgroups that would be done in less."""
    found = time_of(work(1000, footprint=1 << 60, sharing=sharing, **bytes_of), {1: 100})
    assert found.seconds == pytest.approx(1)
    assert found.shares[limit] == pytest.approx(1)
    assert found.limit == limit
    assert found.clock == PRODUCT.clock


def drawing(watts: float) -> Work:
    """Work that takes a second at the highest clock, and draws so much beside the idle power."""
    operations = watts / POWER.matrix["bf16"] * 1e12
    return work(flops=operations, switching={"bf16": operations})


SECOND = {1: 2_100_000_000}
POWER = PRODUCT.power or pytest.fail("nobody has measured what it draws")
FREE = POWER.watts - POWER.idle


def test_power_changes_nothing_where_there_is_enough() -> None:
    found = time_of(drawing(FREE / 2), SECOND)
    assert (found.seconds, found.clock, found.shares["power"]) == pytest.approx((1, 2100, 0.5))
    assert found.limit == "latency"


@pytest.mark.parametrize(
    ("footprint", "beyond", "memory"),
    [(3 << 20, 0, 0), (200 << 20, 304e6, 0), (300 << 20, 304e6, 152e6)],
)
def test_warm_caches_hold_what_fits_them(footprint: int, beyond: float, memory: float) -> None:
    """Of a megabyte of each workgroup all comes from behind the L2s and half from HBM, but what
    4 MiB of an L2 hold, and 256 MiB of the cache behind them."""
    done = work(requested=1e6, footprint=footprint, sharing=Sharing(1, 0.5), warm=True)
    found = time_of(done, {1: 100}).traffic
    assert (found.requested, found.beyond, found.memory) == pytest.approx((304e6, beyond, memory))
    cold = time_of(replace(done, warm=False), {1: 100}).traffic
    assert cold.beyond > 0
    assert cold.memory == pytest.approx(min(152e6, footprint, cold.beyond))


@pytest.mark.parametrize("more", [1.5, 3.0])
def test_the_clock_falls_until_the_board_draws_what_it_may(more: float) -> None:
    """The energy of the same work grows with a power of the clock, and so does its speed."""
    found = time_of(drawing(more * FREE), SECOND)
    share = more ** (-1 / (1 + RISE))
    assert (found.clock, found.seconds) == pytest.approx((2100 * share, 1 / share))
    assert found.shares["power"] == pytest.approx(1)
    assert found.limit == "power"
    assert found.cycles == pytest.approx(2.1e9)


def test_waiting_for_memory_takes_as_long_at_any_clock() -> None:
    """Half of the cycles are latency, which are fewer when the clock falls."""
    latencies = []

    def simulate(groups: int, path: Path) -> Timing:
        latencies.append(path.latency)
        return Timing(round(1_050_000_000 * (1 + path.latency / latencies[0])), {}, {}, ())

    found = chip_time(PRODUCT, CHIP, drawing(2 * FREE), simulate)
    share = found.clock / 2100
    assert latencies == sorted(latencies, reverse=True)
    assert len(latencies) > 2  # the clock that the first look told of was too high
    assert found.seconds == pytest.approx((0.5 + 0.5 * share) / share, rel=0.01)
    assert 2 * share**RISE / found.seconds == pytest.approx(1, rel=0.01)


@pytest.mark.parametrize(
    ("changed", "picojoules"),
    [
        ({"lds": 1e12}, POWER.lds),
        ({"requested": 1e12, "footprint": 0}, POWER.l2),
        ({"requested": 1e12}, POWER.l2 + POWER.beyond + POWER.memory),
        ({"stored": 1e12}, POWER.l2 + POWER.beyond + POWER.memory),
    ],
)
def test_bytes_take_energy_on_their_way(changed: Mapping[str, Any], picojoules: float) -> None:
    """A terabyte of each of 304 workgroups, in a time in which nothing is short."""
    found = time_of(work(**{"requested": 0, **changed}), {1: 21_000_000_000_000})
    assert found.shares["power"] * FREE == pytest.approx(304 * picojoules / 10_000)


def test_types_whose_power_nobody_has_measured_take_no_energy() -> None:
    assert time_of(work(switching={"f64": 1e18}), {1: 100}).clock == 2100


def test_products_whose_power_nobody_has_measured_keep_the_highest_clock() -> None:
    done = replace(drawing(100 * FREE), groups=110)
    found = chip_time(PRODUCTS["MI250X"], architecture("gfx90a"), done, taking({1: 1_700_000_000}))
    assert (found.clock, found.seconds) == pytest.approx((1700, 1))
    assert "power" not in found.shares


def test_zeros_of_a_sparse_matrix_take_no_energy() -> None:
    dense = drawing(FREE)
    found = time_of(replace(dense, flops=2 * dense.flops), SECOND)
    assert (found.clock, found.flops) == pytest.approx((2100, 2 * dense.flops))


def test_operations_on_zeros_beyond_an_edge_take_no_energy_and_are_not_useful() -> None:
    found = time_of(replace(drawing(FREE / 0.75), inside=0.75), SECOND)
    assert (found.seconds, found.shares["power"]) == pytest.approx((1, 1))
    assert found.useful_tflops == pytest.approx(0.75 * found.tflops)


def test_units_need_as_many_cycles_at_any_clock() -> None:
    """A line through two clocks leads below what the matrix cores need, at a third one."""
    cycles = iter([2_100_000_000, 2_030_000_000])

    def simulate(groups: int, path: Path) -> Timing:
        return Timing(next(cycles), {}, {}, ())

    busy = {"matrix": 4 * 2_029_000_000.0}
    found = chip_time(PRODUCT, CHIP, replace(drawing(3 * FREE), busy=busy), simulate)
    assert found.shares["matrix cores"] == pytest.approx(1)


def test_what_no_unit_can_do_is_a_fault_of_the_model() -> None:
    with pytest.raises(ModelError, match="the model of MI300X is wrong: matrix cores at 150% of"):
        time_of(work(busy={"matrix": 4 * 150.0}), {1: 100})


@pytest.mark.parametrize("name", ["MI300X", "MI325X"])
@pytest.mark.parametrize("kind", ["f16", "bf16", "fp8"])
def test_the_law_gives_what_amd_measured(name: str, kind: str) -> None:
    """A product in tiles of 256 x 256 whose matrix cores are busy for 94 % of the time: hipBLASLt's
    best of each type (AMD, "Measuring Max-Achievable FLOPs, Part 2").

    Each byte of a tile's sides is written into the LDS once and read by two waves, and of what
    is read from the L2s three eighths come from behind them.
    """
    product, chip = PRODUCTS[name], architecture("gfx942")
    rate = 1024 if kind == "fp8" else 512  # operations a cycle and SIMD
    cycles, groups = 2_100_000, product.compute_units
    flops = 0.94 * rate * chip.simds * groups * cycles
    sides = flops / groups * (1 / 256) * (1 if kind == "fp8" else 2)
    done = work(
        groups, requested=sides, lds=3 * sides, flops=flops, switching={kind: flops},
        sharing=Sharing(0.375, 0.05),
    )  # fmt: skip
    found = chip_time(product, chip, done, taking({1: cycles}))
    assert found.tflops == pytest.approx(product.sustained[kind], rel=0.1)


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
@pytest.mark.parametrize("transposed", [True, False])
@pytest.mark.parametrize(("m", "n"), [(256, 256), (192, 256), (256, 160)])
def test_useful_is_what_lies_within_the_matrices(
    m: int, n: int, transposed: bool, arch: str
) -> None:
    """Tiles of 128 x 128, of which some reach over an edge; on gfx950 loads go into the LDS."""
    k = 256
    workload = matmul(m, n, k, "float16", "float32", transposed)
    tiling = Tiling((128, 128), 64, (2, 2), "mfma_f32_32x32x8_f16", 2)
    if arch == "gfx950":
        tiling = replace(tiling, instruction="mfma_f32_32x32x16_f16", k_pack=1, stages=2)
    built = build(gemm_schedule(workload, arch=arch, tiling=tiling), arch)
    a, b = np.ones((m, k), np.float16), np.ones((n, k) if transposed else (k, n), np.float16)
    found = profile(built, [a, b, np.zeros((m, n), np.float32)]).on_chip
    assert found.useful == pytest.approx(2 * m * n * k)
    assert found.flops == 2 * 256 * 256 * k


def test_parts_of_an_operand_that_only_some_read_are_no_edges() -> None:
    """A is made of two arguments, one for the upper and one for the lower workgroups."""
    m, n, k = 256, 256, 128
    upper = te.placeholder((m // 2, k), name="upper", dtype="float16")
    lower = te.placeholder((m // 2, k), name="lower", dtype="float16")
    b = te.placeholder((n, k), name="B", dtype="float16")

    def either(i: Any, r: Any) -> Any:
        above = tirx.min(i, m // 2 - 1), tirx.max(i - m // 2, 0)
        return tirx.if_then_else(i < m // 2, upper[above[0], r], lower[above[1], r])

    a = te.compute((m, k), either, name="A")
    r = te.reduce_axis((0, k), name="r")
    c = te.compute(
        (m, n),
        lambda i, j: te.sum(a[i, r].astype("float32") * b[j, r].astype("float32"), axis=[r]),
        name="C",
    )
    tiling = Tiling((128, 128), 64, (2, 2), "mfma_f32_32x32x8_f16", 2)
    function = te.create_prim_func([upper, lower, b, c])
    built = build(gemm_schedule(function, arch="gfx942", tiling=tiling), "gfx942")
    halves = [np.ones((m // 2, k), np.float16)] * 2
    operands = [*halves, np.ones((n, k), np.float16), np.zeros((m, n), np.float32)]
    assert profile(built, operands).on_chip.useful == pytest.approx(2 * m * n * k)


def test_shares_are_parts_of_the_time_and_the_largest_is_the_limit() -> None:
    """4.293 GB take HBM a millisecond, which is as long as the workgroups need."""
    done = work(requested=4.293e9 / 304, busy={"matrix": 4 * 2_100_000 * 0.25, "lds": 210_000})
    found = time_of(done, {1: 2_100_000})
    assert found.limit == "HBM"
    joules = 4.293e9 * (POWER.l2 + POWER.beyond + POWER.memory) / 1e12
    told = {name: round(share, 3) for name, share in found.shares.items() if share}
    assert told == {
        "matrix cores": 0.25,
        "LDS": 0.1,
        "L2": pytest.approx(4.293 / 34.406, abs=1e-3),
        "MALL": pytest.approx(4.293 / 7.31, abs=1e-3),
        "HBM": 1.0,
        "power": pytest.approx(joules / 1e-3 / FREE, abs=1e-3),
    }


def test_who_keeps_nothing_busy_waits_for_latencies() -> None:
    assert time_of(work(), {1: 100}).limit == "latency"


def test_launches_follow_each_other() -> None:
    first = time_of(work(flops=1e9, switching={"bf16": 1e9}), {1: 21_000})
    both = together([first, replace(first, shares={**first.shares, "LDS": 0.5})])
    assert both.seconds == pytest.approx(2 * 10e-6 + PRODUCT.launch * 1e-9)
    assert both.end_to_end == pytest.approx(both.seconds + PRODUCT.launch * 1e-9)
    assert (both.flops, both.useful) == (2e9, 2e9)
    assert (both.launches, both.rounds) == (2, 2)
    assert both.clock == pytest.approx(2100)
    assert both.shares["launches"] == pytest.approx(PRODUCT.launch * 1e-9 / both.seconds)
    assert both.shares["LDS"] == pytest.approx(0.5 * 10e-6 / both.seconds)


def test_one_launch_is_its_own_time() -> None:
    one = time_of(work(), {1: 100})
    assert together([one]) == replace(one, shares={**one.shares, "launches": 0.0})


@pytest.fixture(scope="module")
def gemm() -> Profile:
    instruction = find("mfma_f32_32x32x8_f16")
    tiling = {"split_k": 2}
    done = Gemm(instruction, "gfx942", 512, 512, 512, b_transposed=True, tiling=tiling)
    return profile(done.build(), list(done.operands()), product="MI325X")


def test_all_launches_count_whichever_is_looked_at(gemm: Profile) -> None:
    assert gemm.on_chip.launches == 2
    assert gemm.on_chip.flops == pytest.approx(2 * 512**3)
    assert gemm.on_chip.seconds > PRODUCT.launch * 1e-9


def test_bytes_are_those_of_the_matrices(gemm: Profile) -> None:
    """A, B, the parts of C and C: what is read from HBM and what is written."""
    parts = 2 * 512 * 512 * 4
    assert gemm.on_chip.traffic.memory == pytest.approx(2 * 512 * 512 * 2 + parts, rel=0.1)
    assert gemm.on_chip.traffic.stored == parts + 512 * 512 * 4


def test_json_and_table_tell_of_the_chip(gemm: Profile) -> None:
    found = json.loads(json.dumps(profile_json(gemm)))
    jsonschema.validate(found, json_schema())
    assert found["chip"]["product"] == "MI325X"
    assert found["chip"]["seconds"] == gemm.on_chip.seconds
    assert found["chip"]["cycles"] == gemm.on_chip.cycles
    assert found["chip"]["limit"] in (*found["chip"]["shares"], "latency")
    assert found["chip"]["useful_tflops"] == found["chip"]["tflops"]
    assert found["chip"]["end_to_end_seconds"] == gemm.on_chip.end_to_end
    assert f"MI325X, modelled: {gemm.on_chip.seconds * 1e6:.1f} us" in profile_table(gemm)


def test_a_product_that_has_another_chip_is_refused() -> None:
    with pytest.raises(ArgumentError, match="product: 'MI355X' is none with gfx942"):
        profile(kernel(""), [np.zeros(1, np.uint8)], (1,), (64,), product="MI355X")


def test_a_kernel_that_reads_nothing_has_a_time() -> None:
    found = profile(kernel("\n\ts_nop 0"), [np.zeros(1, np.uint8)], (1000,), (64,)).on_chip
    assert found.traffic.requested == 0
    assert 0 < found.seconds < 1e-6
    assert found.tflops == 0


@pytest.mark.parametrize("block", [(64, 64), (128, 128)])
def test_more_sharing_reads_less_from_behind_the_l2(block: tuple[int, int]) -> None:
    """Of 1024 cubed, each die gets 32 or 8 neighbouring tiles, which ask for whole rows of tiles
    and columns: 8 rows by 4 columns, and 8 by 1."""
    workload = matmul(1024, 1024, 128, "float16", "float32", True)
    tiling = Tiling(block, 64, (2, 2), "mfma_f32_32x32x8_f16", 2)
    built = build(gemm_schedule(workload, arch="gfx942", tiling=tiling), "gfx942")
    operands = [np.ones((1024, 128), np.float16)] * 2
    found = profile(built, [*operands, np.zeros((1024, 1024), np.float32)]).on_chip.traffic
    tiles = (1024 // block[0]) ** 2 // 8
    distinct = {32: 8 + 4, 8: 8 + 1}[tiles]
    assert found.beyond / found.requested == pytest.approx(distinct / (2 * tiles), rel=0.01)


def test_what_the_vector_cache_answers_does_not_count_twice() -> None:
    """Workgroups of one compute unit share A there; all of B still comes from HBM, once."""
    workload = matmul(16, 9728, 512, "float16", "float32", True)
    tiling = Tiling((16, 16), 128, (1, 1), "mfma_f32_16x16x16_f16", 2)
    built = build(gemm_schedule(workload, arch="gfx942", tiling=tiling), "gfx942")
    a, b = np.ones((16, 512), np.float16), np.ones((9728, 512), np.float16)
    found = profile(built, [a, b, np.zeros((16, 9728), np.float32)]).on_chip
    assert found.traffic.memory == pytest.approx(a.nbytes + b.nbytes, rel=0.02)
    assert found.shares["HBM"] <= 1

"""The roofline's peaks are AMD's, and no kernel is above it."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from xml.etree import ElementTree

import pytest

from mfmadsl.emulator.profiler import ChipTime, profile
from mfmadsl.gemm import Gemm
from mfmadsl.report.kernel_page.roofline import Roof, point_of, roof_of, roofline_svg

KERNELS = [
    ("gfx942", "float16", 1307.4), ("gfx942", "float32", 163.4), ("gfx942", "float64", 163.4),
    ("gfx942", "float8_e4m3fnuz", 2614.9), ("gfx908", "float16", 184.6),
    ("gfx90a", "bfloat16", 191.5), ("gfx950", "float16", 2516.6),
]  # fmt: skip


@cache
def time_of(arch: str, dtype: str) -> ChipTime:
    problem = Gemm(None, arch, 64, 64, 128, dtypes=(dtype, None, None))
    return profile(problem.build(), list(problem.operands())).on_chip


@pytest.mark.parametrize(("arch", "dtype", "peak"), KERNELS)
def test_the_peak_is_that_of_amds_data_sheet(arch: str, dtype: str, peak: float) -> None:
    """MI300X, MI100, MI250X (half of it: one die) and MI355X, dense, in TFLOP/s."""
    roof = roof_of(time_of(arch, dtype))
    assert roof is not None
    assert roof.peak == pytest.approx(peak, rel=1e-3)


@pytest.mark.parametrize(("arch", "dtype", "peak"), KERNELS)
def test_a_kernel_is_below_its_roof(arch: str, dtype: str, peak: float) -> None:
    time = time_of(arch, dtype)
    roof, point = roof_of(time), point_of("kernel", time)
    assert roof is not None
    assert [memory for memory, _ in point.intensities] == [memory for memory, _ in roof.bandwidths]
    for memory, intensity in point.intensities:
        assert point.tflops <= roof.limit(intensity, memory) * 1.0001
    root = ElementTree.fromstring(roofline_svg(roof, [point]))
    *others, circle = root.iter("{http://www.w3.org/2000/svg}circle")
    assert circle.get("data-memory") == point.limit
    assert "other" not in circle.get("class", "")
    assert all("other" in each.get("class", "") for each in others)
    y = float(circle.get("cy", ""))
    lines = [path.get("d", "") for path in root.iter("{http://www.w3.org/2000/svg}path")]
    top = min(float(re.findall(r"[\d.]+", line)[-2]) for line in lines if "H" in line)
    assert y >= top - 15, "below the line of the matrix cores"


@pytest.mark.parametrize("memory", ["HBM", "MALL", "L2"])
def test_a_point_is_as_far_below_a_roof_as_the_memory_is_busy(memory: str) -> None:
    """What limits a kernel by 60 % has its point at 0.6 of that memory's line."""
    time = time_of("gfx942", "float16")
    time = replace(time, shares={**time.shares, memory: 0.99})
    roof, point = roof_of(time), point_of("kernel", time)
    assert roof is not None
    assert point.limit == memory
    bandwidth, product = dict(roof.bandwidths)[memory], time.product
    traffic = time.traffic
    moved = {
        "HBM": traffic.memory + traffic.stored, "MALL": traffic.beyond, "L2": traffic.requested,
    }[memory]  # fmt: skip
    assert bandwidth in (product.memory_bandwidth, product.mall_bandwidth, product.l2_peak)
    busy = moved / bandwidth / 1e9 / time.seconds
    intensity = dict(point.intensities)[memory]
    assert point.tflops / (intensity * bandwidth / 1e3) == pytest.approx(busy)


def test_without_matrix_instructions_there_is_none() -> None:
    time = time_of("gfx942", "float16")
    assert roof_of(replace(time, flops=0.0)) is None


def test_the_roof_is_the_lower_of_both() -> None:
    roof = Roof(100.0, (("HBM", 1000.0), ("L2", 5000.0)))
    assert roof.limit(10, "HBM") == 10.0
    assert roof.limit(10, "L2") == 50.0
    assert roof.limit(1000, "HBM") == 100.0


def test_the_lines_of_all_memories_are_parallel() -> None:
    """Each begins where it enters the picture, or with the least FLOP a byte."""
    roof = roof_of(time_of("gfx942", "float16"))
    assert roof is not None
    root = ElementTree.fromstring(roofline_svg(roof, []))
    lines = [
        [float(number) for number in re.findall(r"[\d.]+", path.get("d", ""))]
        for path in root.iter("{http://www.w3.org/2000/svg}path")
        if path.get("class") == "roof" and "L" in path.get("d", "")
    ]
    slopes = [(y0 - y1) / (x1 - x0) for x0, y0, x1, y1 in lines]
    assert slopes == pytest.approx([slopes[0]] * 3, rel=0.01)

"""What caches make of lines: rules, and laws that hold for all numbers."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mfmadsl.model import PRODUCTS
from mfmadsl.model.traffic import MemoryTraffic, Sharing, path_of, traffic_of

MI300X, MI100 = PRODUCTS["MI300X"], PRODUCTS["MI100"]
MIB = 1 << 20
SHARED = Sharing(die=0.25, chip=0.1)


def test_shared_lines_come_once() -> None:
    """8 GiB of requests on a matrix that fits no cache."""
    assert traffic_of(MI300X, 8192 * MIB, 0, SHARED, 900 * MIB) == MemoryTraffic(
        8192 * MIB, 2048 * MIB, 8192 * MIB * 0.1, 0
    )


def test_what_fits_the_cache_of_all_dies_comes_from_memory_once() -> None:
    assert traffic_of(MI300X, 8192 * MIB, 0, SHARED, 200 * MIB).memory == 200 * MIB


def test_what_fits_an_l2_comes_into_each_of_them_once() -> None:
    found = traffic_of(MI300X, 8192 * MIB, 0, SHARED, 4 * MIB)
    assert (found.beyond, found.memory) == (32 * MIB, 4 * MIB)


def test_without_a_cache_of_all_dies_the_l2_is_the_last_one() -> None:
    assert traffic_of(MI100, 100 * MIB, 0, SHARED, 9 * MIB).memory == 10 * MIB
    assert traffic_of(MI100, 100 * MIB, 0, SHARED, 8 * MIB).memory == 8 * MIB


numbers = st.floats(1, 1e12)
shares = st.tuples(st.floats(0.001, 1), st.floats(0.001, 1)).map(
    lambda pair: Sharing(max(pair), min(pair))
)
products = st.sampled_from(list(PRODUCTS.values()))


@given(products, numbers, shares, numbers)
def test_no_level_brings_more_than_is_asked_of_it(
    product: object, requested: float, sharing: Sharing, footprint: float
) -> None:
    assert isinstance(product, type(MI300X))
    found = traffic_of(product, requested, 0, sharing, footprint)
    assert 0 <= found.memory <= found.beyond <= found.requested


def read_cycles(traffic: MemoryTraffic, units: int = 304, sharing: Sharing = SHARED) -> float:
    return path_of(MI300X, traffic, sharing, units, 254).read


def test_a_compute_unit_gets_its_share_of_the_slowest_level() -> None:
    """All of 304 at 2.1 GHz: 34.4 TB/s of the L2s, 7.31 of the MALL, 4.293 of HBM."""
    assert read_cycles(MemoryTraffic(1, 0, 0, 0)) == pytest.approx(304 * 2.1 / 34_406)
    assert read_cycles(MemoryTraffic(1, 1, 0, 0)) == pytest.approx(304 * 2.1 / 7_310)
    assert read_cycles(MemoryTraffic(1, 1, 1, 0)) == pytest.approx(304 * 2.1 / 4_293)
    assert read_cycles(MemoryTraffic(1, 0.5, 0.5, 0)) == pytest.approx(304 * 2.1 / 4_293 / 2)


def test_a_lone_compute_unit_gets_no_more_than_its_own_path_takes() -> None:
    assert read_cycles(MemoryTraffic(1, 1, 1, 0), units=1) == pytest.approx(2.1 / 4_293 / 0.015)


@pytest.mark.parametrize(
    ("traffic", "nanoseconds"),
    [
        (MemoryTraffic(100, 25, 10, 0), 500),  # all new lines come from HBM
        (MemoryTraffic(100, 25, 0, 0), 300),  # from the MALL
        (MemoryTraffic(100, 25, 5, 0), 400),  # half of them
    ],
)
def test_the_latency_is_that_of_the_farthest_level(
    traffic: MemoryTraffic, nanoseconds: float
) -> None:
    found = path_of(MI300X, traffic, SHARED, 304, 254).latency
    assert found == pytest.approx(nanoseconds * 2.1)


def test_the_latency_of_what_the_l2_keeps_is_its_own() -> None:
    assert path_of(MI300X, MemoryTraffic(100, 0, 0, 0), SHARED, 304, 254).latency == 254


def test_without_a_cache_of_all_dies_a_miss_goes_to_memory() -> None:
    found = path_of(MI100, MemoryTraffic(100, 25, 10, 0), SHARED, 120, 254)
    assert found.latency == pytest.approx(500 * 1.502)
    assert found.written == pytest.approx(120 * 1.502 / (1_229 * 0.81))


def test_a_faster_memory_takes_no_longer() -> None:
    faster = replace(MI300X, memory_bandwidth=2 * MI300X.memory_bandwidth)
    traffic = MemoryTraffic(1, 1, 1, 1)
    assert path_of(faster, traffic, SHARED, 304, 254).read < read_cycles(traffic)

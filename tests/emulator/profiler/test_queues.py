"""Waves that find no room for their requests: what AMD's traces of an MI355X show.

ROCm/gfx950-gluon-tutorials, docs/lds_throughput.md and docs/tcp_bound_tile_model.md: two SIMDs
share a queue of eight for the LDS, a compute unit has one of about twelve for memory, and loads
that are under way fill the 32 KiB of its vector L1.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from mfmadsl.emulator.profiler import Timing, chip_of
from mfmadsl.emulator.profiler.queues import LinesInFlight, RequestQueue
from tests.emulator.profiler.test_timing import timing

READ = "ds_read_b128 v[0:3], v100"
LOAD = "global_load_dwordx4 v[0:3], v2, s[0:1]"
KIB = 1024
MFMA = "v_mfma_f32_32x32x16_f16 v[0:15], v[20:23], v[24:27], v[0:15]"


def issued(found: Timing, wave: int, unit: str) -> list[int]:
    return [event.issued for event in found.events if (event.wave, event.unit) == (wave, unit)]


@pytest.mark.parametrize(("waves", "cost", "steady"), [(4, 4, 16), (4, 8, 32), (1, 16, 16)])
def test_reads_of_the_lds_settle_at_the_rate_at_which_it_serves_them(
    waves: int, cost: int, steady: int
) -> None:
    """The first go into the queue, one in each slot; then each waits until one has left. Four waves
    read 1 KiB each in 16 cycles, with two-way conflicts in 32."""
    found = timing("\n".join([READ] * 24), waves, cost, waves, "gfx950")
    gaps = [later - early for early, later in pairwise(issued(found, 0, "lds"))]
    assert gaps[:2] == [4, 4]
    assert set(gaps[-8:]) == {steady}
    assert found.stalls["queue of the LDS"] > 0


def test_two_simds_share_a_queue_of_the_lds() -> None:
    """Eight requests find room at once, of one wave, of two on neighbouring SIMDs, and of four."""
    for waves, at_once in ((1, 8), (2, 4), (4, 4)):
        found = timing("\n".join([READ] * 10), waves, 1000, waves, "gfx950")
        early = [time for time in issued(found, 0, "lds") if time < 1000]
        assert len(early) == at_once


def test_loads_settle_at_the_rate_at_which_the_vector_cache_takes_them_up() -> None:
    """Three or four of each wave go into the queue; then each waits for 64 cycles, which are 16 of
    each of four waves."""
    chip = replace(chip_of("gfx950"), l1_bytes=1024 * KIB)
    found = timing("\n".join([LOAD] * 16), 4, KIB, 4, "gfx950", chip)
    times = issued(found, 0, "vmem")
    assert sum(time < 16 for time in times) in (3, 4)
    assert {later - early for early, later in pairwise(times[5:])} == {64}
    assert found.stalls["queue of memory"] > 0


def test_loads_under_way_fill_the_vector_cache() -> None:
    """After 32 of 1 KiB, and 12 in the queue, the next one waits for the first to come."""
    found = timing("\n".join([LOAD] * 60), 1, KIB, 1, "gfx950",
                   replace(chip_of("gfx950"), l2_latency=2000))  # fmt: skip
    starts = [event.start for event in found.events if event.unit == "vmem"]
    assert starts[31] < 1000
    assert starts[32] >= 2000
    assert issued(found, 0, "vmem")[43] < 1000
    assert issued(found, 0, "vmem")[44] >= 2000


def test_stores_fill_no_lines_of_the_vector_cache() -> None:
    store = "global_store_dwordx4 v2, v[0:3], s[0:1]"
    slow = replace(chip_of("gfx950"), l2_latency=2000)
    found = timing("\n".join([store] * 60), 1, KIB, 1, "gfx950", slow)
    assert max(issued(found, 0, "vmem")) < 1000


@pytest.mark.parametrize(("name", "cycles"), [("b32", 8), ("b64", 12), ("b128", 20)])
def test_a_wave_that_stores_into_the_lds_sends_its_data_first(name: str, cycles: int) -> None:
    """A `ds_write_b128` takes 20 cycles to issue (kernels/gemm/gfx942/intra_wave)."""
    data = {"b32": "v1", "b64": "v[2:3]", "b128": "v[4:7]"}[name]
    found = timing(f"ds_write_{name} v100, {data}\nv_mov_b32 v8, v9")
    (store,), (after,) = issued(found, 0, "lds"), issued(found, 0, "valu")
    assert after - store == cycles


def test_matrix_cores_work_while_requests_wait_in_queues() -> None:
    """One read of the LDS between matrix instructions of 32 cycles costs nothing."""
    alone = timing("\n".join([MFMA] * 16), 4, 0, 4, "gfx950").cycles
    read = READ.replace("0:3", "40:43")
    both = timing("\n".join([f"{read}\n{MFMA}"] * 16), 4, 4, 4, "gfx950").cycles
    assert both <= alone + 64


def test_a_queue_has_room_when_the_first_of_it_has_left() -> None:
    queue = RequestQueue(2)
    assert queue.room(0, 7) == 0
    queue.enter(7, 10)
    assert queue.room(0, 7) == 0
    queue.enter(7, 30)
    assert queue.room(0, 7) == 10
    assert queue.room(12, 7) == 12
    queue.enter(7, 40)
    assert queue.ahead(20) == ((10, 20), ())
    queue.shift(100)
    assert queue.room(20, 7) == 130


def test_who_waits_first_goes_first() -> None:
    queue = RequestQueue(1)
    queue.enter(0, 50)
    assert queue.room(4, 1) == 50
    assert queue.room(8, 0) == 50
    assert queue.ahead(8) == ((42,), (1, 0))
    assert queue.room(50, 0) > 50
    assert queue.room(50, 1) == 50
    queue.enter(1, 90)
    assert queue.room(50, 1) == 90  # behind the one that still waits
    assert queue.room(90, 0) == 90


def test_lines_are_free_when_what_they_wait_for_has_come() -> None:
    lines = LinesInFlight(256)
    for until in (70, 50):
        assert lines.room(0, 128) == 0
        lines.take(until, 128)
    assert lines.ahead(10) == ((40, 128), (60, 128))
    assert lines.room(10, 128) == 50  # which comes earlier, though it was asked for later
    lines.take(90, 128)
    lines.shift(100)
    assert lines.room(60, 256) == 190
    assert lines.room(200, 1024) == 200  # more than there are, where none is in use

"""What each step changes in the CUDA: the instructions that it brings, and those that it sheds."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

import pytest

from examples.blackwell_gemm.ladder import STEPS, Step
from examples.blackwell_gemm.lower import SHARED_BYTES, Lowered, lower
from tests.cases import drawn

pytestmark = pytest.mark.xdist_group("blackwell_lower")  # one process keeps what is lowered

DRAWN = drawn(STEPS, 4)
BY_NAME = {step.name: step for step in STEPS}
STAGE = (128 + 128) * 64 * 2  # bytes of a tile of A and one of B


@cache
def lowered(name: str) -> Lowered:
    step = BY_NAME[name]
    return lower(step.kernel(step.check, sms=2))


def calls(name: str) -> Counter[str]:
    """How often each of the instructions' wrappers is called in a kernel."""
    body = lowered(name).body()
    return Counter(re.findall(r"\btvm_builtin_(\w+)\(", body))


def count(name: str, part: str) -> int:
    """Of the calls, those of wrappers with `part` in their names."""
    return sum(number for call, number in calls(name).items() if part in call)


def barriers_waited_for(name: str) -> set[int]:
    """The first of each array of mbarriers that is waited for, by its place in shared memory."""
    waits = re.findall(
        r"mbarrier_wait\(\(&\(\(\(uint64_t\*\)pool_buf_ptr\)\[(.*?)\]\)\)", waits_of(name)
    )
    return {max((int(x) for x in re.findall(r"\d{3,}", wait)), default=0) for wait in waits}


def waits_of(name: str) -> str:
    return "\n".join(line for line in lowered(name).body().splitlines() if "mbarrier_wait" in line)


@pytest.mark.parametrize("step", DRAWN, ids=lambda step: step.name)
def test_every_kernel_takes_tensor_memory_once_and_gives_it_back(step: Step) -> None:
    assert count(step.name, "tcgen05_alloc") == 1
    assert count(step.name, "tcgen05_dealloc") == 1
    assert "(uint)512)" in next(
        line for line in lowered(step.name).body().splitlines() if "tcgen05_alloc" in line
    )


@pytest.mark.parametrize("step", DRAWN, ids=lambda step: step.name)
def test_every_step_along_k_is_four_mmas_of_sixteen(step: Step) -> None:
    assert count(step.name, "tcgen05_mma") == 64 // 16


@pytest.mark.parametrize("step", DRAWN, ids=lambda step: step.name)
def test_every_kernel_fits_into_an_sm(step: Step) -> None:
    assert lowered(step.name).shared_bytes <= SHARED_BYTES


@pytest.mark.thorough
def test_lowering_gives_the_same_text_every_time() -> None:
    step = BY_NAME["v7"]
    assert lower(step.kernel(step.check, sms=2)).body() == lowered("v7").body()


def test_v1_has_no_loop_over_k_and_v2_has() -> None:
    assert "for (int step" not in lowered("v1").body()
    assert "for (int step = 0; step < 5; ++step)" in lowered("v2").body()


def test_v2_keeps_its_sums_from_the_second_step_on() -> None:
    mmas = [line for line in lowered("v2").body().splitlines() if "tcgen05_mma_ss" in line]
    assert [line.rstrip(");").rsplit(", ", 1)[1] for line in mmas] == [
        "(0 < step", "(bool)1", "(bool)1", "(bool)1",
    ]  # fmt: skip


@pytest.mark.parametrize(("name", "fences"), [("v1", 1), ("v2", 2), ("v3", 2)])
def test_what_an_mma_has_read_is_fenced_before_threads_write_it_again(
    name: str, fences: int
) -> None:
    assert count(name, "fence_proxy_async") + count(name, "fence_proxy_proxy_async") == fences


def test_v3_takes_its_tile_from_the_grid() -> None:
    assert "blockIdx" not in lowered("v2").body()
    assert "blockIdx.x" in lowered("v3").body()
    assert "blockIdx.y" in lowered("v3").body()


def test_v4_leaves_the_copies_to_tma() -> None:
    assert count("v3", "ld_vec_global") == 2
    assert count("v3", "cp_async_bulk_tensor") == 0
    assert count("v4", "ld_vec_global") == count("v4", "st_vec_global") == 0
    assert count("v4", "cp_async_bulk_tensor_g2s") == 2
    assert count("v4", "cp_async_bulk_tensor_s2g") == 1
    assert "cp.async.bulk.tensor.2d" in lowered("v4").source
    assert "CUtensorMap A_tensormap" in lowered("v4").source


@pytest.mark.parametrize(
    ("name", "expected"),
    [("v4", STAGE), ("v5", STAGE), ("v8", STAGE), ("v9", 2 * STAGE), ("v10", 2 * STAGE * 3 // 2)],
)
def test_the_barrier_expects_the_bytes_that_the_loads_bring(name: str, expected: int) -> None:
    body = lowered(name).body()
    said = re.findall(r"arrive_expect_tx\w*\(.*\(uint\)(\d+)\)", body)
    assert set(map(int, said)) == {expected}


@pytest.mark.parametrize(
    ("name", "more"), [("v4", STAGE), ("v5", 2 * STAGE), ("v7", 2 * STAGE), ("v8", 4 * STAGE)]
)
def test_stages_take_shared_memory(name: str, more: int) -> None:
    tile_of_c = 128 * 128 * 2
    barriers = lowered(name).shared_bytes - more - tile_of_c
    assert 0 < barriers < 256


def test_v5_loads_ahead_of_the_loop() -> None:
    body = lowered("v5").body()
    loop = body.index("for (int step")
    loads = [match.start() for match in re.finditer("cp_async_bulk_tensor_g2s", body)]
    assert sum(place < loop for place in loads) == 2
    assert sum(place > loop for place in loads) == 2


@pytest.mark.thorough
@pytest.mark.parametrize("sms", [2, 148])
def test_v6_has_a_cta_for_each_sm_and_strides_by_them(sms: int) -> None:
    step = BY_NAME["v6"]
    body = lower(step.kernel(step.check, sms)).body()
    assert "blockIdx.y" not in body
    assert f"+ {sms})" in body


@pytest.mark.thorough
def test_v7_has_four_kinds_of_barrier_and_a_warpgroup_more() -> None:
    assert len(barriers_waited_for("v4")) == 2
    assert len(barriers_waited_for("v7")) == 4
    assert lowered("v6").threads == 128
    assert lowered("v7").threads == 256


@pytest.mark.thorough
def test_v7_syncs_the_whole_cta_only_before_and_after_its_tiles() -> None:
    body = lowered("v7").body()
    first, last = body.index("while"), body.rindex("}")
    assert len(re.findall(r"cuda_cta_sync\(\)", body[:first])) == 1
    assert len(re.findall(r"cuda_cta_sync\(\)", body[first:last])) == 1
    assert len(re.findall(r"mbarrier_arrive_arrive", body)) == 1  # ld2mma, by all who have read


def test_v8_is_v7_with_more_stages() -> None:
    # The two barriers of each stage more are initialised at their addresses.
    more = {"ptx_mbarrier_init_init_shared_b64": 4, "cuda_cvta_generic_to_shared": 4}
    assert calls("v8") - calls("v7") == Counter(more)
    assert not calls("v7") - calls("v8")
    assert lowered("v8").shared_bytes == lowered("v7").shared_bytes + 2 * STAGE + 4 * 8


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["v9", "v10"])
def test_a_pair_of_ctas_multiplies_together(name: str) -> None:
    source = lowered(name).source
    assert "tcgen05.mma.cta_group::2.kind::f16" in source
    assert "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier" in source
    assert "multicast::cluster" in source
    assert count(name, "cuda_cluster_sync") == 2
    assert count(name, "mapa") == 2  # one for the loads' barrier, one for ld2mma
    assert count("v8", "mapa") == count("v8", "cluster_sync") == 0


@pytest.mark.parametrize("name", ["v9", "v10"])
def test_an_mma_of_a_pair_has_256_rows_and_256_columns(name: str) -> None:
    mma = next(x for x in lowered(name).body().splitlines() if "tcgen05_mma_ss" in x)
    descriptors = [int(x) for x in re.findall(r"\(uint\)(\d{6,})", mma)]
    assert [(x >> 24 & 31) * 16 for x in descriptors] == [256]
    assert [(x >> 17 & 63) * 8 for x in descriptors] == [256]


@pytest.mark.thorough
def test_v10_has_a_warpgroup_more_and_loads_three_tiles_for_two_products() -> None:
    assert lowered("v9").threads == 256
    assert lowered("v10").threads == 384
    assert count("v9", "cp_async_bulk_tensor_g2s") == 2
    assert count("v10", "cp_async_bulk_tensor_g2s") == 3

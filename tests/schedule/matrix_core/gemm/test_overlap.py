"""What comes while the matrix cores work: whatever does, the sums are the same, bit by bit."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from tvm import te

import mfmadsl
from mfmadsl.emulator.profiler.main_loop import loop_instructions
from mfmadsl.model import OVERLAPS
from mfmadsl.schedule import ScheduleError, Tiling, gemm_schedule, gemm_tiling
from mfmadsl.schedule.workload.dense import product
from tests.schedule.matrix_core.gemm.test_edges import plain
from tests.schedule.matrix_core.gemm.workloads import Array, Workload, random

CHIPS = ("gfx90a", "gfx942", "gfx950")
KINDS = ("float16", "bfloat16", "int8", "float32")
HALF = Tiling((64, 64), 64, (2, 2), "mfma_f32_16x16x16_f16", 2)


def small_tiles(workload: Workload, arch: str) -> Tiling:
    """A tiling of 64 x 64 with the instruction, and the K, that a large product takes."""
    large = replace(workload, m=4096, n=4096, k=4096)
    tiling = gemm_tiling(large.function(), arch=arch)
    return replace(tiling, block=(64, 64), waves=(2, 2), stages=1, split_k=1, persistent=False)


def result(function: Any, arch: str, tiling: Tiling, arrays: list[Array]) -> tuple[str, Array]:
    """The assembly, and the last of the arrays, which it writes under the sanitizer."""
    kernel = mfmadsl.build(gemm_schedule(function, arch=arch, tiling=tiling), arch)
    assert not kernel.remarks
    given = [array.copy() for array in arrays]
    mfmadsl.sanitize(kernel, given)
    return kernel.assembly, given[-1]


def same_bits(
    function: Any, arch: str, tiling: Tiling, arrays: list[Array], overlaps: tuple[str, ...]
) -> Array:
    """The result, which no overlap changes, though each makes another kernel."""
    found = [result(function, arch, replace(tiling, overlap=o), arrays) for o in overlaps]
    for _, c in found:
        assert c.tobytes() == found[-1][1].tobytes()
    assert len({assembly for assembly, _ in found}) == len(overlaps)
    return found[-1][1]


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("b_rows", [True, False])
def test_edges_of_every_type_and_order(arch: str, kind: str, b_rows: bool) -> None:
    """Two tiles with edges, and three turns of which the last is short."""
    workload = Workload(70, 40, 0, kind, kind, b_rows=b_rows)
    tiling = small_tiles(workload, arch)
    workload = replace(workload, k=2 * tiling.k_step + 9)
    a, b, c = workload.operands()
    c = same_bits(workload.function(), arch, tiling, [a, b, c], tuple(OVERLAPS))
    assert workload.error(a, b, c) <= (0 if kind == "int8" else 1)


@pytest.mark.parametrize("k", [1, 64, 65, 128])
def test_one_turn_and_two(k: int) -> None:
    workload = Workload(65, 33, k)
    for overlap in OVERLAPS:
        a, b, c = workload.operands()
        _, c = result(workload.function(), "gfx942", replace(HALF, overlap=overlap), [a, b, c])
        assert workload.error(a, b, c) <= 1


@pytest.mark.thorough
@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
@pytest.mark.parametrize(
    "change", [{"split_k": 2}, {"k_waves": 2, "k_step": 128, "block": (64, 32), "waves": (2, 1)}],
    ids=str,
)  # fmt: skip
def test_where_k_is_shared(arch: str, change: dict[str, Any]) -> None:
    workload = Workload(70, 90, 300)
    a, b, c = workload.operands()
    c = same_bits(workload.function(), arch, replace(HALF, **change), [a, b, c], tuple(OVERLAPS))
    assert workload.error(a, b, c) <= 1


@pytest.mark.thorough
@pytest.mark.parametrize("arch", CHIPS)
def test_turns_whose_number_is_known_at_the_launch(arch: str) -> None:
    workload, function = Workload(70, 33, 0), plain(70, 33, te.var("k"))
    kernels = [
        mfmadsl.build(gemm_schedule(function, arch=arch, tiling=replace(HALF, overlap=o)), arch)
        for o in OVERLAPS
    ]
    for depth in (5, 64, 200):
        shape = replace(workload, k=depth)
        left, right, empty = shape.operands()
        results = []
        for kernel in kernels:
            results.append(empty.copy())
            mfmadsl.sanitize(kernel, [left, right, results[-1]])
        assert len({each.tobytes() for each in results}) == 1
        assert shape.error(left, right, results[0]) <= 1


@pytest.mark.parametrize("overlap", OVERLAPS)
def test_batches(overlap: str) -> None:
    half, full = "float16", "float32"
    tensors = product((33, 40, 200), (half, half, full), (False, True), batch=3)
    generator = np.random.default_rng(7)
    left, right = (random(s, "float16", generator) for s in ((3, 33, 200), (3, 40, 200)))
    empty = np.full((3, 33, 40), 99, np.float32)
    tiling = replace(HALF, overlap=overlap)
    _, found = result(te.create_prim_func([*tensors]), "gfx942", tiling, [left, right, empty])
    wanted = left.astype(np.float64) @ right.astype(np.float64).transpose(0, 2, 1)
    np.testing.assert_allclose(found, wanted, atol=1e-4)


@pytest.mark.parametrize("overlap", OVERLAPS)
def test_persistent_workgroups_come_by_several_times(overlap: str) -> None:
    """More tiles than compute units: a tile is in the LDS until all waves have read it."""
    workload = Workload(32 * 20, 32 * 16, 200)
    tiling = replace(HALF, block=(32, 32), persistent=True, overlap=overlap)
    a, b, c = workload.operands()
    _, c = result(workload.function(), "gfx942", tiling, [a, b, c])
    assert workload.error(a, b, c) <= 1


@pytest.mark.parametrize(
    ("arch", "stages"), [("gfx942", 2), ("gfx950", 2), ("gfx950", 3), ("gfx950", 4)]
)
@pytest.mark.parametrize(("b_rows", "k"), [(True, 200), (False, 500)])
def test_several_tiles_in_the_lds(arch: str, b_rows: bool, stages: int, k: int) -> None:
    """Through registers, or straight into the LDS with counted waits: in LLVM's order, too."""
    workload = Workload(70, 90, k, b_rows=b_rows)
    tiling = replace(HALF, stages=stages)
    if arch == "gfx950":
        tiling = replace(tiling, instruction="mfma_f32_16x16x32_f16", k_pack=1)
    a, b, c = workload.operands()
    c = same_bits(workload.function(), arch, tiling, [a, b, c], tuple(OVERLAPS)[2:])
    assert workload.error(a, b, c) <= 1


@pytest.mark.parametrize("b_rows", [True, False])
@pytest.mark.parametrize("kind", ["float16", "bfloat16", "int8"])
@pytest.mark.parametrize("stages", [1, 2])
def test_with_transposing_reads_or_without(b_rows: bool, kind: str, stages: int) -> None:
    """Which B as K x N takes on gfx950; it is turned around on its way instead."""
    workload = Workload(70, 90, 300, kind, kind, b_rows=b_rows)
    tiling = replace(small_tiles(workload, "gfx950"), stages=stages)
    a, b, c = workload.operands()
    found = {
        reads: result(
            workload.function(), "gfx950", replace(tiling, transposing_reads=reads), [a, b, c]
        )
        for reads in (True, False)
    }
    assert found[True][1].tobytes() == found[False][1].tobytes()
    assert workload.error(a, b, found[True][1]) <= (0 if kind == "int8" else 1)
    assert ("_tr_b" in found[True][0]) == (not b_rows)
    assert "_tr_b" not in found[False][0]


def loop_of(overlap: str) -> list[str]:
    """The names of the main loop's instructions, of a tile of 128 x 128."""
    tiling = replace(HALF, block=(128, 128), overlap=overlap)
    sch = gemm_schedule(Workload(512, 512, 2048).function(), tiling=tiling)
    return [i.name for i in loop_instructions(mfmadsl.build(sch).assembly)]


def places(loop: list[str], prefix: str) -> list[int]:
    return [place for place, name in enumerate(loop) if name.startswith(prefix)]


def test_nothing_is_all_in_turn() -> None:
    loop = loop_of("nothing")
    assert max(places(loop, "buffer_load")) < min(places(loop, "ds_write"))
    assert max(places(loop, "ds_write")) < min(places(loop, "ds_read"))
    assert max(places(loop, "ds_write")) < min(places(loop, "v_mfma"))


def test_loads_are_asked_for_after_what_came_is_put_away() -> None:
    """In the turn before the one that puts them into the LDS."""
    loop = loop_of("loads")
    assert min(places(loop, "ds_read")) < min(places(loop, "v_mfma"))
    assert min(places(loop, "ds_write")) < max(places(loop, "buffer_load"))
    assert places(loop, "ds_write")[-1] > places(loop, "ds_read")[-1]


def test_fragments_are_read_ahead_of_their_products() -> None:
    """At the end of a turn those that the next one starts with."""
    loop = loop_of("fragments")
    barrier = places(loop, "s_barrier")[-1]
    assert places(loop, "ds_read")[-1] > barrier


def most_between_products(overlap: str) -> int:
    """Of the memory's instructions, those that stand together."""
    loop = [name for name in loop_of(overlap) if name.startswith(("v_mfma", "ds_", "buffer_"))]
    products = places(loop, "v_mfma")
    return max(b - a - 1 for a, b in pairwise(products))


def test_all_of_it_goes_among_the_products() -> None:
    """A product, and no more than three others."""
    assert most_between_products("all") <= 3
    assert most_between_products("fragments") >= 8


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"overlap": "some"}, "overlap: 'some' is none of nothing, loads, fragments, all"),
        ({"overlap": 3}, "overlap: 3 is none of nothing, loads, fragments, all"),
        ({"overlap": "loads", "stages": 2}, "overlap=loads has one stage, not 2"),
        ({"overlap": "nothing", "stages": 2}, "overlap=nothing has one stage, not 2"),
        ({"transposing_reads": "no"}, "transposing_reads"),
    ],
    ids=str,
)  # fmt: skip
def test_what_is_not_understood_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises((ScheduleError, mfmadsl.ArgumentError), match=message):
        gemm_schedule(Workload(64, 64, 512).function(), tiling=replace(HALF, **change))

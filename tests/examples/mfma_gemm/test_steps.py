"""Each step is one change of a tiling and computes a product; its main loop is what it says."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, replace
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import mfmadsl
from examples.mfma_gemm.check import SMALL, wrong_with
from examples.mfma_gemm.ladder import CHIPS, FULL, NAMES, ladder
from examples.mfma_gemm.sequence import main_loop
from examples.mfma_gemm.step import Step
from examples.product import Size, difference, matrices

STEPS = [step for arch in CHIPS for step in ladder(arch)]
CHANGES: dict[str, dict[str, Any]] = {
    "wave_tile": {"block": (64, 64)},
    "workgroup_tile": {"block": (128, 128), "waves": (2, 2)},
    "k_packing": {"k_pack": 2},
    "swizzle": {"swizzle": True},
    "loads_in_flight": {"overlap": "loads"},
    "fragments_ahead": {"overlap": "fragments"},
    "instruction_order": {"overlap": "all"},
    "large_tile": {
        "block": (256, 256), "waves": (2, 4), "instruction": "mfma_f32_32x32x8_f16",
    },
    "transposing_reads": {"transposing_reads": True},
    "direct_loads": {"stages": 2},
    "persistent": {"persistent": True, "group": 8},
}  # fmt: skip
ON_GFX950 = {
    "k_packing": {"instruction": "mfma_f32_16x16x32_f16"},
    "large_tile": {**CHANGES["large_tile"], "instruction": "mfma_f32_32x32x16_f16"},
}
DIGIT = 2048  # whole numbers up to here are exact in float16
SHORT = Size(512, 512, 1024)


def name(step: Step) -> str:
    return f"{step.arch}-{step.name}"


@cache
def loop_of(arch: str, name: str) -> list[str]:
    """The names of the instructions of a step's main loop."""
    step = next(step for step in ladder(arch) if step.name == name)
    return [each.name for each in main_loop(step.kernel(SHORT).assembly)]


@pytest.mark.parametrize("arch", CHIPS)
def test_each_step_changes_the_one_before_by_what_it_says(arch: str) -> None:
    steps = ladder(arch)
    for before, step in pairwise(steps):
        change = (ON_GFX950 if arch == "gfx950" else {}).get(step.name, CHANGES[step.name])
        assert step.tiling == replace(before.tiling, **change), step.name
        old = asdict(before.tiling)
        assert all(old[field] != value for field, value in change.items()), step.name


def test_the_steps_are_ten_and_on_gfx950_two_more() -> None:
    assert [len(ladder(arch)) for arch in CHIPS] == [10, 12]
    assert tuple(step.name for step in ladder("gfx950")) == NAMES
    with pytest.raises(KeyError):
        ladder("gfx90a")


@pytest.mark.parametrize("step", STEPS, ids=name)
def test_every_element_comes_from_its_own_place(step: Step) -> None:
    """One operand picks a place of each column or row, the other names its places."""
    m, n, k = 100, 72, 72
    kernel = step.kernel(Size(m, n, k))
    places = np.arange(1, m * k + 1).reshape(m, k)
    picked = (5 * np.arange(n) + 3) % k
    columns = np.zeros((k, n), "float16")
    columns[picked, np.arange(n)] = 1
    for digit in (places // DIGIT, places % DIGIT):
        c = np.full((m, n), -1, "float32")
        b = np.ascontiguousarray(columns.T) if step.b_by_columns else columns
        mfmadsl.emulate(kernel, [digit.astype("float16"), b, c])
        assert (c == digit[:, picked]).all()


def test_the_size_of_the_check_has_edges_and_several_tiles() -> None:
    for step in STEPS:
        rows, columns = step.tiling.block
        assert SMALL.m > rows
        assert SMALL.n > columns
        assert all((SMALL.m % rows, SMALL.n % columns, SMALL.k % step.tiling.k_step))
        assert SMALL.k > 2 * step.tiling.k_step


@pytest.mark.parametrize("arch", CHIPS)
def test_the_full_size_has_two_large_tiles_for_each_compute_unit(arch: str) -> None:
    units = {"gfx942": 304, "gfx950": 256}[arch]
    assert FULL[arch].m * FULL[arch].n == 2 * units * 256**2


@pytest.mark.parametrize("arch", CHIPS)
def test_persistent_workgroups_walk_over_more_tiles_than_there_are_of_them(arch: str) -> None:
    """Of small tiles, so that the emulator runs all of them."""
    step = ladder(arch)[-1]
    assert step.tiling.persistent
    instruction = {"gfx942": "mfma_f32_16x16x16_f16", "gfx950": "mfma_f32_16x16x32_f16"}[arch]
    pack = 2 if arch == "gfx942" else 1
    small = replace(step.tiling, block=(32, 32), waves=(2, 1), instruction=instruction, k_pack=pack)
    size = Size(32 * 20, 32 * 16, 136)
    kernel = replace(step, tiling=small).kernel(size)
    assert kernel.grid[0] < 20 * 16
    assert wrong_with(kernel, size, step.b_by_columns) is None


def test_a_wrong_element_is_named() -> None:
    a, b, _ = matrices(Size(20, 30, 40), "float16")
    c = (a.astype("float64") @ b.astype("float64")).astype("float32")
    assert difference(a, b, c) is None
    right = c[7, 11]
    c[7, 11] += 1
    c[19, 29] = np.nan
    assert difference(a, b, c) == (
        f"2 of 600 elements are wrong, the first of them C[7, 11] = {right + 1:g}, not {right:g}"
    )


def test_a_barrier_that_is_missing_is_found() -> None:
    """The emulator's waves go in step, and give the right numbers all the same."""
    step = next(step for step in ladder("gfx942") if step.name == "workgroup_tile")
    size = Size(130, 130, 200)
    kernel = step.kernel(size)
    spoiled = replace(kernel, assembly=kernel.assembly.replace("s_barrier", "s_nop 0"))
    found = wrong_with(spoiled, size, step.b_by_columns)
    assert found is not None
    assert found.startswith("the sanitizer finds: ")


@pytest.mark.parametrize("arch", CHIPS)
def test_one_instruction_has_no_barrier_since_it_is_one_wave(arch: str) -> None:
    assert "s_barrier" not in loop_of(arch, "one_instruction")
    assert loop_of(arch, "workgroup_tile").count("s_barrier") == 2


@pytest.mark.parametrize("arch", CHIPS)
def test_a_waves_tile_multiplies_each_fragment_several_times(arch: str) -> None:
    loop = loop_of(arch, "wave_tile")
    assert loop.count("v_mfma_f32_16x16x16_f16") == 4 * 4 * 64 // 16
    reads = sum(each.startswith("ds_read") for each in loop)
    assert reads == 16  # of 16 bytes a lane: 64 rows of A and of B, 64 of K


@pytest.mark.parametrize("arch", CHIPS)
def test_packing_makes_reads_of_16_bytes_that_lie_together(arch: str) -> None:
    assert "ds_read2_b64" in loop_of(arch, "workgroup_tile")
    reads = {each for each in loop_of(arch, "k_packing") if each.startswith("ds_read")}
    assert reads == {"ds_read_b128"}


@pytest.mark.parametrize("arch", CHIPS)
def test_memory_goes_among_the_products_in_order(arch: str) -> None:
    """The longest stretch without a product."""

    def longest(name: str) -> int:
        kinds = ["p" if each.startswith("v_mfma") else "m" for each in loop_of(arch, name)
                 if each.startswith(("v_mfma", "ds_", "buffer_"))]  # fmt: skip
        return max(map(len, "".join(kinds).split("p")))

    assert longest("fragments_ahead") >= 8
    assert longest("instruction_order") <= 6 < longest("fragments_ahead")


def test_transposing_reads_leave_nothing_to_turn() -> None:
    before, after = loop_of("gfx950", "large_tile"), loop_of("gfx950", "transposing_reads")
    assert "v_perm_b32" in before
    assert "v_perm_b32" not in after
    assert "ds_read_b64_tr_b16" in after


def test_direct_loads_leave_nothing_to_write() -> None:
    loop = loop_of("gfx950", "direct_loads")
    assert "buffer_load_dwordx4" in loop
    assert not any(each.startswith("ds_write") for each in loop)
    assert loop.count("s_barrier") == 4  # two turns of two


@pytest.mark.parametrize("arch", CHIPS)
def test_the_loop_of_persistent_workgroups_is_that_of_the_step_before(arch: str) -> None:
    """Of what is not scalar, in any order; it may have two iterations."""

    def work(name: str) -> dict[str, float]:
        done = [e for e in loop_of(arch, name) if e.startswith(("v_mfma", "ds_", "buffer_"))]
        return {each: count / len(done) for each, count in Counter(done).items()}

    assert work("persistent") == work("direct_loads" if arch == "gfx950" else "large_tile")

"""Each step computes a product, and its machine code is what the step promises."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mfmadsl
from examples.gpu_gemm.ladder import CLASSIC, LADDER
from examples.gpu_gemm.measure import SMALL
from examples.gpu_gemm.predict import main_loop
from examples.gpu_gemm.step import Step
from examples.gpu_gemm.tile import Tile
from examples.gpu_gemm.tuned import schedule as tuned_schedule
from examples.product import Size

ARCH = "gfx942"
STEPS = {step.name: step for step in LADDER}
FOUR_TILES = Size(256, 256, 128)
DIGIT = 2048  # whole numbers up to here are exact in float16
FOUND = Tile(threads=(16, 8), elements=(4, 4), k_step=32, parts=(1, 2))


def kernel_of(name: str, size: Size) -> Any:
    step = STEPS[name]
    sch = tuned_schedule(size, FOUND) if step.tuned else step.schedule(size, ARCH)
    return mfmadsl.build(sch, ARCH)


def positions(rows: int, columns: int, digit: int) -> Any:
    """Each element's own place, counted along rows from 1 on, as one of its two digits."""
    place = np.arange(1, rows * columns + 1).reshape(rows, columns)
    return place // DIGIT if digit else place % DIGIT


@pytest.mark.parametrize("step", LADDER, ids=lambda step: step.name)
def test_every_element_comes_from_its_own_place(step: Step) -> None:
    """One operand picks a place of each column or row, the other names its places."""
    m, n, k = SMALL.m, SMALL.n, SMALL.k
    kernel = kernel_of(step.name, SMALL)
    picked = (5 * np.arange(n) + 3) % k
    columns = np.zeros((k, n), step.dtype)
    columns[picked, np.arange(n)] = 1
    rows = np.zeros((m, k), step.dtype)
    rows[np.arange(m), picked] = 1
    for digit in (0, 1) if step.dtype == "float16" else (0,):
        a, b, c = positions(m, k, digit), positions(k, n, digit), np.full((m, n), -1, "float32")
        mfmadsl.emulate(kernel, [a.astype(step.dtype), columns, c])
        assert (c == a[:, picked]).all()
        mfmadsl.emulate(kernel, [rows, b.astype(step.dtype), c])
        assert (c == b[picked]).all()


@pytest.mark.thorough
def test_the_sanitizer_finds_nothing_where_threads_share_memory() -> None:
    """A barrier too few would be no wrong number in the emulator, whose waves go in step."""
    size = Size(128, 128, 32)
    for name in ("shared_memory", "thread_tiles", "large_tiles", "vectors", "double_buffer"):
        arrays = [np.ones((128, 32), "f4"), np.ones((32, 128), "f4"), np.zeros((128, 128), "f4")]
        mfmadsl.sanitize(kernel_of(name, size), arrays)


def loop_of(name: str, size: Size = FOUR_TILES) -> list[str]:
    """The names of the instructions of a step's main loop."""
    return [text.split()[0] for text in main_loop(kernel_of(name, size))]


@pytest.mark.parametrize("name", ["naive", "one_dimension", "two_dimensions", "coalesced"])
def test_the_first_steps_share_nothing_and_multiply_one_by_one(name: str) -> None:
    loop = loop_of(name)
    assert {"v_fma_f32", "v_fmac_f32_e32"} & set(loop)
    assert not any(each.startswith(("ds_", "v_pk_")) for each in loop)


def test_a_naive_wave_loads_by_scalars_since_it_has_one_thread() -> None:
    loop = loop_of("naive")
    assert "s_load_dword" in loop
    assert not any(each.startswith("global_load") for each in loop)


def test_shared_memory_is_filled_between_barriers() -> None:
    loop = loop_of("shared_memory")
    assert "s_barrier" in loop
    assert any(each.startswith("ds_write") for each in loop)
    assert any(each.startswith("ds_read") for each in loop)


@pytest.mark.parametrize(("name", "elements"), [("thread_tiles", 16), ("large_tiles", 64)])
def test_a_thread_multiplies_its_tile_for_each_k_of_a_step(name: str, elements: int) -> None:
    """`v_pk_fma_f32` is two multiply-adds of a lane."""
    loop = loop_of(name)
    assert 2 * loop.count("v_pk_fma_f32") + loop.count("v_fma_f32") == elements * 16
    assert "global_load_dwordx4" not in loop


def test_vectors_load_four_floats_at_once() -> None:
    loop = loop_of("vectors")
    assert loop.count("global_load_dwordx4") == 4  # 16 floats of A and B a thread
    assert not any(each in ("global_load_dword", "ds_read_b32", "ds_read2_b32") for each in loop)
    assert loop.count("ds_read_b128") * 4 == 16 * (8 + 8)  # of A and of B for each k


def test_double_buffering_asks_for_the_next_tile_before_it_computes() -> None:
    loop = loop_of("double_buffer")
    computing = [place for place, each in enumerate(loop) if each == "v_pk_fma_f32"]
    asked = [place for place, each in enumerate(loop) if each.startswith("global_load")]
    put = [place for place, each in enumerate(loop) if each.startswith("ds_write")]
    assert max(asked) < computing[len(computing) // 10]
    assert min(put) > computing[-len(computing) // 10]


@pytest.mark.parametrize(
    ("name", "instruction"),
    [
        ("mfma", "v_mfma_f32_16x16x4_f32"),
        ("gemm", "v_mfma_f32_"),
        ("gemm_f16", "v_mfma_f32_"),
    ],
)
def test_the_last_steps_multiply_by_matrix_instructions(name: str, instruction: str) -> None:
    loop = loop_of(name, CLASSIC)
    assert any(each.startswith(instruction) for each in loop)
    assert not any(each.startswith(("v_fma", "v_pk_fma")) for each in loop)
    assert ("_f16" in "".join(each for each in loop if "mfma" in each)) == (name == "gemm_f16")


@pytest.mark.parametrize("step", [s for s in LADDER if s.threads], ids=lambda step: step.name)
def test_no_step_spills(step: Step) -> None:
    assert kernel_of(step.name, CLASSIC).registers.spilled == 0


def test_a_tuned_step_has_no_schedule_before_its_search() -> None:
    with pytest.raises(ValueError, match="searched"):
        STEPS["tuned"].schedule(SMALL, ARCH)

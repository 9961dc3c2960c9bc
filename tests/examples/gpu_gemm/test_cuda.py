"""The same schedules become CUDA source and, where nvcc is, machine code."""

from __future__ import annotations

import pytest

import mfmadsl
from examples.gpu_gemm.cuda import source
from examples.gpu_gemm.ladder import LADDER
from examples.gpu_gemm.step import Step
from examples.nvcc import Nvcc, compile_cubin
from examples.product import Size

SIZE = Size(256, 128, 64)
THREADS = [step for step in LADDER if step.threads]
NAMED = {step.name: step for step in LADDER}


@pytest.mark.parametrize("step", THREADS, ids=lambda step: step.name)
def test_the_launch_is_that_of_the_amd_kernel(step: Step) -> None:
    made = source(step.schedule(SIZE, ""), "sm_90")
    kernel = mfmadsl.build(step.schedule(SIZE, "gfx942"), "gfx942")
    assert (made.grid, made.block) == (kernel.grid, kernel.block)
    assert [name[0] for name in made.parameters] == ["A", "B", "C"]
    assert f"{made.symbol}(float* __restrict__ A" in made.text


def test_vectors_are_vectors_in_cuda_too() -> None:
    text = source(NAMED["vectors"].schedule(SIZE, ""), "sm_90").text
    assert "*(float4*)" in text
    assert "__shared__" in text
    assert "float4" not in source(NAMED["large_tiles"].schedule(SIZE, ""), "sm_90").text


def test_nvcc_makes_machine_code_without_spills(nvcc: Nvcc) -> None:
    made = source(NAMED["double_buffer"].schedule(SIZE, ""), "sm_90")
    cubin = compile_cubin(made.text, "sm_90", nvcc)
    assert 64 < cubin.registers <= 255
    assert cubin.spill_stores == 0
    assert cubin.shared == 2 * 128 * 16 * 4

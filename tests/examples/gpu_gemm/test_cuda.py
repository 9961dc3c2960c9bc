"""The same schedules become CUDA source and, where nvcc is, machine code."""

from __future__ import annotations

from pathlib import Path

import pytest

import mfmadsl
from examples.gpu_gemm.cuda import Cubin, CudaError, compiled, compiler, resources, source
from examples.gpu_gemm.ladder import LADDER
from examples.gpu_gemm.step import Size, Step

SIZE = Size(256, 128, 64)
THREADS = [step for step in LADDER if step.threads]
NAMED = {step.name: step for step in LADDER}

SAID = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'main_kernel' for 'sm_90'
    8 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 8 bytes cumulative stack size, 4096 bytes smem
"""


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


def test_what_ptxas_says_is_read() -> None:
    assert resources(SAID) == (255, 12, 4096)
    assert resources("ptxas info : Used 32 registers, 380 bytes cmem[0]") == (32, 0, 0)
    with pytest.raises(CudaError, match="how many registers"):
        resources("nothing of the kind")


@pytest.fixture(scope="module")
def nvcc() -> Path:
    found = compiler()
    if found is None:
        pytest.skip("no nvcc here: it is in the extra `ladders`")
    return found


def test_nvcc_makes_machine_code_without_spills(nvcc: Path) -> None:
    cubin = compiled(source(NAMED["double_buffer"].schedule(SIZE, ""), "sm_90"), "sm_90", nvcc)
    assert isinstance(cubin, Cubin)
    assert cubin.code.startswith(b"\x7fELF")
    assert 64 < cubin.registers <= 255
    assert cubin.spilled == 0
    assert cubin.shared == 2 * 128 * 16 * 4


def test_what_nvcc_refuses_is_told_in_its_words(nvcc: Path) -> None:
    made = source(NAMED["naive"].schedule(SIZE, ""), "sm_90")
    with pytest.raises(CudaError, match="nvcc refuses the kernel for sm_11"):
        compiled(made, "sm_11", nvcc)


def test_a_compiler_that_is_none_is_told() -> None:
    made = source(NAMED["naive"].schedule(SIZE, ""), "sm_90")
    with pytest.raises(CudaError, match="nvcc did not run"):
        compiled(made, "sm_90", Path("/nowhere/nvcc"))

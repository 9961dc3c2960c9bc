"""nvcc: which one is taken, and what is read from what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from examples import nvcc as compiling
from examples.nvcc import Nvcc, NvccError, compile_cubin, find_nvcc, read_usage

KERNEL = 'extern "C" __global__ void {}() {{{}}}\n'


def test_a_kernel_becomes_machine_code(nvcc: Nvcc) -> None:
    text = "__shared__ float a[256]; a[threadIdx.x] = 1; __syncthreads();"
    text += "((volatile float*)0)[threadIdx.x] = a[threadIdx.x ^ 1];"
    cubin = compile_cubin(KERNEL.format("kernel", text), "sm_90", nvcc)
    assert cubin.code.startswith(b"\x7fELF")
    assert (cubin.spill_stores, cubin.spill_loads) == (0, 0)
    assert 0 < cubin.registers < 32
    assert cubin.shared == 1024


def test_what_nvcc_does_not_take_is_said(nvcc: Nvcc) -> None:
    with pytest.raises(NvccError, match=r"(?s)does not compile the kernel for sm_90:.*nonsense"):
        compile_cubin(KERNEL.format("kernel", "nonsense;"), "sm_90", nvcc)


def test_two_kernels_in_a_source_are_refused(nvcc: Nvcc) -> None:
    with pytest.raises(NvccError, match="what one kernel takes"):
        compile_cubin(KERNEL.format("a", "") + KERNEL.format("b", ""), "sm_90", nvcc)


def test_usage_is_read_from_what_ptxas_says() -> None:
    said = (
        "ptxas info    : Compiling entry function 'kernel' for 'sm_100a'\n"
        "    96 bytes stack frame, 80 bytes spill stores, 76 bytes spill loads\n"
        "ptxas info    : Used 168 registers, used 2 barriers, 96 bytes cumulative stack size\n"
    )
    assert read_usage(said) == (168, 80, 76, 0)


def test_static_shared_memory_is_told_where_there_is_some() -> None:
    said = (
        "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
        "ptxas info    : Used 32 registers, used 1 barriers, 4096 bytes smem, 380 bytes cmem[0]\n"
    )
    assert read_usage(said) == (32, 0, 0, 4096)


def test_silence_is_no_usage() -> None:
    with pytest.raises(NvccError, match="does not say"):
        read_usage("")


def test_an_architecture_that_it_does_not_know_is_said(nvcc: Nvcc) -> None:
    with pytest.raises(NvccError, match=r"(?s)does not compile the kernel for sm_11:.*sm_11"):
        compile_cubin(KERNEL.format("kernel", ""), "sm_11", nvcc)


def test_a_compiler_that_does_not_run_is_said() -> None:
    nowhere = Nvcc(Path("/nowhere/nvcc"), (), (13, 0))
    with pytest.raises(NvccError, match=r"nvcc 13\.0 did not run"):
        compile_cubin(KERNEL.format("kernel", ""), "sm_90", nowhere)


def script(folder: Path, version: str) -> Path:
    path = folder / f"nvcc-{version}"
    path.write_text(f"#!/bin/sh\necho 'Cuda compilation tools, release {version}, V{version}.1'\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("version", "known"), [("11.8", None), ("12.7", None), ("12.8", (12, 8)), ("13.5", (13, 5))]
)
def test_an_nvcc_counts_if_it_knows_the_chip(
    version: str,
    known: tuple[int, int] | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = script(tmp_path, version)
    monkeypatch.setattr(compiling, "_of_pip", list)
    monkeypatch.setattr("shutil.which", lambda _: str(path))
    assert find_nvcc() == (None if known is None else Nvcc(path, (), known))


def test_pips_nvcc_comes_before_the_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pip, path = script(tmp_path, "13.1"), script(tmp_path, "13.5")
    monkeypatch.setattr(compiling, "_of_pip", lambda: [(pip, (tmp_path,))])
    monkeypatch.setattr("shutil.which", lambda _: str(path))
    assert find_nvcc() == Nvcc(pip, (tmp_path,), (13, 1))


def test_without_the_compiler_that_it_calls_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = script(tmp_path, "13.5")
    monkeypatch.setattr(compiling, "_of_pip", lambda: [(path, ())])
    monkeypatch.setattr("shutil.which", lambda name: None if name == "g++" else str(path))
    assert find_nvcc() is None


def test_without_an_nvcc_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "_of_pip", list)
    monkeypatch.setattr("shutil.which", lambda _: None)
    assert find_nvcc() is None

"""The cubins: what a thread of each kernel takes; and what is done without an nvcc."""

from __future__ import annotations

from pathlib import Path

import pytest

from examples.blackwell_gemm import compile as compiling
from examples.blackwell_gemm.compile import (
    CompileError,
    Nvcc,
    compile_cubin,
    find_nvcc,
    lower,
    read_usage,
)
from examples.blackwell_gemm.ladder import STEPS, Step

REGISTERS_OF_AN_SM = 65536
SPILLING: dict[str, tuple[int, int]] = {}  # none

NVCC = find_nvcc()
with_nvcc = pytest.mark.skipif(NVCC is None, reason=f"no nvcc: {compiling.TO_INSTALL}")


@with_nvcc
@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
def test_a_kernel_becomes_a_cubin_that_spills_nothing(step: Step) -> None:
    assert NVCC is not None
    lowered = lower(step.kernel(step.compile))
    cubin = compile_cubin(lowered.source, NVCC)
    assert cubin.code.startswith(b"\x7fELF")
    assert (cubin.spill_stores, cubin.spill_loads) == SPILLING.get(step.name, (0, 0))
    # A fragment of 128 sums is held at once up to v8, one of 64 from v9 on.
    assert cubin.registers <= (160 if step.cluster == 1 else 96)
    assert cubin.registers * lowered.threads <= REGISTERS_OF_AN_SM


@with_nvcc
def test_what_nvcc_does_not_take_is_said() -> None:
    assert NVCC is not None
    with pytest.raises(CompileError, match=r"(?s)does not compile the kernel:.*nonsense"):
        compile_cubin('extern "C" __global__ void kernel() { nonsense; }', NVCC)


@with_nvcc
def test_two_kernels_in_a_source_are_refused() -> None:
    assert NVCC is not None
    one = 'extern "C" __global__ void {}() {{}}\n'
    with pytest.raises(CompileError, match="what one kernel takes"):
        compile_cubin(one.format("a") + one.format("b"), NVCC)


def test_usage_is_read_from_what_ptxas_says() -> None:
    said = (
        "ptxas info    : Compiling entry function 'kernel' for 'sm_100a'\n"
        "    96 bytes stack frame, 80 bytes spill stores, 76 bytes spill loads\n"
        "ptxas info    : Used 168 registers, used 2 barriers, 96 bytes cumulative stack size\n"
    )
    assert read_usage(said) == (168, 80, 76)


def test_silence_is_no_usage() -> None:
    with pytest.raises(CompileError, match="does not say"):
        read_usage("")


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


def test_without_an_nvcc_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "_of_pip", list)
    monkeypatch.setattr("shutil.which", lambda _: None)
    assert find_nvcc() is None

"""Whole kernels: ours are not accused, and TVM's own have the fault that they are known to have."""

from __future__ import annotations

import sys

import pytest

from mfmadsl.emulator import EmulationError
from mfmadsl.emulator.sanitizer import sanitize
from mfmadsl.gemm import Gemm
from mfmadsl.language import find

CASES = [
    ("mfma_f32_16x16x16_f16", "gfx908", False),
    ("mfma_f32_32x32x8_f16", "gfx90a", True),
    ("mfma_f64_16x16x4_f64", "gfx90a", False),
    ("mfma_i32_32x32x16_i8", "gfx942", False),
    ("mfma_f32_16x16x32_fp8_bf8", "gfx942", True),
    ("mfma_f32_16x16x8_xf32", "gfx942", False),
    ("mfma_f32_32x32x16_bf16", "gfx950", True),
    ("mfma_f32_16x16x32_f16", "gfx950", False),
]


@pytest.mark.parametrize(("name", "arch", "b_transposed"), CASES)
def test_our_kernels_have_no_fault(name: str, arch: str, b_transposed: bool) -> None:
    gemm = Gemm(find(name), arch, 128, 64, 128, b_transposed)
    a, b, c = gemm.operands()
    found = sanitize(gemm.build(), [a, b, c], keep_going=True)
    assert [str(fault) for fault in found.faults] == []
    assert gemm.compare(a, b, c).agrees


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950"])
def test_tvms_barriers_lack_their_waits(arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """TVM 0.27 emits a bare barrier; `backend` puts fences around it, and here does not."""
    monkeypatch.setattr(sys.modules["mfmadsl.backend.gpu.build"], "fence_barriers", lambda ir: ir)
    gemm = Gemm(find("mfma_f32_16x16x16_f16"), arch, 128, 64, 128, shared_scope="shared")
    kernel = gemm.build()
    with pytest.raises(EmulationError, match=r"LDS at 0x[0-9a-f]+, which .* did not wait") as found:
        sanitize(kernel, list(gemm.operands()))
    assert found.value.fault.kind == "no-wait"
    everything = sanitize(kernel, list(gemm.operands()), keep_going=True)
    assert {fault.kind for fault in everything.faults} == {"no-wait"}

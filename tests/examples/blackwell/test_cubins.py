"""The cubins: what a thread of each kernel takes."""

from __future__ import annotations

import pytest

from examples.blackwell_gemm.ladder import STEPS, Step
from examples.blackwell_gemm.lower import ARCH, lower
from examples.nvcc import TO_INSTALL, compile_cubin, find_nvcc

REGISTERS_OF_AN_SM = 65536
SPILLING: dict[str, tuple[int, int]] = {}  # none

NVCC = find_nvcc()
with_nvcc = pytest.mark.skipif(NVCC is None, reason=f"no nvcc: {TO_INSTALL}")


@with_nvcc
@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
def test_a_kernel_becomes_a_cubin_that_spills_nothing(step: Step) -> None:
    assert NVCC is not None
    lowered = lower(step.kernel(step.compile))
    cubin = compile_cubin(lowered.source, ARCH, NVCC)
    assert cubin.code.startswith(b"\x7fELF")
    assert (cubin.spill_stores, cubin.spill_loads) == SPILLING.get(step.name, (0, 0))
    # A fragment of 128 sums is held at once up to v8, one of 64 from v9 on.
    assert cubin.registers <= (160 if step.cluster == 1 else 96)
    assert cubin.registers * lowered.threads <= REGISTERS_OF_AN_SM

"""The cubins: what a thread of each kernel takes."""

from __future__ import annotations

import pytest

from examples.blackwell_gemm.ladder import STEPS, Step
from examples.blackwell_gemm.lower import ARCH, lower
from examples.nvcc import Nvcc, compile_cubin
from tests.cases import drawn

REGISTERS_OF_AN_SM = 65536
SPILLING: dict[str, tuple[int, int]] = {}  # none


@pytest.mark.parametrize("step", drawn(STEPS, 4), ids=lambda step: step.name)
def test_a_kernel_becomes_a_cubin_that_spills_nothing(step: Step, nvcc: Nvcc) -> None:
    lowered = lower(step.kernel(step.compile))
    cubin = compile_cubin(lowered.source, ARCH, nvcc)
    assert cubin.code.startswith(b"\x7fELF")
    assert (cubin.spill_stores, cubin.spill_loads) == SPILLING.get(step.name, (0, 0))
    # A fragment of 128 sums is held at once up to v8, one of 64 from v9 on.
    assert cubin.registers <= (160 if step.cluster == 1 else 96)
    assert cubin.registers * lowered.threads <= REGISTERS_OF_AN_SM

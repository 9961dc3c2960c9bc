"""What a specialist looks for in the main loop's machine code."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pytest

import mfmadsl
from benchmarks.gemm.compare import Case
from benchmarks.gemm.loop import loop_instructions
from mfmadsl.emulator.assembly import Instruction
from mfmadsl.tensorize import gemm_schedule, gemm_tiling

CASES = [
    Case(arch, kind, order)
    for arch in ("gfx942", "gfx950")
    for kind in ("f16", "bf16", "i8", "fp8")
    for order in ("bt", "kn")
]
# Instructions of ours for each case: a little more than they are, far less than they could be.
MOST = {
    ("gfx942", "bt"): 2.0, ("gfx942", "kn"): 2.7, ("gfx950", "bt"): 4.8, ("gfx950", "kn"): 5.4,
}  # fmt: skip


@cache
def kernel_of(case: Case) -> mfmadsl.Kernel:
    schedule = gemm_schedule(case.workload(4096, 4096, 4096), arch=case.arch)
    return mfmadsl.build(schedule, case.arch)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_loop_is_dense(case: Case) -> None:
    kernel = kernel_of(case)
    body = loop_instructions(kernel.assembly)
    products = sum(i.name.startswith("v_mfma") for i in body)
    assert len(body) / products <= MOST[case.arch, case.order]
    assert kernel.registers.spilled == kernel.registers.scratch_bytes == 0
    assert sum(i.name == "s_barrier" for i in body) == 2


@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_load_is_in_flight_for_a_step(case: Case) -> None:
    """In a turn of the loop, what a load brings is used before the load: by the next turn. There it
    goes to the LDS, and only the turn after that multiplies it."""
    body = loop_instructions(kernel_of(case).assembly)
    loads = [place for place, i in enumerate(body) if i.name.startswith("buffer_load")]
    assert loads
    for place in loads:
        brought = registers(body[place].operands[0])
        readers = [
            other for other, i in enumerate(body)
            if other != place and not i.name.startswith("v_mfma")
            and any(brought & registers(o) for o in sources(i))
        ]  # fmt: skip
        assert readers
        assert max(readers) < place
    # And nothing waits for them before it must: one wait for memory, for the turn before.
    first = min(loads)
    assert not any("vmcnt" in i.text for i in body[first:])


def sources(instruction: Instruction) -> list[object]:
    operands: list[object] = list(instruction.operands)
    return operands if instruction.name.startswith("ds_write") else operands[1:]


def registers(operand: object) -> set[str]:
    """The vector registers that an operand names."""
    text = str(operand)
    bank, index, count = (getattr(operand, name, None) for name in ("bank", "index", "count"))
    if bank in ("v", "a") and isinstance(index, int) and isinstance(count, int):
        return {f"{bank}{n}" for n in range(index, index + count)}
    return set(re.findall(r"^[va]\d+$", text))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_no_bank_conflicts(case: Case) -> None:
    tiling = gemm_tiling(case.workload(4096, 4096, 4096), arch=case.arch)
    shape = (*tiling.block, 6 * tiling.k_step)
    schedule = gemm_schedule(case.workload(*shape), arch=case.arch, tiling=tiling)
    profile = mfmadsl.profile(mfmadsl.build(schedule, case.arch), case.arrays(*shape))
    assert profile.loop is not None
    assert profile.loop.lds_conflict_cycles == 0
    reads = [a for a in profile.lds if a.instruction.startswith("ds_read")]
    assert reads
    assert all(np.isclose(a.cycles, a.least_cycles) for a in reads)

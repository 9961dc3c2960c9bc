"""What a specialist looks for in the main loop's machine code."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from tvm.tirx import PrimFunc

import mfmadsl
from mfmadsl.emulator.profiler.main_loop import loop_instructions
from mfmadsl.emulator.text.assembly import Instruction
from mfmadsl.model.chips import ARCHITECTURES
from mfmadsl.schedule import Tiling, gemm_schedule, gemm_tiling
from tests.schedule.matrix_core.gemm.case import CHIPS, ORDERS, TYPES, Case
from tests.schedule.matrix_core.gemm.workloads import Workload

CASES = [Case(arch, kind, order) for arch in CHIPS for kind in TYPES for order in ORDERS]


def of(case: Case, m: int, n: int, k: int) -> Workload:
    return Workload(m, n, k, case.dtype, case.dtype, b_rows=case.order == "bt")


def large(case: Case) -> PrimFunc:
    """A product of which tiles of 256x256 fill the chip."""
    return of(case, 4096, 4864 if case.arch == "gfx942" else 4096, 4096).function()


# Instructions of ours for each case: a little more than they are, far less than they could be.
MOST = {
    ("gfx942", "bt"): 2.0, ("gfx942", "kn"): 2.7, ("gfx950", "bt"): 5.1, ("gfx950", "kn"): 5.9,
}  # fmt: skip


@cache
def kernel_of(case: Case) -> mfmadsl.Kernel:
    schedule = gemm_schedule(large(case), arch=case.arch)
    return mfmadsl.build(schedule, case.arch)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_loop_is_dense(case: Case) -> None:
    kernel = kernel_of(case)
    body = loop_instructions(kernel.assembly)
    products = sum(i.name.startswith("v_mfma") for i in body)
    assert len(body) / products <= MOST[case.arch, case.order]
    assert kernel.registers.spilled == kernel.registers.scratch_bytes == 0
    stages = gemm_tiling(large(case), arch=case.arch).stages
    assert sum(i.name == "s_barrier" for i in body) == 2 * stages


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
@pytest.mark.parametrize("c_rows", [True, False])
@pytest.mark.parametrize("b_rows", [True, False])
def test_it_is_dense_of_any_order(arch: str, b_rows: bool, c_rows: bool) -> None:
    """A as K x M, too: what is turned takes one address for each operand, not for each read."""
    workload = Workload(4096, 4096, 4096, a_rows=False, b_rows=b_rows, c_rows=c_rows)
    kernel = mfmadsl.build(gemm_schedule(workload.function(), arch=arch), arch)
    body = loop_instructions(kernel.assembly)
    products = sum(i.name.startswith("v_mfma") for i in body)
    assert len(body) / products <= MOST[arch, "kn"] + 0.5
    assert kernel.registers.spilled == 0


@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_load_is_a_step_ahead(case: Case) -> None:
    """Between a load and the first product that can use what it brings lies a whole step; of one
    that goes straight into the LDS, almost half a step more."""
    kernel = kernel_of(case)
    turn = loop_instructions(kernel.assembly)
    products = sum(map(is_product, turn))
    step = products // gemm_tiling(large(case), arch=case.arch).stages
    loads = [place for place, i in enumerate(turn) if i.name.startswith("buffer_load")]
    assert loads
    body = turn * 3
    for load in loads:
        ahead = step
        if "lds" in body[load].modifiers:
            stored, ahead = landed(body, load), step + step // 4
        else:
            brought = registers(body[load].operands[0])
            readers = (p for p in range(load + 1, len(body)) if reads_any(body[p], brought))
            stored = next(readers)
            assert stored >= len(turn), "what a turn of the loop loads is stored by the next one"
        assert sum(map(is_product, body[load : first_use(body, stored)])) >= ahead


def landed(body: list[Instruction], load: int) -> int:
    """The wait that is over when a load straight into the LDS is."""
    younger = 0
    for place in range(load + 1, len(body)):
        instruction = body[place]
        if instruction.name.startswith("buffer_load"):
            younger += 1
        elif instruction.name == "s_waitcnt":
            left = re.search(r"vmcnt\((\d+)\)", instruction.text)
            if left and int(left[1]) <= younger:
                return place
    raise AssertionError("nothing waits for it")


STRAIGHT = [case for case in CASES if case.arch == "gfx950"]


@pytest.mark.parametrize("case", STRAIGHT, ids=str)
def test_memory_is_never_waited_for_as_a_whole(case: Case) -> None:
    turn = loop_instructions(kernel_of(case).assembly)
    counts = [re.search(r"vmcnt\((\d+)\)", i.text) for i in turn if i.name == "s_waitcnt"]
    loads = sum(i.name.startswith("buffer_load") for i in turn)
    stages = gemm_tiling(large(case), arch=case.arch).stages
    assert [int(count[1]) for count in counts if count] == [loads // stages] * 2 * stages


@pytest.mark.parametrize("case", STRAIGHT, ids=str)
def test_the_latency_of_a_busy_memory_is_hidden(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 1700 cycles instead of 254 only the first load's and the last store's are seen, if the
    vector L1 had room for all that is under way: a step fetches 64 KiB, twice what it holds."""
    tiling = replace(gemm_tiling(large(case), arch=case.arch), persistent=False)
    workload = of(case, *tiling.block, 16 * tiling.k_step)
    schedule = gemm_schedule(workload.function(), arch=case.arch, tiling=tiling)
    kernel = mfmadsl.build(schedule, case.arch)
    chip, cycles = replace(ARCHITECTURES[case.arch], l1_bytes=1 << 20), []
    for latency in (254, 1700):
        monkeypatch.setitem(ARCHITECTURES, case.arch, replace(chip, l2_latency=latency))
        cycles.append(mfmadsl.profile(kernel, workload.operands()).timing.cycles)
    assert cycles[1] - cycles[0] <= 2 * (1700 - 254) + 100


def test_what_is_loaded_straight_into_the_lds_has_landed_in_the_end() -> None:
    """Where the number of turns is known, none is loaded for nothing; else it is waited for."""
    kernel = kernel_of(Case("gfx950", "f16", "bt"))
    lines = [line.strip() for line in kernel.assembly.splitlines()]
    turned = max(n for n, line in enumerate(lines) if line.startswith("s_cbranch_scc1"))
    done = next(n for n, line in enumerate(lines) if n > turned and "_store_" in line)
    assert any("vmcnt(0)" in line for line in lines[turned:done])


def first_use(body: list[Instruction], stored: int) -> int:
    """The first product that reads a fragment which is read after the barrier after `stored`."""
    barrier = next(p for p in range(stored, len(body)) if body[p].name == "s_barrier")
    fragments: set[str] = set()
    for place in range(barrier, len(body)):
        instruction = body[place]
        if instruction.name.startswith("ds_read"):
            fragments |= registers(instruction.operands[0])
        elif is_product(instruction) and reads_any(instruction, fragments):
            return place
    raise AssertionError("nothing uses it")


def is_product(instruction: Instruction) -> bool:
    return instruction.name.startswith("v_mfma")


def reads_any(instruction: Instruction, wanted: set[str]) -> bool:
    return any(wanted & registers(operand) for operand in sources(instruction))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_memory_is_waited_for_twice_a_step(case: Case) -> None:
    turn = loop_instructions(kernel_of(case).assembly)
    stages = gemm_tiling(large(case), arch=case.arch).stages
    waits = [i for i in turn if i.name == "s_waitcnt" and "vmcnt" in i.text]
    # LLVM moves some v_perm, and with them waits, across the barrier.
    assert len(waits) <= 2 * stages + (5 if case.order == "kn" else 0)


def test_where_words_come_in_two_loads_more_are_left_under_way() -> None:
    """Rows of an odd length begin anywhere: last lanes load the word behind theirs as well."""

    def least(k: int) -> int:
        tiling = Tiling((128, 128), 64, (2, 2), "mfma_f32_32x32x8_f16", 2)
        schedule = gemm_schedule(Workload(1024, 1024, k).function(), tiling=tiling)
        turn = loop_instructions(mfmadsl.build(schedule, "gfx942").assembly)
        counts = [re.search(r"vmcnt\((\d+)\)", i.text) for i in turn if i.name == "s_waitcnt"]
        return min(int(count[1]) for count in counts if count)

    assert least(1025) > least(1026) > 0


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
    tiling = gemm_tiling(large(case), arch=case.arch)
    shape = (*tiling.block, 6 * tiling.k_step)
    tile = of(case, *shape)
    schedule = gemm_schedule(tile.function(), arch=case.arch, tiling=tiling)
    profile = mfmadsl.profile(mfmadsl.build(schedule, case.arch), list(tile.operands()))
    assert profile.loop is not None
    assert profile.loop.lds_conflict_cycles == 0
    reads = [a for a in profile.lds if a.instruction.startswith("ds_read")]
    assert reads
    assert all(np.isclose(a.cycles, a.least_cycles) for a in reads)

"""The cycle model: against figures of llvm-mca 19 on straight-line code, and by its own laws.

`CODE` is in slots of four cycles, as llvm-mca counts; `benchmarks/profiler.py` measures whole
kernels the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from mfmadsl.emulator.instructions.table import compile_instruction
from mfmadsl.emulator.machine.control import NO_EFFECT
from mfmadsl.emulator.machine.mode import Machine
from mfmadsl.emulator.profiler import Timing, chip_of
from mfmadsl.emulator.profiler.cost import SLOT
from mfmadsl.emulator.profiler.record import Trace
from mfmadsl.emulator.profiler.timing import simulate
from mfmadsl.emulator.text.assembly import Instruction, parse_instruction
from mfmadsl.model import Architecture

PASSED = {*NO_EFFECT, "s_waitcnt", "s_barrier"}
INDEPENDENT = "\n".join(
    f"v_mfma_f32_16x16x16_f16 v[{4 * i}:{4 * i + 3}], v[100:101], v[102:103], "
    f"v[{4 * i}:{4 * i + 3}]"
    for i in range(8)
)
CHAIN = "\n".join(["v_mfma_f32_32x32x8_f16 v[0:15], v[100:101], v[102:103], v[0:15]"] * 6)
VECTOR = "\n".join(f"v_add_u32_e32 v{i}, v{i + 20}, v{i + 40}" for i in range(16))
LOADS = "\n".join(
    [f"ds_read_b128 v[{4 * i}:{4 * i + 3}], v100 offset:{1024 * i}" for i in range(4)]
    + ["s_waitcnt lgkmcnt(0)", *VECTOR.splitlines()]
)
MIXED = "\n".join(
    line
    for pair in zip(INDEPENDENT.splitlines(), VECTOR.replace(" v", " v1").splitlines()[:8],
                    strict=True)
    for line in pair
)  # fmt: skip

# code: (text, cycles by `llvm-mca-19 -mcpu=gfx942 -iterations=1`)
CODE = {
    "independent": (INDEPENDENT, 33),
    "chain": (CHAIN, 49),
    "vector": (VECTOR, 17),
    "loads": (LOADS, 26),
    "mixed": (MIXED, 33),
}


def as_llvm_has_it() -> Architecture:
    chip = chip_of("gfx942")
    return replace(chip, lds_latency=4 * SLOT, l2_latency=79 * SLOT, scalar_latency=5 * SLOT)


def timing(code: str, waves: int = 1, cost: int = 0, group: int = 1, arch: str = "gfx942",
           chip: Architecture | None = None,
           places: Sequence[Sequence[int]] | None = None) -> Timing:  # fmt: skip
    """Some waves that all execute the same, or each the instructions at its `places`."""
    program = [parse_instruction(line, i) for i, line in enumerate(code.splitlines())]
    operations = {
        place: compile_instruction(instruction, Machine(arch))
        for place, instruction in enumerate(program)
        if instruction.name not in PASSED
    }

    def trace(own: Sequence[int]) -> Trace:
        costs = [cost if _reads_memory(program[place]) else 0 for place in own]
        return Trace(0, list(own), costs)

    traces = [trace(own) for own in places or [range(len(program))] * waves]
    return simulate(chip or chip_of(arch), program, operations, traces, group)


def _reads_memory(instruction: Instruction) -> bool:
    return instruction.name.startswith(("ds_", "global_"))


@pytest.mark.parametrize("name", CODE)
def test_llvm_mca_agrees_on_straight_line_code(name: str) -> None:
    text, expected = CODE[name]
    found = timing(text, chip=as_llvm_has_it()).cycles / SLOT
    assert abs(found - expected) <= 1 + expected * 0.05


def test_matrix_cores_bound_independent_products() -> None:
    found = timing(INDEPENDENT)
    assert found.busy["matrix"] == 8 * 16
    assert 8 * 16 - 12 <= found.cycles <= 8 * 16 + 8


def test_simds_work_side_by_side() -> None:
    assert timing(INDEPENDENT, waves=4, group=4).cycles == timing(INDEPENDENT).cycles
    eight = timing(INDEPENDENT, waves=8, group=8).cycles  # two on each SIMD share its matrix core
    assert eight >= 2 * 8 * 16 - 16


def test_another_wave_fills_the_matrix_core_while_one_waits() -> None:
    step = f"ds_read_b64 v[100:101], v104\ns_waitcnt lgkmcnt(0)\n{CHAIN.splitlines()[0]}\n"
    one, two = timing(step * 4, cost=4), timing(step * 4, waves=8, cost=4, group=8)
    assert two.cycles < 1.5 * one.cycles
    assert two.busy["matrix"] == 8 * one.busy["matrix"]


def test_vector_instructions_run_beside_matrix_ones() -> None:
    assert timing(MIXED).cycles <= timing(INDEPENDENT).cycles + 3 * SLOT


def test_waits_take_the_latency() -> None:
    chip = chip_of("gfx942")
    load = "global_load_dword v0, v2, s[0:1]\ns_waitcnt vmcnt(0)\nv_mov_b32 v1, v0"
    found = timing(load, cost=256)
    assert found.stalls["memory"] >= chip.l2_latency - SLOT
    assert "memory" not in timing(load.replace("vmcnt(0)", "vmcnt(1)"), cost=256).stalls


def test_lds_is_shared_by_all_simds() -> None:
    read = "\n".join(["ds_read_b128 v[0:3], v100"] * 8)
    one = timing(read, waves=4, cost=8, group=4)
    conflicts = timing(read, waves=4, cost=64, group=4)
    assert one.busy["lds"] == 4 * 8 * 8
    assert conflicts.busy["lds"] == 4 * 8 * 64
    wait = read + "\ns_waitcnt lgkmcnt(0)"
    assert timing(wait, waves=4, cost=64, group=4).cycles >= 4 * 8 * 64


def test_a_barrier_waits_for_the_last_wave_of_its_group() -> None:
    code = "ds_write_b32 v0, v1\ns_waitcnt lgkmcnt(0)\ns_barrier\nv_mov_b32 v2, v3"
    found = timing(code, waves=4, cost=100, group=4)
    assert found.stalls["barrier"] > 0
    assert "barrier" not in timing(code, waves=4, cost=100, group=1).stalls


def test_a_barrier_waits_for_no_wave_that_has_ended() -> None:
    """One of two adds up a little and ends, while the other waits for it."""
    code = f"s_barrier\nv_mov_b32 v2, v3\n{VECTOR}"
    found = timing(code, waves=2, group=2, places=[[0, 1], list(range(2, 18))])
    ended = max(event.issued for event in found.events if event.wave == 1)
    (after,) = (event.issued for event in found.events if (event.wave, event.place) == (0, 1))
    assert ended < after <= ended + 2 * SLOT


def test_priority_goes_before_age() -> None:
    code = "\n".join(["v_add_u32 v0, v1, v2"] * 8)
    eager = "s_setprio 1\n" + code
    events = timing(eager, waves=8, group=8).events
    assert {event.unit for event in events} >= {"valu"}
    assert timing(eager, waves=8, group=8).cycles >= timing(code, waves=8, group=8).cycles


def test_a_wave_of_higher_priority_issues_before_an_older_one() -> None:
    """Two waves of a SIMD that add; the younger one may ask for priority before."""
    lines = ["s_setprio 3", "s_nop 0", *["v_add_u32 v0, v1, v2"] * 8]
    program = [parse_instruction(line, i) for i, line in enumerate(lines)]
    operations = {
        place: compile_instruction(each, Machine("gfx942"))
        for place, each in enumerate(program)
        if each.name not in PASSED and each.name != "s_setprio"
    }
    simds = chip_of("gfx942").simds
    last: dict[int, int] = {}
    for first, winner in ((1, 0), (0, simds)):
        places = [[1, *range(2, 10)], *[[1]] * (simds - 1), [first, *range(2, 10)]]
        traces = [Trace(0, each, [0] * len(each)) for each in places]
        for event in simulate(chip_of("gfx942"), program, operations, traces, 1).events:
            last[event.wave] = event.issued
        assert min((last[wave], wave) for wave in (0, simds))[1] == winner
        assert last[0] != last[simds]


def test_a_wait_that_leaves_some_ends_with_the_others() -> None:
    reads = "ds_read_b32 v0, v1\nds_read_b32 v2, v1\n"
    ends = []
    for left in (1, 0):
        code = f"{reads}s_waitcnt lgkmcnt({left})\nv_mov_b32 v3, v4"
        ends.append(timing(code, cost=500).events[-1].issued)
    assert 500 <= ends[0] < 1000 <= ends[1]


def test_nops_take_their_time() -> None:
    alone = timing("v_mov_b32 v0, v1").cycles
    for count in (0, 1, 7):  # a nop of n waits for n more than one without a number would
        found = timing(f"s_nop {count}\nv_mov_b32 v0, v1").cycles
        assert found == alone + (count + 1) * SLOT


@pytest.mark.parametrize(("count", "cycles"), [("0", 4), ("1", 64), ("10", 640), ("0x7f", 8128)])
def test_sleeping_takes_its_time(count: str, cycles: int) -> None:
    """About 64 clocks for each of the number in bits 6:0 (CDNA3 ISA, S_SLEEP)."""
    alone = timing("v_mov_b32 v0, v1").cycles
    assert timing(f"s_sleep {count}\nv_mov_b32 v0, v1").cycles == alone + cycles


LDS_READ, SCALAR_LOAD = "ds_read_b32 v0, v1", "s_load_dwordx2 s[4:5], s[0:1], 0x0"


@pytest.mark.parametrize("code", [f"{LDS_READ}\n{SCALAR_LOAD}", f"{SCALAR_LOAD}\n{LDS_READ}"])
@pytest.mark.parametrize(("lds", "scalar"), [(1000, 64), (64, 1000)])
def test_a_wait_for_all_waits_for_the_slowest(code: str, lds: int, scalar: int) -> None:
    chip = replace(chip_of("gfx942"), lds_latency=lds, scalar_latency=scalar)
    found = timing(f"{code}\ns_waitcnt lgkmcnt(0)\nv_mov_b32 v2, v3", chip=chip)
    assert 1000 <= found.cycles <= 1000 + 8 * SLOT

"""Instructions that move values between lanes."""

from __future__ import annotations

import numpy as np
import pytest

from mfmadsl.emulator.instructions.lanes import LANE_INSTRUCTIONS
from mfmadsl.emulator.instructions.table import compile_instruction
from mfmadsl.emulator.machine.mode import Machine
from mfmadsl.emulator.text.assembly import parse_instruction
from tests.emulator.waves import executed, put, run, vector, wave

LANE = np.arange(64, dtype=np.uint32)


def test_the_first_active_lane_is_read() -> None:
    waves = wave()
    put(waves, {"v0": LANE + 7, "exec": np.array(0xF0, np.uint64)})
    run(waves, "v_readfirstlane_b32 s4, v0")
    assert waves.scalar[4].tolist() == [11]
    put(waves, {"exec": np.array(0, np.uint64)})
    run(waves, "v_readfirstlane_b32 s4, v0")
    assert waves.scalar[4].tolist() == [7]


def test_a_lane_is_read_and_written_whatever_exec_says() -> None:
    waves = wave()
    put(waves, {"v0": LANE, "s2": np.uint32(99), "exec": np.array(0, np.uint64)})
    run(waves, "v_readlane_b32 s4, v0, 42")
    assert waves.scalar[4, 0] == 42
    run(waves, "v_writelane_b32 v0, s2, 5")
    assert vector(waves, 0).tolist() == [99 if i == 5 else i for i in range(64)]


@pytest.mark.parametrize("rows", [16, 32])
def test_odd_rows_change_places_with_even_ones(rows: int) -> None:
    waves = executed(f"v_permlane{rows}_swap_b32 v0, v1", {"v0": LANE, "v1": LANE + 100})
    odd = LANE // rows % 2 == 1
    assert (vector(waves, 0) == np.where(odd, LANE - rows + 100, LANE)).all()
    assert (vector(waves, 1) == np.where(odd, LANE + 100, LANE + rows)).all()


def test_registers_change_places() -> None:
    waves = executed("v_swap_b32 v0, v1", {"v0": LANE, "v1": LANE + 100})
    assert (vector(waves, 0) == LANE + 100).all()
    assert (vector(waves, 1) == LANE).all()


def test_lanes_below_are_counted() -> None:
    mask = np.full(64, 0xF0F0F0F0, np.uint32)
    waves = executed("v_mbcnt_lo_u32_b32 v0, v1, 3", {"v1": mask})
    run(waves, "v_mbcnt_hi_u32_b32 v0, v1, v0")
    both = 0xF0F0F0F0F0F0F0F0
    assert vector(waves, 0).tolist() == [3 + (both & ((1 << i) - 1)).bit_count() for i in range(64)]


def test_every_lane_instruction_is_tested() -> None:
    assert set(LANE_INSTRUCTIONS) == {
        "v_readfirstlane_b32", "v_readlane_b32", "v_writelane_b32", "v_permlane16_swap_b32",
        "v_permlane32_swap_b32", "v_swap_b32", "v_mbcnt_lo_u32_b32", "v_mbcnt_hi_u32_b32", "v_nop",
    }  # fmt: skip


@pytest.mark.parametrize("name", ["v_nop", "v_nop_e32", "v_nop_e64"])
def test_what_does_nothing_takes_its_slot(name: str) -> None:
    operation = compile_instruction(parse_instruction(name), Machine("gfx942"))
    assert (operation.unit, operation.slots, operation.reads, operation.writes) == (
        "valu", 1, (), (),
    )  # fmt: skip
    waves = executed(name, {"v0": LANE, "s0": np.uint32(9)})
    assert (vector(waves, 0) == LANE).all()
    assert waves.scalar[0, 0] == 9

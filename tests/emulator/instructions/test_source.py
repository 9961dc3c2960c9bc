"""DPP: which lane each lane reads, lane by lane as the manual has it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from mfmadsl.emulator.instructions.source import DPP_MODIFIERS
from tests.emulator.waves import executed, put, run, vector, wave

LANE = np.arange(64, dtype=np.uint32)

# control: the lane that lane i reads from, or None where there is none
CONTROLS: dict[str, Callable[[int], int | None]] = {
    "quad_perm:[3,0,2,1]": lambda i: i // 4 * 4 + [3, 0, 2, 1][i % 4],
    "row_shl:3": lambda i: i + 3 if i % 16 + 3 < 16 else None,
    "row_shr:2": lambda i: i - 2 if i % 16 >= 2 else None,
    "row_ror:5": lambda i: i // 16 * 16 + (i % 16 - 5) % 16,
    "row_mirror": lambda i: i // 16 * 16 + 15 - i % 16,
    "row_half_mirror": lambda i: i // 8 * 8 + 7 - i % 8,
    "row_bcast:15": lambda i: i // 16 * 16 - 1 if i >= 16 else None,
    "row_bcast:31": lambda i: 31 if i >= 32 else None,
    "row_newbcast:6": lambda i: i // 16 * 16 + 6,
    "wave_shl:1": lambda i: i + 1 if i < 63 else None,
    "wave_shr:1": lambda i: i - 1 if i else None,
    "wave_rol:1": lambda i: (i + 1) % 64,
    "wave_ror:1": lambda i: (i - 1) % 64,
}


@pytest.mark.parametrize("control", CONTROLS)
@pytest.mark.parametrize("zero", [True, False])
def test_patterns(control: str, zero: bool) -> None:
    bound = " bound_ctrl:1" if zero else ""
    code = f"v_mov_b32_dpp v0, v1 {control} row_mask:0xf bank_mask:0xf{bound}"
    found = vector(executed(code, {"v0": LANE + 500, "v1": LANE + 100}), 0).tolist()
    for i, value in enumerate(found):
        source = CONTROLS[control](i)
        without = 0 if zero else i + 500
        assert value == (without if source is None else source + 100), i


def test_rows_and_banks_can_be_left_out() -> None:
    code = "v_mov_b32_dpp v0, v1 row_newbcast:3 row_mask:0x5 bank_mask:0x3"
    found = vector(executed(code, {"v0": LANE + 500, "v1": LANE}), 0).tolist()
    expected = [i // 16 * 16 + 3 if i // 16 % 2 == 0 and i % 16 < 8 else i + 500 for i in range(64)]
    assert found == expected


def test_lanes_that_are_off_are_not_read() -> None:
    waves = wave()
    put(waves, {"v0": LANE + 500, "v1": LANE, "exec": np.array(0b1101, np.uint64)})
    run(waves, "v_add_u32_dpp v0, v1, v1 quad_perm:[1,1,2,2] row_mask:0xf bank_mask:0xf")
    assert vector(waves, 0)[:5].tolist() == [500, 501, 4, 5, 504]


def test_every_control_is_tested() -> None:
    others = {"row_mask", "bank_mask", "bound_ctrl"}
    assert {control.split(":")[0] for control in CONTROLS} == set(DPP_MODIFIERS) - others

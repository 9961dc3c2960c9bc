"""A profile as people read it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mfmadsl.emulator.profiler import LdsAccess, profile
from mfmadsl.report.profile import profile_table
from tests.emulator.waves import kernel

STORING = kernel(
    "\n	s_load_dwordx2 s[4:5], s[0:1], 0x0\n	v_lshlrev_b32_e32 v1, 2, v0\n"
    "	s_waitcnt lgkmcnt(0)\n	global_store_dword v1, v0, s[4:5]"
)


def test_conflicts_that_cost_most_come_first() -> None:
    """All executions of an instruction together; those without any are left out."""
    found = profile(STORING, [np.zeros(64, np.uint32)], (1,), (64,))
    accesses = (
        LdsAccess(1, "once, by much", 1, 40.0, 8.0),
        LdsAccess(2, "never", 1000, 8.0, 8.0),
        LdsAccess(3, "often, by little", 100, 9.0, 8.0),
    )
    table = profile_table(replace(found, lds=accesses))
    _, _, listed = table.partition("LDS bank conflicts")
    assert [line.split()[1] for line in listed.splitlines()[1:]] == ["3", "1"]

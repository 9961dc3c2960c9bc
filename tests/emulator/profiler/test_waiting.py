"""Kernels whose workgroups wait for others, of which a compute unit has only some."""

from __future__ import annotations

import numpy as np
import pytest

from mfmadsl.emulator import EmulationError
from mfmadsl.emulator.profiler import profile
from tests.emulator.machine import waiting


@pytest.mark.parametrize(
    ("text", "groups", "threads"),
    [
        (waiting.flag(2, consumer_first=True), 3, 64),
        (waiting.flag(599, consumer_first=True), 600, 64),
        (waiting.chain(20, backward=True), 20, 64),
        (waiting.grid_barrier(600), 600, 64),
        (waiting.behind_a_barrier(2), 3, 128),
    ],
    ids=["a flag", "a later flag", "a sum passed back", "a barrier over the grid", "at a barrier"],
)
def test_workgroups_that_are_waited_for_run_without_being_counted(
    text: str, groups: int, threads: int
) -> None:
    found = profile(text, [np.zeros(1300, np.uint32)], (groups,), (threads,))
    assert found.waves == found.workgroups * threads // 64 < groups * threads // 64
    assert found.timing.cycles > 0


def test_a_flag_that_nobody_sets_has_no_profile() -> None:
    text = waiting.flag(2, consumer_first=True, is_set=False)
    with pytest.raises(EmulationError, match="waits in a loop for offset 0 of `p0`"):
        profile(text, [np.zeros(8, np.uint32)], (3,), (64,))

"""The workgroups of a launch, which start some at a time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from mfmadsl.emulator.machine.advance import Advance
from mfmadsl.emulator.machine.launch import Launch, LoadedProgram, start_waves
from mfmadsl.emulator.machine.watch import Watch, Watcher
from mfmadsl.emulator.machine.wave import LANES, Waves

_MANY = 2
"""Portions, of more than which the first workgroup runs alone where somebody waits."""

_LANES_AT_ONCE = 1 << 14
"""Lanes of the workgroups that run together: enough to hide NumPy's calls, few enough to cache."""


def portions(launch: Launch, groups: npt.NDArray[np.int64]) -> Iterator[npt.NDArray[np.int64]]:
    """The workgroups that run together, some at a time."""
    at_once = _at_once(launch)
    for first in range(0, len(groups), at_once):
        yield groups[first : first + at_once]


def _at_once(launch: Launch) -> int:
    return max(1, _LANES_AT_ONCE // (launch.waves_per_group * LANES))


class LaunchWorkgroups:
    """The workgroups of a launch that have not started: `groups` are to run, under the eyes of
    `watcher`, and the others only where those wait for them.

    With `advance`, somebody is told how far they are: of many the first one runs alone, and shows
    how much each of them executes.
    """

    def __init__(
        self,
        launch: Launch,
        loaded: LoadedProgram,
        groups: npt.NDArray[np.int64],
        watcher: Watcher | None,
        advance: Advance | None,
    ) -> None:
        self._launch, self._loaded = launch, loaded
        self._groups = self._all = groups
        self._others: npt.NDArray[np.int64] | None = None  # found when they are asked for
        self._watcher, self._advance = watcher, advance
        self._at_once = _at_once(launch)
        self._first = int(advance is not None and len(groups) > _MANY * self._at_once)

    @property
    def left(self) -> int:
        """How many are to run."""
        return len(self._groups)

    @property
    def beside(self) -> int:
        """How many there are, with those that run only where others wait for them."""
        if self._others is None:
            self._others = np.setdiff1d(np.arange(self._launch.groups), self._all)
        return len(self._groups) + len(self._others)

    def start(self, most: int) -> tuple[Waves, Watch | None]:
        """Start the next of them, up to so many."""
        count = min(most, self._first or self._at_once)
        self._first = 0
        if not self.left and self._others is not None:
            chosen, self._others = self._others[:count], self._others[count:]
            return start_waves(self._launch, self._loaded, chosen)[0], None
        chosen, self._groups = self._groups[:count], self._groups[count:]
        if self._advance is not None:
            self._advance.starts(len(chosen))
        waves, scalars = start_waves(self._launch, self._loaded, chosen)
        watch = None if self._watcher is None else self._watcher.starts(waves, scalars)
        waves.watch = watch
        return waves, watch

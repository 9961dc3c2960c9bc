"""Time in the chip's model, for who asks the device, such as `triton.testing.do_bench`."""

from __future__ import annotations

import math
from typing import Any

from mfmadsl.error import ArgumentError
from mfmadsl.triton.session import TritonSession


class ModelledEvents:
    """What of `torch.cuda` Triton asks for events and their times, which are modelled.

    `do_bench` asks for the time of some runs first, between which it clears caches, to see how many
    it takes to average the noise away. Modelled times have none, so that this one has no end: one
    run is enough.
    """

    def __init__(self, session: TritonSession) -> None:
        self.session = session
        self.cleared = 0

    def Event(self, enable_timing: bool = False, **_: Any) -> ModelledEvent:  # noqa: N802
        """One that is still to be recorded."""
        return ModelledEvent(self, enable_timing)

    def synchronize(self, device: Any = None) -> None:
        """A launch is done when it returns."""

    def current_device(self) -> int:
        """There is one."""
        return 0


class ModelledEvent:
    """The modelled time of all launches before it."""

    def __init__(self, source: ModelledEvents, timed: bool) -> None:
        self._source, self._timed = source, timed
        self._time: float | None = None
        self._cleared = 0

    def record(self, stream: Any = None) -> None:
        """Take the time; launches are profiled from the first such event on."""
        if self._timed:
            self._time = self._source.session.start_clock()
            self._cleared = self._source.cleared

    def synchronize(self) -> None:
        """It is done."""

    def query(self) -> bool:
        """Whether it is done."""
        return True

    def elapsed_time(self, end: ModelledEvent) -> float:
        """Milliseconds until another one. Raises ArgumentError where one was not recorded."""
        if self._time is None or end._time is None:
            raise ArgumentError("both events must be recorded, and made with enable_timing=True")
        self._source.session.stop_clock()
        if end._cleared - self._cleared > 1:
            return math.inf
        return (end._time - self._time) * 1e3

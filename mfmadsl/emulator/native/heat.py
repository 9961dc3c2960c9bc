"""When code is worth making: what interpreting has cost so far, in this process.

Seconds are estimated, not measured, so that the same runs compile the same code.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING

from mfmadsl.emulator.native.form import CodeForm

if TYPE_CHECKING:
    from mfmadsl.emulator.native.library import Library

_INTERPRETED, _INTERPRETED_WAVE = 12e-6, 0.15e-6  # an instruction, and more of each wave
_LOADED, _COMPILED = 0.4e-3, 8e-3  # a form that is on disk, and one that is not
_EARLY = 0.25  # of what a line costs, from when on it may be compiled
_SHARE = 0.25  # of all interpreting so far, that may go into such lines
_DESCRIBED = 1e-4  # to look what the code of an instruction would be


class Heat:
    """What interpreting has cost, by form and altogether, and what compiling has."""

    def __init__(self) -> None:
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._interpreted = self._compiled = 0.0

    def interprets(self, instructions: int, waves: int) -> float:
        """A line is about to be interpreted: what each of its instructions costs."""
        each = _INTERPRETED + _INTERPRETED_WAVE * waves
        self._interpreted += instructions * each
        return each

    def is_worth(
        self,
        library: Library,
        forms: Mapping[str, CodeForm],
        counts: Mapping[str, int],
        each: float,
    ) -> bool:
        """Whether the code of a line is worth making now."""
        missing = [name for name in forms if not library.is_loaded(name)]
        cost = sum(_LOADED if library.is_kept(name) else _COMPILED for name in missing)
        for name in missing:
            self._seconds[name] += counts[name] * each
        spent = sum(self._seconds[name] for name in missing)
        made = cost - _LOADED * sum(map(library.is_kept, missing))
        early = self._compiled + made <= _SHARE * self._interpreted
        if spent < cost and not (early and spent >= _EARLY * cost):
            return False
        self._compiled += made
        return True


HEAT = Heat()


def is_considered(visits: int, waves: int) -> bool:
    """Whether it is time to look what the code of a line would be, which takes a while, too."""
    return visits * (_INTERPRETED + _INTERPRETED_WAVE * waves) >= _DESCRIBED

"""Looks at several instructions at once, which native code then executes if nothing is wrong.

Where anything may be wrong, the instruction is left to the checks, one at a time, which tell it. So
all that is said here is that nothing is.
"""

from __future__ import annotations

import numpy as np

from mfmadsl.emulator.machine.wave import LANES, Waves
from mfmadsl.emulator.native.fields import Field
from mfmadsl.emulator.native.stretch import Access, Stretch
from mfmadsl.emulator.sanitizer.defined import Defined
from mfmadsl.emulator.sanitizer.global_race import GlobalRaces
from mfmadsl.emulator.sanitizer.in_flight import InFlight, Selected, Tickets
from mfmadsl.emulator.sanitizer.lanes_off import LanesOff
from mfmadsl.emulator.sanitizer.race import Races
from mfmadsl.emulator.sanitizer.undefined import Undefined
from mfmadsl.emulator.sanitizer.wait_states import WaveSequences

_CHANGES = 16 * 2  # words of a lane: of each byte what was there, and the place


class Ahead:
    """Looks ahead for the checks of waves that run together. Instructions at the places of `alone`
    have to be looked at one at a time, and so have accesses to global memory if `memory_alone`."""

    def __init__(
        self, executed: WaveSequences, in_flight: InFlight, undefined: Undefined, races: Races,
        in_memory: GlobalRaces, lanes_off: LanesOff, ids: Tickets, alone: frozenset[int],
        memory_alone: bool,
    ) -> None:  # fmt: skip
        self._executed, self._in_flight, self._undefined = executed, in_flight, undefined
        self._races, self._in_memory, self._lanes_off = races, in_memory, lanes_off
        self._ids, self._alone, self._memory_alone = ids, alone, memory_alone
        self._defined = Defined(undefined)
        self._lanes_at, self._undo = np.zeros(0, np.int64), np.zeros(0, np.int64)

    @property
    def version(self) -> int:
        """Another number says that `places` have changed."""
        return self._races.version + self._in_memory.version

    def _chosen(self, waves: Waves) -> Selected:
        return slice(None) if waves.count == len(self._ids) else waves.index

    def ready(self, waves: Waves, stretch: Stretch, most: int) -> int:
        """With how many instructions of a stretch nothing can be wrong but what their steps look at
        themselves."""
        count = min(most, self._stop(stretch))
        if not count or self._lanes_off.follows(waves):
            return 0
        chosen = self._chosen(waves)
        count = self._executed.ready(chosen, stretch, count)
        count = self._in_flight.ready(chosen, stretch, count)
        return self._defined.ready(waves, chosen, stretch, count)

    def _stop(self, stretch: Stretch) -> int:
        """The place in a stretch of the first instruction that has to be looked at alone."""
        key = f"stop {self._memory_alone} {self._in_memory.looks_at_all}"
        found: int | None = stretch.kept.get(key)
        if found is None:
            accesses = (place for place, each, _ in stretch.accesses if not self._looks_at(each))
            places = range(stretch.count)
            alone = (place for place in places if self._is_alone(stretch, place))
            found = stretch.kept[key] = min([stretch.count, *accesses, *alone])
        return found

    def _is_alone(self, stretch: Stretch, place: int) -> bool:
        in_memory = self._memory_alone and stretch.parts[place].loads_scalars
        return in_memory or stretch.first + place in self._alone

    def _looks_at(self, access: Access) -> bool:
        return access.in_lds or (not self._memory_alone and self._in_memory.looks_at(access))

    def places(self, waves: Waves) -> dict[Field, int]:
        """What the steps of accesses look at."""
        lanes = LANES * len(self._ids)
        if len(self._lanes_at) < lanes:
            self._lanes_at = np.empty(lanes, np.int64)
            self._undo = np.empty(lanes * _CHANGES, np.int64)
        return {
            "index": waves.index.ctypes.data,
            "places": self._lanes_at.ctypes.data,
            "undo": self._undo.ctypes.data,
            "lds_issued": self._in_flight.issued["lgkmcnt"].ctypes.data,
            "memory_issued": self._in_flight.issued["vmcnt"].ctypes.data,
            "lds_undefined": self._undefined.shadow_address(waves.lds),
            "memory_undefined": self._undefined.shadow_address(waves.memory),
            "ids": self._ids.ctypes.data,
            **self._races.places(),
            **self._in_memory.places(),
        }

    def ran(self, waves: Waves, stretch: Stretch, count: int) -> None:
        """Waves have executed so many instructions of a stretch."""
        if not count:
            return
        chosen = self._chosen(waves)
        self._note(waves, stretch, count)
        self._executed.ran(chosen, count)
        self._in_flight.ran(count)
        self._defined.ran(chosen, stretch, count)

    def _note(self, waves: Waves, stretch: Stretch, count: int) -> None:
        """Note which instructions accessed memory."""
        if not stretch.accesses or stretch.accesses[0][0] >= count:
            return
        in_lds, in_memory = (
            self._in_flight.issued[name][waves.index] for name in ("lgkmcnt", "vmcnt")
        )
        ids = self._ids[waves.index]
        for place, access, number in stretch.accesses:
            if place >= count:
                break
            instruction = stretch.parts[place].instruction
            if access.in_lds:
                self._races.ran(waves, instruction, in_lds, number)
                continue
            self._in_memory.ran(instruction, ids, in_memory, number)
            if access.stores:
                self._in_memory.wrote()

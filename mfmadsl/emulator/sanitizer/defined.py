"""Whether the registers that several instructions use are surely defined."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mfmadsl.emulator.machine.bits import Mask
from mfmadsl.emulator.machine.operation import ALL_BITS
from mfmadsl.emulator.machine.wave import Waves
from mfmadsl.emulator.native.stretch import Stretch
from mfmadsl.emulator.sanitizer.in_flight import Selected
from mfmadsl.emulator.sanitizer.undefined import SCC, Undefined
from mfmadsl.emulator.text.operand import EXEC

_Key = tuple[str, int]
_USES = "uses"


@dataclass(frozen=True)
class _Use:
    """The instruction at a place reads some bits of a register, or writes it; in all lanes of a
    `whole` wave, whichever are active. A mask of lanes has the bits of one of its two `words`."""

    place: int
    writes: bool
    whole: bool = False
    bits: int = ALL_BITS
    word: int | None = None


def _uses(stretch: Stretch) -> Mapping[_Key, Sequence[_Use]]:
    """What a stretch uses, register by register, in its order."""
    found: Mapping[_Key, Sequence[_Use]] | None = stretch.kept.get(_USES)
    if found is None:
        found = stretch.kept[_USES] = _find_uses(stretch)
    return found


def _find_uses(stretch: Stretch) -> Mapping[_Key, Sequence[_Use]]:
    uses: defaultdict[_Key, list[_Use]] = defaultdict(list)
    for place, part in enumerate(stretch.parts):
        operation = part.operation
        if operation is None:
            continue
        whole = operation.whole_wave
        for each in operation.reads:
            for word, index in enumerate(each.register.indices):
                use = _Use(place, False, whole, each.bits, word if each.lanes else None)
                uses[each.register.bank, index].append(use)
        if operation.takes_scc:
            uses[SCC].append(_Use(place, False))
        for register in operation.writes:
            for index in register.indices:
                uses[register.bank, index].append(_Use(place, True, whole))
        if operation.gives_scc:
            uses[SCC].append(_Use(place, True))
    return dict(uses)


class Defined:
    """Looks ahead for undefined registers, in stretches that change EXEC at their ends at most."""

    def __init__(self, undefined: Undefined) -> None:
        self._undefined = undefined
        self._apart: dict[Stretch, int] = {}  # where all was defined, of which version
        self._met: list[_Key] = []
        self._mask: Mask | None = None

    def ready(self, waves: Waves, chosen: Selected, stretch: Stretch, count: int) -> int:
        """How many instructions of a stretch use nothing that may be undefined."""
        self._met = []
        version = self._undefined.version
        if self._apart.get(stretch) == version:
            return count
        uses = _uses(stretch)
        self._met = [key for key in uses if self._undefined.shadow(key) is not None]
        if not self._met:
            self._apart[stretch] = version
            return count
        self._mask = waves.exec_mask()
        for key in self._met:
            count = self._first_bad(waves, chosen, key, uses[key], count)
        return count

    def _first_bad(
        self, waves: Waves, chosen: Selected, key: _Key, uses: Sequence[_Use], count: int
    ) -> int:
        """The place of the first instruction that may read undefined bits of a register."""
        whole = self._undefined.shadow(key)
        assert whole is not None
        by_lanes, moved = key[0] in "va", self._undefined.was_moved(key)
        is_written = everywhere = False  # in the lanes that are active, and in all
        for use in uses:
            if use.place >= count:
                break
            if use.writes:
                is_written = True
                everywhere |= use.whole or self._mask is None or not by_lanes
                if everywhere and (not moved or isinstance(chosen, slice)):
                    break
                continue
            if moved:
                return use.place
            if is_written and (everywhere or not use.whole):
                continue
            bad = whole[chosen] & np.uint32(use.bits)
            if use.word is not None:
                bad = bad & waves.scalar[EXEC + use.word]
            if by_lanes and self._mask is not None and not use.whole:
                bad = np.where(self._mask, bad, 0)
            if bad.any():
                return use.place
        return count

    def ran(self, chosen: Selected, stretch: Stretch, count: int) -> None:
        """So many instructions of it have been executed: what they have written is defined."""
        for key in self._met:
            writes = [use for use in _uses(stretch)[key] if use.writes and use.place < count]
            if writes:
                everywhere = key[0] not in "va" or any(use.whole for use in writes)
                self._undefined.define(chosen, key, None if everywhere else self._mask)

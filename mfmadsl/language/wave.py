"""The wave that executes an entry: that of its chips, which must be alike."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from mfmadsl.language.diagnostic import Diagnostic
from mfmadsl.language.syntax import Name
from mfmadsl.model import ARCHITECTURES, DEFAULT_ARCH


class Wave(NamedTuple):
    """How many lanes a wave has, and how many 32-bit registers each of them."""

    lanes: int
    registers: int


def wave_of(chips: Sequence[str]) -> Wave:
    """The wave of an entry's chips; of those that are not known, and of none, the usual one."""
    known = [ARCHITECTURES[chip] for chip in chips if chip in ARCHITECTURES]
    known = known or [ARCHITECTURES[DEFAULT_ARCH]]
    return Wave(known[0].wave_size, min(chip.registers for chip in known))


def check_waves(chips: Sequence[Name]) -> Iterator[Diagnostic]:
    """A mistake at the first chip whose waves have another size than the first one's."""
    known = [chip for chip in chips if chip.text in ARCHITECTURES]
    sizes = [ARCHITECTURES[chip.text].wave_size for chip in known]
    for chip, size in zip(known, sizes, strict=True):
        if size != sizes[0]:
            message = (
                f"`{chip.text}` has waves of {size} lanes, but `{known[0].text}` of {sizes[0]}"
            )
            hint = "a layout is of one size of waves: write an entry for each"
            yield Diagnostic("wave", message, chip.span, hint)
            return

"""What a kernel does that the chip does not define, found while the emulator runs it."""

from mfmadsl.emulator.sanitizer.sanitize import Findings, sanitize

__all__ = ["Findings", "sanitize"]

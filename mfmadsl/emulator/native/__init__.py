"""Instructions as code for the machine that the emulator runs on."""

from mfmadsl.emulator.native.stretches import Stretches
from mfmadsl.emulator.native.wanted import native_code_is_wanted, threads_wanted

__all__ = ["Stretches", "native_code_is_wanted", "threads_wanted"]

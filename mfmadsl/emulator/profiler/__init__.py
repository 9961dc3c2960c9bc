"""How long a kernel takes on one compute unit, and what it waits for."""

from mfmadsl.emulator.machine.occupancy import Occupancy, occupancy
from mfmadsl.emulator.profiler.chip import ChipTime, ModelError
from mfmadsl.emulator.profiler.known_chip import chip_of
from mfmadsl.emulator.profiler.profile import LdsAccess, Profile, profile
from mfmadsl.emulator.profiler.timing import Event, Timing

__all__ = [
    "ChipTime",
    "Event",
    "LdsAccess",
    "ModelError",
    "Occupancy",
    "Profile",
    "Timing",
    "chip_of",
    "occupancy",
    "profile",
]

"""The names of the emulator, each of which is imported when it is first used."""

from .error import EmulationError as EmulationError
from .run import Run as Run
from .run import emulate as emulate

__all__: list[str]

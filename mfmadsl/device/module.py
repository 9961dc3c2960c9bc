"""A module that a program has loaded, and where it lies in memory."""

from __future__ import annotations

from dataclasses import dataclass

from mfmadsl.emulator.code_object import CodeObject
from mfmadsl.emulator.code_object.read import read_loaded
from mfmadsl.emulator.text.data import CODE


@dataclass(frozen=True)
class Module:
    """The bytes of a code object and what it is, loaded from `base` on."""

    image: bytes
    object: CodeObject
    base: int = CODE

    def placed(self, arch: str, base: int) -> Module:
        """The same at another address: what addresses its data holds are others."""
        return Module(self.image, read_loaded(self.image, arch, base), base)

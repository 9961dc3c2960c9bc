"""A section of the file that a loader puts into memory."""

from __future__ import annotations

from dataclasses import dataclass

from mfmadsl.emulator.code_object.error import CodeObjectError


@dataclass(frozen=True)
class ElfSection:
    """Bytes that a loader puts at an address."""

    name: str
    address: int
    content: bytes
    is_code: bool
    is_writable: bool

    def holds(self, address: int, size: int) -> bool:
        """Whether these bytes lie within the section."""
        return self.address <= address and address + size <= self.address + len(self.content)

    def part(self, address: int, size: int) -> bytes:
        """Some of it. Raises CodeObjectError where it lies elsewhere."""
        if size < 0 or not self.holds(address, size):
            raise CodeObjectError(f"{size} bytes at 0x{address:x} lie beyond their section")
        return self.content[address - self.address :][:size]

"""What is in a code object, read by the ELF specification and LLVM's "User Guide for AMDGPU"."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

MAGIC = b"\x7fELF\x02\x01\x01\x40"  # 64 bits, little end first, ELFOSABI_AMDGPU_HSA
VERSIONS = {3: 5, 4: 6}
"""ELFABIVERSION_AMDGPU_HSA to the version of code objects."""

_FUNCTION, _SYMBOLS, _NOTE = 2, 11, 7  # STT_FUNC, SHT_DYNSYM, SHT_NOTE


class Section(NamedTuple):
    """A section header."""

    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry: int


@dataclass(frozen=True)
class CodeObject:
    """An ELF file of a GPU, alone or with anything behind it."""

    data: bytes

    @property
    def version(self) -> int:
        return VERSIONS[self.data[8]]

    @cached_property
    def sections(self) -> list[Section]:
        (start,) = struct.unpack_from("<Q", self.data, 0x28)
        size, count, _ = struct.unpack_from("<HHH", self.data, 0x3A)
        places = (start + n * size for n in range(count))
        return [Section(*struct.unpack_from("<IIQQQQIIQQ", self.data, at)) for at in places]

    @cached_property
    def functions(self) -> dict[str, bytes]:
        """The machine code of each kernel."""
        (table,) = (section for section in self.sections if section.kind == _SYMBOLS)
        found = {}
        for at in range(table.offset, table.offset + table.size, 24):
            name, info, _, where, value, size = struct.unpack_from("<IBBHQQ", self.data, at)
            if info & 15 == _FUNCTION:
                section = self.sections[where]
                start = section.offset + value - section.address
                found[self._text(self.sections[table.link], name)] = self.data[start : start + size]
        return found

    @property
    def metadata(self) -> bytes:
        """The notes, of which there is one."""
        (note,) = (section for section in self.sections if section.kind == _NOTE)
        return self.data[note.offset : note.offset + note.size]

    def _text(self, section: Section, at: int) -> str:
        start = section.offset + at
        return self.data[start : self.data.index(b"\0", start)].decode()


def code_objects(library: bytes) -> list[CodeObject]:
    """Those that lie in an exported library."""
    places = []
    at = library.find(MAGIC)
    while at >= 0:
        places.append(at)
        at = library.find(MAGIC, at + 1)
    return [CodeObject(library[at:]) for at in places]

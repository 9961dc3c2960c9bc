"""Lines of the source that machine code comes from, as `.debug_line` of a code object has them."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property
from io import BytesIO
from pathlib import PurePosixPath
from typing import Any

from elftools.elf.elffile import ELFFile

_MOST = 1 << 18  # lines of one object


@dataclass(frozen=True)
class SourceLine:
    """From an address on code comes from a line of a file; of none, where the line is 0."""

    address: int
    file: str
    line: int


@dataclass(frozen=True)
class SourceLines:
    """All that an object tells, in the order of addresses."""

    lines: tuple[SourceLine, ...] = field(default=(), repr=False)

    @cached_property
    def _addresses(self) -> list[int]:
        return [each.address for each in self.lines]

    def at(self, address: int) -> SourceLine | None:
        """Where the code at an address comes from."""
        place = bisect_right(self._addresses, address)
        found = self.lines[place - 1] if place else None
        return found if found is not None and found.line else None

    @classmethod
    def of(cls, data: bytes) -> SourceLines:
        """Those of an ELF file; none, where it has none that can be read."""
        try:
            elf = ELFFile(BytesIO(data))
            if elf.get_section_by_name(".debug_line") is None:
                return cls()
            debug = elf.get_dwarf_info()
            found: dict[int, SourceLine] = {}
            for unit in debug.iter_CUs():
                folder = _text(unit.get_top_DIE().attributes.get("DW_AT_comp_dir"))
                program = debug.line_program_for_CU(unit)
                for entry in program.get_entries() if program is not None else ():
                    state = entry.state
                    if state is None or len(found) > _MOST:
                        continue
                    line = 0 if state.end_sequence else state.line
                    file = _file(program.header, state.file, folder)
                    found[state.address] = SourceLine(state.address, file, line)
        except Exception:  # broken, in whatever way: debug information is not needed to run code
            return cls()
        return cls(tuple(found[address] for address in sorted(found)))


def _file(header: Any, number: int, folder: str) -> str:
    """The path of a file by its number; before version 5 files and folders count from 1, and folder
    0 is that of the unit."""
    numbered = header.version >= 5
    entry = header.file_entry[number if numbered else number - 1]
    place, folders = entry.dir_index, header.include_directory
    within = _text(folders[place if numbered else place - 1]) if numbered or place else ""
    return str(PurePosixPath(folder, within, _text(entry.name)))


def _text(value: Any) -> str:
    value = getattr(value, "value", value)
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value or "")

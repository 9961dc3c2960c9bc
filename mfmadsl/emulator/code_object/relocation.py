"""Addresses that a loader writes into data: of functions, tables and variables.

Source: LLVM, "User Guide for AMDGPU Backend", section "Relocation Records".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from mfmadsl.emulator.code_object.error import CodeObjectError
from mfmadsl.emulator.code_object.section import ElfSection
from mfmadsl.emulator.text.data import CODE

_NONE, _ABS64, _RELATIVE64 = 0, 3, 13
_RECORD_BYTES = 24
_MOST_RECORDS = 1 << 20


@dataclass(frozen=True)
class _Record:
    """An address of 64 bits that is written to a place of the object."""

    place: int
    value: int


def relocated(
    sections: Mapping[int, ElfSection], all_of: list[Any], base: int = CODE
) -> dict[int, ElfSection]:
    """The loaded sections, with addresses as they are where the object is loaded, from `base` on.

    `all_of` are the sections of the file. Raises CodeObjectError for what no loader of HIP writes,
    and for symbols that are defined elsewhere.
    """
    changed: dict[int, bytearray] = {}
    for record in (r for table in all_of for r in _records(table, all_of, base)):
        index = next((i for i, s in sections.items() if s.holds(record.place, 8)), None)
        if index is None or sections[index].is_code:
            raise CodeObjectError(
                f"an address is to be written to 0x{record.place:x}, where there is no data"
            )
        content = changed.setdefault(index, bytearray(sections[index].content))
        start = record.place - sections[index].address
        content[start : start + 8] = (record.value % (1 << 64)).to_bytes(8, "little")
    return {
        index: replace(section, content=bytes(changed[index])) if index in changed else section
        for index, section in sections.items()
    }


def _records(table: Any, sections: list[Any], base: int) -> Iterator[_Record]:
    if table["sh_type"] not in ("SHT_REL", "SHT_RELA") or not table["sh_size"]:
        return
    if not table["sh_flags"] & 2:  # of sections for debuggers, which nobody loads
        return
    count = table["sh_size"] // _RECORD_BYTES
    if table["sh_type"] == "SHT_REL" or table["sh_entsize"] != _RECORD_BYTES:
        raise CodeObjectError(f"its relocations {table.name} are none of AMD GPUs")
    if count > _MOST_RECORDS:
        raise CodeObjectError(f"it says that it has {count} relocations")
    for each in table.iter_relocations():
        kind, addend = int(each["r_info_type"]), int(each["r_addend"])
        if kind == _RELATIVE64:
            yield _Record(int(each["r_offset"]), base + addend)
        elif kind == _ABS64:
            symbol = sections[table["sh_link"]].get_symbol(each["r_info_sym"])
            yield _Record(int(each["r_offset"]), _address(symbol, base) + addend)
        elif kind != _NONE:
            raise CodeObjectError(f"relocations of kind {kind} are none that a loader knows")


def _address(symbol: Any, base: int) -> int:
    if symbol["st_shndx"] != "SHN_UNDEF":
        return base + int(symbol["st_value"])
    if symbol["st_info"]["bind"] == "STB_WEAK":  # it need not exist
        return 0
    raise CodeObjectError(f"it needs `{symbol.name}`, which it does not define: link it with that")

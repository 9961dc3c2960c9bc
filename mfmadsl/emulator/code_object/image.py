"""The ELF file that a code object is: its chip, its symbols, its notes and the bytes of a place.

Sources: LLVM, "User Guide for AMDGPU Backend", sections "ELF Code Object" (header, symbols, note
records) and "Code Object Metadata".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from typing import Any

from elftools.common.exceptions import ELFError
from elftools.construct.core import ConstructError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import NoteSection, SymbolTableSection

from mfmadsl.emulator.code_object.error import CodeObjectError
from mfmadsl.emulator.code_object.relocation import relocated
from mfmadsl.emulator.code_object.section import ElfSection
from mfmadsl.emulator.text.data import CODE
from mfmadsl.model import ARCHITECTURES, Architecture, unknown_chip

_AMDGPU, _HSA = 224, 64  # e_machine, EI_OSABI
_SHARED = 3  # e_type
_VERSIONS = {1: 3, 2: 4, 3: 5, 4: 6}  # EI_ABIVERSION: version of code objects
_MACHINE, _XNACK, _SRAMECC = 0xFF, 8, 10  # e_flags: a mask, and the first of two bits each
_SETTINGS = {2: "-", 3: "+"}  # of a feature: off, on; else either, or there is none
_METADATA_NOTE = 32
DESCRIPTOR = ".kd"
"""How the name of a kernel's descriptor ends."""
_SYMBOL_BYTES = 24
_MOST_SECTIONS = 1000
_MOST_SYMBOLS = 1 << 16
_MOST_ZEROS = 256 << 20  # bytes of a section that are not in the file
_BROKEN = (ConstructError, ELFError, ArithmeticError, AssertionError, AttributeError, LookupError,
           RecursionError, TypeError, ValueError)  # fmt: skip
"""What pyelftools answers to files that are not what they say."""


@dataclass(frozen=True)
class ElfSymbol:
    """A named place: its first address, its bytes, and the section that it lies in."""

    name: str
    address: int
    size: int
    section: int
    is_function: bool


@dataclass(frozen=True)
class Image:
    """What is read of the file; `metadata` is what its note says, packed."""

    chip: Architecture
    features: Mapping[str, bool]
    version: int
    symbols: Mapping[str, ElfSymbol]
    sections: Mapping[int, ElfSection]
    metadata: bytes

    @cached_property
    def code_starts(self) -> list[int]:
        """The addresses of functions, and of kernels that are not called such, in order."""
        return sorted(
            {
                symbol.address
                for symbol in self.symbols.values()
                if symbol.is_function or symbol.name + DESCRIPTOR in self.symbols
            }
        )


def read_image(data: bytes, base: int = CODE) -> Image:
    """The file of a code object that is loaded from `base` on. Raises CodeObjectError for any
    other."""
    _check_header(data)
    try:
        elf = ELFFile(BytesIO(data))
        flags = int(elf["e_flags"])
        if elf.num_sections() > _MOST_SECTIONS:
            raise CodeObjectError(f"it says that it has {elf.num_sections()} sections")
        sections = list(elf.iter_sections())
        metadata = _metadata(sections)
        version = _VERSIONS[data[8]]
        symbols = _symbols(sections)
        loaded = {i: _section(each, data) for i, each in enumerate(sections) if _is_loaded(each)}
        return Image(
            _chip(flags & _MACHINE, metadata),
            _features(flags, version),
            version,
            symbols,
            relocated(loaded, sections, base),
            metadata,
        )
    except CodeObjectError:
        raise
    except _BROKEN as error:
        raise CodeObjectError(f"it is a broken ELF file: {error or type(error).__name__}") from None


def _check_header(data: bytes) -> None:
    if not data.startswith(b"\x7fELF"):
        raise CodeObjectError("it is neither an ELF file nor a bundle of such")
    if len(data) < 64:
        raise CodeObjectError("it ends within the header of an ELF file")
    if data[4:6] != b"\x02\x01":
        raise CodeObjectError("it is an ELF file, but not of 64 bits and with the low bytes first")
    machine = int.from_bytes(data[18:20], "little")
    if machine != _AMDGPU:
        raise CodeObjectError(f"it is an ELF file for machine {machine}, not for AMD GPUs")
    if data[7] != _HSA or data[8] not in _VERSIONS:
        raise CodeObjectError(
            f"it is for ABI {data[7]}.{data[8]}: what is read are code objects of the versions 3 "
            f"to 6, whose ABI is {_HSA}.1 to {_HSA}.4"
        )
    if int.from_bytes(data[16:18], "little") != _SHARED:
        raise CodeObjectError("it is no code object yet: link it, with `ld.lld -shared`")


def _chip(machine: int, metadata: bytes) -> Architecture:
    for chip in ARCHITECTURES.values():
        if chip.elf_machine == machine:
            return chip
    named = re.search(rb"amdgcn-amd-amdhsa-[^-]*-(gfx[\w-]+)", metadata)
    if named is not None:
        raise CodeObjectError(unknown_chip(named[1].decode()))
    raise CodeObjectError(f"it is for the chip of number 0x{machine:x}, which is not known")


def _features(flags: int, version: int) -> dict[str, bool]:
    """The features that are set to be on or off."""
    if version == 3:  # one bit each: on
        return {name: True for name, bit in (("xnack", 8), ("sramecc", 9)) if flags >> bit & 1}
    found = {"sramecc": flags >> _SRAMECC & 3, "xnack": flags >> _XNACK & 3}
    return {name: _SETTINGS[value] == "+" for name, value in found.items() if value in _SETTINGS}


def _metadata(sections: list[Any]) -> bytes:
    for section in sections:
        if isinstance(section, NoteSection):
            for note in section.iter_notes():
                if note["n_name"] == "AMDGPU" and note["n_type"] in (
                    _METADATA_NOTE,
                    "NT_AMDGPU_METADATA",
                ):
                    return bytes(note["n_descdata"])
    raise CodeObjectError("it has no note that describes its kernels")


def _symbols(sections: list[Any]) -> dict[str, ElfSymbol]:
    """The symbols by name: those that a loader sees go before those for debuggers."""
    found: dict[str, ElfSymbol] = {}
    for table in sections:
        if not isinstance(table, SymbolTableSection):
            continue
        if table["sh_entsize"] != _SYMBOL_BYTES or table.num_symbols() > _MOST_SYMBOLS:
            raise CodeObjectError(f"its table of symbols {table.name} is broken, or too large")
        for symbol in table.iter_symbols():
            section = symbol["st_shndx"]
            if symbol.name and isinstance(section, int):
                is_function = symbol["st_info"]["type"] == "STT_FUNC"
                place = (symbol["st_value"], symbol["st_size"], section)
                found.setdefault(symbol.name, ElfSymbol(symbol.name, *place, is_function))
    return found


def _is_loaded(section: Any) -> bool:
    return bool(section["sh_flags"] & 2) and section["sh_type"] in ("SHT_PROGBITS", "SHT_NOBITS")


def _section(section: Any, data: bytes) -> ElfSection:
    start, size, flags = (section[key] for key in ("sh_offset", "sh_size", "sh_flags"))
    if section["sh_type"] == "SHT_NOBITS":
        if size > _MOST_ZEROS:
            raise CodeObjectError(f"its section {section.name} says that it has {size} bytes")
        content = bytes(size)
    elif start + size > len(data):
        raise CodeObjectError(f"its section {section.name} lies beyond its end")
    else:
        content = data[start : start + size]
    return ElfSection(section.name, section["sh_addr"], content, bool(flags & 4), bool(flags & 1))

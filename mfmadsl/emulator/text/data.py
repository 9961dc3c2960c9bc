"""Data of a program, at addresses: constants beside its code, and global variables.

Text tells it as an assembler takes it, with the address in a comment:

    .section .rodata,"a",@progbits // 0000000008C0
    .quad 0x140000000a,0x290000001e
    .zero 16
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from mfmadsl.emulator.error import EmulationError

CODE = 0x7E00_0000_0000
"""What is added to the addresses of code and data: below all of the memory that a kernel is
given."""

_SECTION = re.compile(
    r'\s*\.section\s+([\w.$-]+),"(a?w?x?)",@(?:progbits|nobits)\s*// ([0-9A-F]{12})\s*'
)
_ZEROS = re.compile(r"\s*\.zero\s+(\d{1,9})\s*")
_QUADS = re.compile(r"\s*\.quad\s+(0x[0-9a-f]{1,16}(?:,0x[0-9a-f]{1,16})*)\s*")
_BYTES = re.compile(r"\s*\.byte\s+(0x[0-9a-f]{1,2}(?:,0x[0-9a-f]{1,2})*)\s*")
_A_LINE = 64  # bytes
_MOST = 1 << 29  # bytes from the first address of a program to the last of its data


@dataclass(frozen=True)
class DataSection:
    """Bytes that a kernel reaches by addresses of its own, `CODE` apart from the object's."""

    name: str
    address: int
    content: bytes
    is_writable: bool = False


def data_of(lines: Sequence[str]) -> tuple[DataSection, ...]:
    """The data that a text tells the addresses of. Raises EmulationError for what is no data."""
    found: list[DataSection] = []
    for number, line in enumerate(lines):
        if "//" in line and (section := _SECTION.fullmatch(line)) is not None:
            content, place = b"".join(_contents(lines, number + 1)), int(section[3], 16)
            if place + len(content) > _MOST:
                message = f"ends at {place + len(content):#x}: data is read up to {_MOST:#x}"
                raise EmulationError(message, number + 1, line.strip())
            found.append(DataSection(section[1], CODE + place, content, "w" in section[2]))
    return tuple(sorted(found, key=lambda each: each.address))


def _contents(lines: Sequence[str], first: int) -> Iterator[bytes]:
    """What directives from a line on say, up to what is another section or the end of it."""
    for number in range(first, len(lines)):
        line = lines[number]
        if quads := _QUADS.fullmatch(line):
            yield b"".join(int(x, 16).to_bytes(8, "little") for x in quads[1].split(","))
        elif zeros := _ZEROS.fullmatch(line):
            yield bytes(int(zeros[1]))
        elif single := _BYTES.fullmatch(line):
            yield bytes(int(x, 16) for x in single[1].split(","))
        elif not line.strip() or line.lstrip().startswith("."):
            return
        else:
            raise EmulationError("this is no data", number + 1, line.strip())


def data_text(name: str, address: int, content: bytes, writable: bool, code: bool) -> str:
    """A section in text; `address` is that in the object."""
    flags = f"a{'w' * writable}{'x' * code}"
    lines = [f'\t.section\t{name},"{flags}",@progbits // {address:012X}']
    lines += _directives(content)
    return "\n".join(lines)


def _directives(content: bytes) -> Iterable[str]:
    zeros, whole = 0, len(content) // 8 * 8
    for start in range(0, whole, _A_LINE):
        piece = content[start : min(start + _A_LINE, whole)]
        if not any(piece):
            zeros += len(piece)
            continue
        if zeros:
            yield f"\t.zero\t{zeros}"
            zeros = 0
        quads = (piece[i : i + 8] for i in range(0, len(piece), 8))
        yield "\t.quad\t" + ",".join(f"0x{int.from_bytes(q, 'little'):x}" for q in quads)
    if zeros:
        yield f"\t.zero\t{zeros}"
    if rest := content[whole:]:
        yield "\t.byte\t" + ",".join(f"0x{byte:x}" for byte in rest)

"""Machine code to instructions, by the table of the chip's family.

A bit that no row accounts for is not passed over: what it is in would not be what is written.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mfmadsl.emulator.code_object.error import CodeObjectError
from mfmadsl.emulator.code_object.formats import extracted, opcode_of
from mfmadsl.emulator.code_object.spelling import LITERAL, SOURCES, spelled
from mfmadsl.emulator.code_object.table import EncodingRow, rows_of
from mfmadsl.model import Architecture

_WORD = struct.Struct("<I")
_LONGEST = 16  # bytes of an instruction
_NEVER_GOES_ON = ("s_endpgm", "s_branch", "s_setpc_b64")


@dataclass(frozen=True)
class Decoded:
    """One instruction: its first byte, how many it has, and how it is written.

    A branch has a `target`, the byte that it jumps to, and its text is without that.
    """

    offset: int
    size: int
    name: str
    text: str
    target: int | None = None


def disassemble(code: bytes, chip: Architecture, sized: bool = True) -> tuple[Decoded, ...]:
    """The instructions of a chip's machine code, one after another.

    Code that is not `sized` may end before these bytes do: at what is no instruction, if nothing
    before leads there. Raises CodeObjectError, which names the place and the bytes, for what is no
    instruction that is known.
    """
    found: list[Decoded] = []
    try:
        found.extend(_decoded(code, chip))
    except CodeObjectError:
        count = 0 if sized else _closed(found)
        if not count:
            raise
        return tuple(found[:count])
    return tuple(found)


def _closed(found: Sequence[Decoded]) -> int:
    """How many of the instructions, at most, never lead to what follows them."""
    count, farthest = 0, 0
    for place, each in enumerate(found, start=1):
        farthest = max(farthest, each.offset if each.target is None else each.target)
        if each.name in _NEVER_GOES_ON and farthest < each.offset + each.size:
            count = place
    return count


def _decoded(code: bytes, chip: Architecture) -> Iterator[Decoded]:
    rows = rows_of(chip.family)
    known: dict[bytes, Decoded] = {}  # kernels repeat themselves
    at = 0
    while at < len(code):
        window = code[at : at + _LONGEST]
        found = known.get(window[:8])
        if found is None:
            found = _instruction(window, at, rows, chip)
            if found.size <= 8:
                known[window[:8]] = found
        target = None
        if found.target is not None:
            target = at + found.target
            if not 0 <= target < len(code) or target % 4:
                raise _refusal(at, window[: found.size], "it jumps out of the kernel")
        yield Decoded(at, found.size, found.name, found.text, target)
        at += found.size


def _instruction(
    window: bytes, at: int, rows: Mapping[int, tuple[EncodingRow, ...]], chip: Architecture
) -> Decoded:
    """The instruction at the beginning of some bytes; its target counts from there."""
    if len(window) < 4:
        raise _refusal(at, window, "it has no whole word")
    (word,) = _WORD.unpack_from(window)
    opcode = opcode_of(word)
    reason = f"{chip.name} has no such instruction, or it is none that the emulator knows"
    for row in rows.get(opcode, ()) if opcode is not None else ():
        bits = int.from_bytes(window[: row.size], "little")
        if len(window) < row.size or (bits ^ row.base) & ~(row.mask | row.unused):
            continue
        size, literal = row.size, None
        if _takes_literal(row, bits):
            size = 8
            if len(window) < size:
                reason = "its constant is missing"
                continue
            (literal,) = _WORD.unpack_from(window, 4)
        try:
            text = spelled(row, bits, literal, chip)
        except CodeObjectError as error:
            reason = str(error)
            continue
        target = None
        if "label" in row.fields:
            words = extracted(bits, row.fields["label"])
            target = size + 4 * (words - (words >> 15 << 16))
            text = text.rpartition(" ")[0].removesuffix(",")
        return Decoded(0, size, row.name, text, target)
    raise _refusal(at, window[:8], reason)


def _takes_literal(row: EncodingRow, bits: int) -> bool:
    """Whether a word follows with a constant; of instructions of two words it is the second."""
    return "literal" in row.fields or (
        row.size == 4
        and any(extracted(bits, p) == LITERAL for name, p in row.fields.items() if name in SOURCES)
    )


def _refusal(at: int, found: bytes, why: str) -> CodeObjectError:
    return CodeObjectError(f"byte {at} of the code, {found.hex(' ', 4)}: {why}")

"""ds_swizzle_b32: which lane each lane reads (CDNA3 and CDNA4 ISA, LDS instructions)."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from mfmadsl.emulator.error import OperandError
from mfmadsl.emulator.machine.wave import LANES
from mfmadsl.emulator.text.operand import parse_integer

_MACRO = re.compile(r"swizzle\((\w+),([^)]*)\)")
_QUADS, _ROTATE, _FFT = 0x8000, 0xC000, 0xE000  # patterns from which on lanes are chosen otherwise
_HALF = 32  # lanes, among which a pattern chooses
_MASK = _HALF - 1
_BITS = {"0": (0, 0, 0), "1": (0, 1, 0), "p": (1, 0, 0), "i": (1, 0, 1)}  # AND, OR and XOR


def swizzled_lanes(pattern: int) -> npt.NDArray[np.int64]:
    """The lane that each of a wave's lanes reads, by the 16 bits of a pattern."""
    lane = np.arange(LANES)
    half, own = lane & ~_MASK, lane & _MASK
    low = pattern & _MASK
    if pattern >= _FFT:
        mirrored = sum((own >> bit & 1) << 4 - bit for bit in range(5))
        return np.asarray(half | mirrored >> low.bit_count() | own & low)
    if pattern >= _ROTATE:
        distance = pattern >> 5 & _MASK
        turned = own + (-distance if pattern & 1 << 10 else distance)
        return np.asarray(half | own & low | turned & ~low & _MASK)
    if pattern >= _QUADS:
        return np.asarray(lane & ~3 | pattern >> 2 * (lane & 3) & 3)
    return np.asarray(half | (own & low | pattern >> 5 & _MASK) ^ pattern >> 10 & _MASK)


def swizzle_pattern(text: str) -> int:
    """The bits of a pattern, written as a number or as assemblers write it: `swizzle(SWAP,16)`.

    Raises OperandError for any other text.
    """
    number = parse_integer(text)
    if number is not None and 0 <= number < 1 << 16:
        return number
    found = _MACRO.fullmatch(text)
    if found is not None:
        kind, arguments = found[1], [each.strip() for each in found[2].split(",")]
        if kind == "BITMASK_PERM":
            return _masks(text, arguments)
        numbers = [value for each in arguments if (value := parse_integer(each)) is not None]
        if len(numbers) == len(arguments):
            return _of_numbers(text, kind, numbers)
    raise _unknown(text)


def _masks(text: str, arguments: list[str]) -> int:
    """Five characters, one for each bit of a lane's number from the highest down."""
    characters = arguments[0].strip('"')
    if len(arguments) != 1 or len(characters) != 5 or set(characters) - set(_BITS):
        raise _unknown(text)
    kept, merged, flipped = (
        int("".join(str(_BITS[character][n]) for character in characters), 2) for n in range(3)
    )
    return kept | merged << 5 | flipped << 10


def _of_numbers(text: str, kind: str, numbers: list[int]) -> int:
    size = numbers[0] if numbers else 0
    is_size = size.bit_count() == 1 and size <= _HALF
    match kind, len(numbers):
        case "QUAD_PERM", 4 if all(0 <= each < 4 for each in numbers):
            return _QUADS | sum(each << 2 * n for n, each in enumerate(numbers))
        case "BROADCAST", 2 if is_size and size > 1 and 0 <= numbers[1] < size:
            return _HALF - size | numbers[1] << 5
        case "SWAP", 1 if is_size and size <= _HALF // 2:
            return _MASK | size << 10
        case "REVERSE", 1 if is_size and size > 1:
            return _MASK | size - 1 << 10
        case "FFT", 1 if 0 <= size <= _MASK:
            return _FFT | size
        case "ROTATE", 2 if size in (0, 1) and 0 <= numbers[1] <= _MASK:
            return _ROTATE | size << 10 | numbers[1] << 5
    raise _unknown(text)


def _unknown(text: str) -> OperandError:
    return OperandError(
        f"offset is a number of 16 bits, or swizzle(QUAD_PERM,...), swizzle(BITMASK_PERM,...),"
        f" swizzle(BROADCAST,...), swizzle(SWAP,...), swizzle(REVERSE,...), swizzle(ROTATE,...) or"
        f" swizzle(FFT,...), not {text}"
    )

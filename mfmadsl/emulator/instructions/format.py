"""Formats of the elements of typed buffers, and numbers in them (CDNA3 ISA, section 9.1.5).

What a chip does with a number that an integer format cannot hold is not told: it is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from mfmadsl.emulator.error import EmulationError
from mfmadsl.emulator.machine.bits import Array

_COMPONENTS = {
    1: ("8", (8,)), 2: ("16", (16,)), 3: ("8_8", (8, 8)), 4: ("32", (32,)),
    5: ("16_16", (16, 16)), 9: ("2_10_10_10", (10, 10, 10, 2)), 10: ("8_8_8_8", (8,) * 4),
    11: ("32_32", (32,) * 2), 12: ("16_16_16_16", (16,) * 4), 13: ("32_32_32", (32,) * 3),
    14: ("32_32_32_32", (32,) * 4),
}  # fmt: skip
"""By the number of a data format: its name, and the bits of its components, x in the lowest."""

_KINDS = {0: "UNORM", 1: "SNORM", 2: "USCALED", 3: "SSCALED", 4: "UINT", 5: "SINT", 7: "FLOAT"}
_NAMES = re.compile(r"\[\s*BUF_DATA_FORMAT_(\w+)\s*(?:,\s*BUF_NUM_FORMAT_(\w+)\s*)?\]")
_FLOATS = {16: np.float16, 32: np.float32}


@dataclass(frozen=True)
class ElementFormat:
    """The bits of each component of an element, and what they mean."""

    widths: tuple[int, ...]
    kind: str

    @property
    def size(self) -> int:
        """Bytes of an element."""
        return sum(self.widths) // 8

    @property
    def is_integer(self) -> bool:
        """Whether components are integers in registers, too."""
        return self.kind in ("UINT", "SINT")

    def numbers(self, words: Array) -> list[Array]:
        """The components of elements, as words of 32 bits; `words` are those of the elements."""
        found, low = [], 0
        for width in self.widths:
            word, shift = divmod(low, 32)
            bits = words[word] >> np.uint32(shift) & np.uint32((1 << width) - 1)
            found.append(self._loaded(bits, width))
            low += width
        return found

    def _loaded(self, bits: Array, width: int) -> Array:
        sign = np.uint32(1 << width - 1)
        signed = ((bits ^ sign) - sign).view(np.int32)
        if self.kind == "FLOAT":
            narrow = bits.astype(f"u{width // 8}").view(_FLOATS[width])
            return narrow.astype(np.float32).view(np.uint32)
        if self.is_integer:
            return bits if self.kind == "UINT" else signed.view(np.uint32)
        value = bits.astype(np.float64) if self.kind[0] == "U" else signed.astype(np.float64)
        if self.kind.endswith("NORM"):
            value = np.maximum(value / ((1 << width - (self.kind == "SNORM")) - 1), -1)
        return value.astype(np.float32).view(np.uint32)

    def elements(self, components: list[Array]) -> Array:
        """The words of elements of components, which are words of 32 bits.

        Raises EmulationError for a number that they cannot hold.
        """
        words = np.zeros((-(-self.size // 4), *components[0].shape), np.uint32)
        low = 0
        for width, component in zip(self.widths, components, strict=True):
            word, shift = divmod(low, 32)
            words[word] |= self._stored(component, width) << np.uint32(shift)
            low += width
        return words

    def _stored(self, component: Array, width: int) -> Array:
        mask = np.uint32((1 << width) - 1)
        if self.kind == "FLOAT":
            narrow = component.view(np.float32).astype(_FLOATS[width])
            return np.asarray(narrow.view(f"u{width // 8}").astype(np.uint32))
        if self.is_integer:
            bits = component & mask
            if (self._loaded(bits, width) != component).any():
                raise EmulationError(f"stores a number that {width} bits do not hold")
            return np.asarray(bits)
        if not self.kind.endswith("NORM"):
            raise EmulationError(f"stores of {self.kind} are not emulated")
        lowest, scale = (-1, (1 << width - 1) - 1) if self.kind == "SNORM" else (0, int(mask))
        value = np.nan_to_num(np.clip(component.view(np.float32).astype(np.float64), lowest, 1))
        return np.rint(value * scale).astype(np.int64).astype(np.uint32) & mask


def element_format(data: int, kind: int) -> ElementFormat:
    """The format of two numbers. Raises EmulationError for one that is not known."""
    if data not in _COMPONENTS or kind not in _KINDS:
        raise EmulationError(
            f"the data format {data} with the number format {kind} is not emulated"
        )
    name, widths = _COMPONENTS[data]
    converted = _KINDS[kind] not in ("UINT", "SINT", "FLOAT")
    is_float = _KINDS[kind] == "FLOAT"
    if (converted and 32 in widths) or (is_float and set(widths) - set(_FLOATS)):
        raise EmulationError(f"there is no format {name} {_KINDS[kind]}")
    return ElementFormat(widths, _KINDS[kind])


def written_format(text: str) -> tuple[int, int] | None:
    """The numbers of a format as LLVM's assembler takes it; None of any other."""
    if text.isdecimal() and int(text) < 128:
        return int(text) & 15, int(text) >> 4
    found = _NAMES.fullmatch(text)
    if found is None:
        return None
    data = next((number for number, (name, _) in _COMPONENTS.items() if name == found[1]), None)
    kind = next((number for number, name in _KINDS.items() if name == (found[2] or "UNORM")), None)
    return None if data is None or kind is None else (data, kind)

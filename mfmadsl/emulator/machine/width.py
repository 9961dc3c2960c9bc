"""How much a load or store moves, and into which part of a register."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Width:
    """How much one lane moves: whole words, or a byte or half with its place in the register."""

    size: int
    signed: bool = False
    half: str = ""  # "lo" or "hi": only that half of the register changes

    @property
    def words(self) -> int:
        """Whole words; 0 where it moves less than one."""
        return self.size // 4

    @property
    def registers(self) -> int:
        """How many registers hold what moves."""
        return max(1, self.words)


_NARROW = (
    (1, ("ubyte", "sbyte", "byte", "u8", "i8")),
    (2, ("ushort", "sshort", "short", "u16", "i16")),
)
WIDTHS = {
    **{f"dword{s}": Width(4 * n) for s, n in (("", 1), ("x2", 2), ("x3", 3), ("x4", 4))},
    **{f"b{8 * n}": Width(n) for n in (1, 2, 4, 8, 12, 16)},
    **{
        name: Width(size, signed=name[0] in "si" and name != "short")
        for size, names in _NARROW
        for name in names
    },
    **{
        f"{name}_d16{suffix}": Width(size, signed=name in ("sbyte", "i8"), half=suffix[1:] or "lo")
        for size, names in ((1, ("ubyte", "sbyte", "byte", "u8", "i8", "b8")),
                            (2, ("short", "u16", "b16")))
        for name in names
        for suffix in ("", "_hi")
    },
}  # fmt: skip
"""What the ends of mnemonics such as `global_load_dwordx4` mean."""

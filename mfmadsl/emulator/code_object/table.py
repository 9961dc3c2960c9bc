"""The table of instructions of each family of chips, as `instructions.txt` has it.

`scripts/instruction_table.py` writes that file from what LLVM's assembler says. A line is one way
of writing one instruction: its format, the bits that never change, its mnemonic, its operands, its
modifiers, and the families that have it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files

from mfmadsl.emulator.code_object.formats import BY_NAME, Pieces, opcode_of, placed


@dataclass(frozen=True)
class EncodedField:
    """An operand: the field that has its number, how many registers it is, and of which bank.

    `registers` is a number, or the modifier that says the format of its elements. `bank` is that of
    registers: empty where the field alone tells it, `s`, `a`, or the number of a bit that makes it
    `a` and not `v`. An operand that is no field, such as `vcc`, is a `name` alone.
    """

    name: str
    registers: str = ""
    bank: str = ""

    def __str__(self) -> str:
        registers = f":{self.registers}" if self.registers else ""
        return self.name + registers + (f"@{self.bank}" if self.bank else "")


@dataclass(frozen=True)
class ModifierField:
    """A modifier, and its bits: of a `flag` the one; of a `number` or a `signed` one the first, and
    how many; of a `list` one for each place, or -1."""

    name: str
    kind: str
    bits: tuple[int, ...]

    @property
    def pieces(self) -> Pieces:
        """The (first bit, number of bits) of each of its pieces, from the lowest on."""
        if self.kind in ("number", "signed"):
            first, width = self.bits
            return ((first, width),)
        return tuple((bit, 1) for bit in self.bits if bit >= 0)

    def __str__(self) -> str:
        if self.kind in ("number", "signed"):
            return f"{self.name}={'s' * (self.kind == 'signed')}{self.bits[0]}:{self.bits[1]}"
        if self.kind == "list":
            return f"{self.name}=[{';'.join(map(str, self.bits))}]"
        return f"{self.name}={self.bits[0]}"


@dataclass(frozen=True)
class EncodingRow:
    """One way of writing an instruction: what its bits are, and where the rest of it lies."""

    format: str
    base: int
    size: int
    name: str
    operands: tuple[EncodedField, ...]
    modifiers: tuple[ModifierField, ...]
    suffix: tuple[str, ...] = ()

    @cached_property
    def fields(self) -> Mapping[str, Pieces]:
        """Where the numbers of operands and modifiers lie."""
        known = BY_NAME[self.format].fields
        found = {o.name: known[o.name] for o in self.operands if o.name in known}
        for operand in self.operands:
            if operand.bank.isdigit():
                found[f"@{operand.bank}"] = ((int(operand.bank), 1),)
        return {**found, **{m.name: m.pieces for m in self.modifiers}}

    @cached_property
    def mask(self) -> int:
        """The bits that may be others than those of `base`."""
        found = 0
        for pieces in self.fields.values():
            found |= placed(-1, pieces)
        return found

    @property
    def unused(self) -> int:
        """The bits that say nothing: LLVM takes any (`VOP3PXe`, in VOPInstructions.td).

        Of a product with scales the first half loads those, and has but two sources and op_sel of
        them (CDNA4 ISA, V_MFMA_LD_SCALE_B32).
        """
        return _UNUSED_BESIDE_SCALES if self.size == 16 else 0

    def __str__(self) -> str:
        def joined(parts: tuple[object, ...]) -> str:
            return ",".join(map(str, parts)) or "-"

        return (
            f"{self.format} {self.base:0{2 * self.size}x} {self.name} {joined(self.operands)} "
            f"{joined(self.modifiers)} {joined(self.suffix)}"
        )


_UNUSED_BESIDE_SCALES = placed(-1, ((0, 11), (13, 3), (50, 9), (61, 3)))
"""Target, neg_hi, op_sel of a third source, clamp, that source, and neg."""


def parse_row(line: str) -> EncodingRow:
    """A row as it is written, without its families."""
    format_, base, name, operands, modifiers, suffix = line.split(" ")
    return EncodingRow(
        format_,
        int(base, 16),
        len(base) // 2,
        name,
        tuple(map(parse_operand_field, _split(operands))),
        tuple(map(parse_modifier_field, _split(modifiers))),
        tuple(_split(suffix)),
    )


def _split(text: str) -> list[str]:
    return [] if text == "-" else text.split(",")


@cache
def parse_operand_field(text: str) -> EncodedField:
    """An operand such as `vdst:4@25`."""
    text, _, bank = text.partition("@")
    name, _, registers = text.partition(":")
    return EncodedField(name, registers, bank)


@cache
def parse_modifier_field(text: str) -> ModifierField:
    """A modifier such as `offset=0:16`, `offset=s0:13`, `glc=16` or `op_sel=[11;12]`."""
    name, _, place = text.partition("=")
    if place.startswith("["):
        return ModifierField(name, "list", tuple(map(int, place.strip("[]").split(";"))))
    if ":" in place:
        kind = "signed" if place.startswith("s") else "number"
        low, _, width = place.lstrip("s").partition(":")
        return ModifierField(name, kind, (int(low), int(width)))
    return ModifierField(name, "flag", (int(place),))


def table_text() -> str:
    """The file of all rows."""
    return (files("mfmadsl.emulator.code_object") / "instructions.txt").read_text()


@cache
def mnemonics_of(family: str) -> frozenset[str]:
    """The mnemonics that a family's chips have, with the encodings that they name."""
    lines = (line.split(" ") for line in table_text().splitlines() if not line.startswith("#"))
    return frozenset(name for _, _, name, *_, families in lines if family in families.split(","))


@cache
def rows_of(family: str) -> Mapping[int, tuple[EncodingRow, ...]]:
    """The rows of a family's instructions by their `opcode_of`; those with fewer fields first."""
    found: dict[int, list[EncodingRow]] = {}
    for line in table_text().splitlines():
        if line.startswith("#"):
            continue
        text, _, families = line.rpartition(" ")
        if family in families.split(","):
            row = parse_row(text)
            opcode = opcode_of(row.base & 0xFFFF_FFFF)
            assert opcode is not None, line
            found.setdefault(opcode, []).append(row)
    return {
        opcode: tuple(sorted(rows, key=lambda row: row.mask.bit_count()))
        for opcode, rows in found.items()
    }

"""The table of instructions is what LLVM's assembler makes of them."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Iterator

import pytest

from mfmadsl.emulator.code_object.disassemble import disassemble
from mfmadsl.emulator.code_object.error import CodeObjectError
from mfmadsl.emulator.code_object.table import EncodingRow, rows_of, table_text
from mfmadsl.model import ARCHITECTURES, Architecture
from scripts.instruction_table import UNSPELLED, assemble, rows_of_chip, sample_bits

CHIPS = list(ARCHITECTURES.values())
SEED = int(os.environ["MFMADSL_SEED"])
DRAWS = 40  # of which the first is taken that is an instruction
LOST = re.compile(r"(flat|global)_atomic_\w+_f64 a.* sc0 (nt )?sc1$")
"""Of these LLVM's assembler forgets sc1."""


def rows(chip: Architecture) -> list[EncodingRow]:
    """Those that the assembler can be asked for: it knows no number of words for a branch."""
    return [
        row
        for same in rows_of(chip.family).values()
        for row in same
        if "label" not in row.fields and str(row) != UNSPELLED.get(chip.name)
    ]


def text_of(code: bytes, chip: Architecture) -> str:
    """One instruction as it is disassembled; a branch with the words that it jumps."""
    (one,) = disassemble(code, chip)
    return one.text


def drawn(
    row: EncodingRow, chip: Architecture, generator: random.Random
) -> Iterator[tuple[bytes, str]]:
    """Code of a row with random numbers in its fields, and what is made of it."""
    for _ in range(DRAWS):
        bits = row.base & ~row.mask | generator.getrandbits(8 * row.size) & row.mask
        code = bits.to_bytes(row.size, "little")
        for literal in (b"", generator.randbytes(4)):
            try:
                yield code + literal, text_of(code + literal, chip)
                return
            except CodeObjectError:
                pass
            except ValueError:  # the four bytes were another instruction
                pass


@pytest.mark.parametrize("chip", CHIPS, ids=lambda chip: chip.name)
def test_every_row_is_what_the_assembler_makes_of_its_text(chip: Architecture) -> None:
    known = rows(chip)
    codes = [sample_bits(row).to_bytes(row.size, "little") for row in known]
    answers = assemble([text_of(code, chip) for code in codes], chip.name)
    for row, code, answer in zip(known, codes, answers, strict=True):
        assert answer is not None, row
        assert answer[: len(code)] == code, row


@pytest.mark.parametrize("chip", CHIPS, ids=lambda chip: chip.name)
def test_the_assembler_makes_of_a_text_the_bytes_that_it_is_of_or_nothing(
    chip: Architecture,
) -> None:
    """Any registers, constants and modifiers: what LLVM refuses are combinations of them that the
    chip lacks, such as two scalar registers in one vector instruction."""
    generator = random.Random(SEED)
    known = rows(chip)
    cases = [case for row in known for case in drawn(row, chip, generator)]
    assert len(cases) > 0.9 * len(known)
    answers = assemble([text for _, text in cases], chip.name)
    for (code, text), answer in zip(cases, answers, strict=True):
        if LOST.match(text):
            continue
        assert answer is None or answer[: len(code)] == code, f"{text} with MFMADSL_SEED={SEED}"
    assert sum(answer is not None for answer in answers) > 0.4 * len(cases)


def test_the_script_writes_what_the_table_has() -> None:
    """Of a few instructions of each kind on each chip: all of them take minutes."""
    generator = random.Random(SEED)
    lines = table_text().splitlines()
    for chip in CHIPS:
        have = {
            line.rpartition(" ")[0]
            for line in lines
            if chip.family in line.rpartition(" ")[2].split(",")
        }
        some = set(generator.sample(sorted({line.split()[2] for line in have}), 12))
        written = {str(row) for row in rows_of_chip(chip, some)}
        assert written == {line for line in have if line.split()[2] in some}, (chip.name, SEED)

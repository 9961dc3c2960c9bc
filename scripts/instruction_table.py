"""Write `mfmadsl/emulator/code_object/instructions.txt`: what LLVM's assembler makes of each
instruction that the emulator knows.

    python -m scripts.instruction_table

Each way of writing an instruction is tried, with registers that name their fields, and then each
modifier at it; what the assembler takes, and into which bits, is a row. Needs `ziglang`, whose
assembler is LLVM's, and takes some minutes.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import replace
from functools import partial
from pathlib import Path

from elftools.elf.elffile import ELFFile

from mfmadsl.emulator.code_object.formats import BY_NAME, opcode_of, placed
from mfmadsl.emulator.code_object.spelling import spelled
from mfmadsl.emulator.code_object.table import (
    EncodingRow,
    ModifierField,
    parse_modifier_field,
    parse_operand_field,
    parse_row,
)
from mfmadsl.emulator.instructions.modifier import base_name
from mfmadsl.emulator.machine.control import NO_EFFECT
from mfmadsl.model import ARCHITECTURES, Architecture
from scripts.instruction_forms import (
    Form,
    Forms,
    buffer_forms,
    flat_forms,
    lds_forms,
    lds_names,
    long_forms,
    matrix_forms,
    matrix_names,
    memory_names,
    scalar_forms,
    scalar_names,
    short_forms,
    typed_forms,
    typed_names,
    vector_names,
)

TABLE = Path(__file__).parent.parent / "mfmadsl/emulator/code_object/instructions.txt"
_SLOT = 32  # bytes that each line of a trial is given
_SAMPLES = {  # numbers of fields, as registers that tuples of any size may begin at
    "src0": 256 + 16, "src1": 256 + 32, "src2": 256 + 64, "sdwa0": 16, "sdwa1": 32, "dpp0": 16,
    "matrix_src0": 256 + 96, "matrix_src1": 256 + 112, "matrix_src2": 256 + 128,
    "matrix_vdst": 144, "vdst": 8, "vsrc1": 32, "vaddr": 16, "vdata": 32, "addr": 16, "data0": 32,
    "data1": 64, "sdst": 4, "ssrc0": 16, "ssrc1": 32, "ssrc": 28, "sdata": 16, "sbase": 4,
    "srsrc": 2, "saddr": 20, "soffset": 33, "soffset_low": 33, "displacement": 0x124,
    "sdwa_sdst": 12, "simm16": 0x1234, "number": 3, "label": 5, "wait": 0x0271, "hwreg": 0x1881,
    "literal": 0x5678, "gpr_idx": 5, "gpr_idx_on": 9,
    "dpp": 0x1B, "row_mask": 5, "bank_mask": 6, "dst_sel": 2, "src0_sel": 3,
    "src1_sel": 4, "dst_unused": 2, "offset": 5, "format": 0x17,
}  # fmt: skip

UNSPELLED = {"gfx90a": "mubuf 00000000e0a0c000 buffer_wbl2 - - -"}
"""What LLVM's code generator writes with bits for which its assembler knows no word."""

_SAMPLE_OF_MANY = 128  # of a target so large that sources would lie in it
_SCALAR_SAMPLES = {"src0": 16, "src1": 128 + 5, "src2": 64}  # of scalar sources
_WIDE_DPP = 0x153  # row_newbcast:3, which pairs of registers have alone


def assemble(lines: Sequence[str], arch: str) -> list[bytes | None]:
    """What LLVM makes of each line for a chip, with zeros after it; None of what it refuses."""
    wrong: set[int] = set()
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "lines.s"), Path(folder, "lines.o")
        while True:
            kept = [line for i, line in enumerate(lines) if i not in wrong]
            source.write_text("".join(f"{line}\n.p2align 5, 0\n" for line in kept))
            command = [
                sys.executable, "-m", "ziglang", "cc", "-target", "amdgcn-amdhsa-none",
                f"-mcpu={arch}", "-c", str(source), "-o", str(target),
            ]  # fmt: skip
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if not done.returncode:
                break
            found = re.findall(r"^[^\n]*?lines\.s:(\d+):\d+: error:", done.stderr, re.M)
            if wrong or not found:
                raise RuntimeError(done.stderr[:2000])
            wrong = {(int(number) - 1) // 2 for number in found}
        with target.open("rb") as file:
            code = ELFFile(file).get_section_by_name(".text").data()
    if len(code) != _SLOT * len(kept):
        raise RuntimeError(f"{len(kept)} lines gave {len(code)} bytes")
    slots = iter(code[i : i + _SLOT] for i in range(0, len(code), _SLOT))
    return [None if i in wrong else next(slots) for i in range(len(lines))]


_FLAGS = {
    "flat": "glc=16 sc0=16 slc=17 nt=17 scc=25 sc1=25",
    "mubuf": "glc=14 sc0=14 slc=17 nt=17 scc=15 sc1=15 offset=0:12",
    "mtbuf": "glc=14 sc0=14 slc=54 nt=54 sc1=53 scc=53 offset=0:12",
    "smem": "glc=16",
    "ds": "gds=16 offset=0:16 offset0=0:8 offset1=8:8",
    "vop3": "neg0=61 neg1=62 neg2=63 abs0=8 abs1=9 abs2=10 clamp=15 omod=59:2 "
    "cbsz=8:3 abid=11:4 blgp=61:3",
    "sdwa": "clamp=45 omod=46:2 sext0=51 neg0=52 abs0=53 sext1=59 neg1=60 abs1=61",
    "dpp": "bound_ctrl=51 neg0=52 abs0=53 neg1=54 abs1=55",
}
"""The modifiers to try, with their bits, by format; a row keeps those that the assembler puts
there."""

_LISTS = ("op_sel", "op_sel_hi", "neg_lo", "neg_hi", "neg")


def sample_bits(row: EncodingRow) -> int:
    """The bits of a row with a number of its own in each field."""
    bits = row.base
    for name, pieces in row.fields.items():
        bits |= placed(_SAMPLES.get(name, 0), pieces)
    for operand in row.operands:
        if operand.name == "vdst" and operand.registers in ("16", "32"):
            field = row.fields["vdst"]
            bits = bits & ~placed(-1, field) | placed(_SAMPLE_OF_MANY, field)
        if operand.bank == "s" and operand.name in _SCALAR_SAMPLES:
            field = row.fields[operand.name]
            bits = bits & ~placed(-1, field) | placed(_SCALAR_SAMPLES[operand.name], field)
    if "dpp" in row.fields and any(o.registers == "2" for o in row.operands):
        bits ^= placed(_SAMPLES["dpp"] ^ _WIDE_DPP, row.fields["dpp"])
    return bits


def row_of(form: Form, name: str, size: int) -> EncodingRow:
    format_, operands, modifiers, suffix = form
    parts = [[] if text == "-" else text.split(",") for text in (operands, modifiers, suffix)]
    return EncodingRow(
        format_, 0, size, name, tuple(map(parse_operand_field, parts[0])),
        tuple(map(parse_modifier_field, parts[1])), tuple(parts[2]),
    )  # fmt: skip


def size_of(form: Form) -> int:
    format_, operands, modifiers, _ = form
    if "matrix" in operands:
        return 16
    short = format_.startswith("so") or (format_.startswith("vop") and format_ != "vop3")
    longer = "literal" in operands or "sdwa" in operands or "dpp" in operands
    return 4 if short and not longer and modifiers == "-" else 8


def text_of(row: EncodingRow, bits: int, chip: Architecture) -> str:
    return spelled(row, bits, None, chip)


def found_rows(
    names: Sequence[str], chip: Architecture, forms: Callable[[str], Forms]
) -> list[EncodingRow]:
    """The ways of writing instructions that the assembler takes."""
    tried = [row_of(form, name, size_of(form)) for name in names for form in forms(name)]
    answers = assemble([text_of(row, sample_bits(row), chip) for row in tried], chip.name)
    rows = []
    for row, answer in zip(tried, answers, strict=True):
        if answer is None:
            continue
        bits, rest = int.from_bytes(answer[: row.size], "little"), answer[row.size :]
        format_ = BY_NAME[row.format]
        if any(rest) or bits & 0xFFFF_FFFF & format_.mask != format_.value:
            continue
        if opcode_of(bits & 0xFFFF_FFFF) is None or bits & row.mask != sample_bits(row):
            continue
        rows.append(replace(row, base=bits & ~row.mask))
    return rows


def trials(row: EncodingRow) -> Iterator[ModifierField]:
    """The modifiers that a row may have, but for lists."""
    kind = row.format
    operands = " ".join(o.name for o in row.operands)
    if kind in ("vop1", "vop2", "vopc"):
        kind = "sdwa" if "sdwa" in operands else "dpp" if "dpp" in operands else ""
    for text in _FLAGS.get(kind, "").split():
        modifier = parse_modifier_field(text)
        at = modifier.name[-1]
        written = modifier.name[:-1] not in ("neg", "abs", "sext") or re.search(
            rf"(src|sdwa|dpp){at}", operands
        )
        if modifier.name in row.fields:
            continue
        if written and not placed(-1, modifier.pieces) & (row.mask | row.base):
            yield modifier
    if kind == "flat":
        yield parse_modifier_field("offset=s0:13")
        yield parse_modifier_field("offset=0:12")


def with_modifiers(rows: Sequence[EncodingRow], chip: Architecture) -> list[EncodingRow]:
    """The rows with the modifiers that the assembler takes."""
    lines: list[str] = []
    asked: list[tuple[int, ModifierField, int]] = []
    for place, row in enumerate(rows):
        for modifier in trials(row):
            value = -5 if modifier.kind == "signed" else 1 if modifier.bits[-1] < 3 else 5
            value = 1 if modifier.kind == "flag" else value
            more = replace(row, modifiers=(*row.modifiers, modifier))
            bits = sample_bits(row) | placed(value, modifier.pieces)
            lines.append(text_of(more, bits, chip))
            asked.append((place, modifier, bits))
        for bank in {o.bank for o in row.operands if o.bank.isdigit()}:
            bits = sample_bits(row) | 1 << int(bank)
            lines.append(text_of(row, bits, chip))
            asked.append((place, ModifierField(f"@{bank}", "flag", (int(bank),)), bits))
    taken: list[list[ModifierField]] = [[] for _ in rows]
    for (place, modifier, bits), answer in zip(asked, assemble(lines, chip.name), strict=True):
        size = rows[place].size
        if answer is not None and int.from_bytes(answer[:size], "little") == bits:
            taken[place].append(modifier)
    lists = found_lists(rows, chip)
    return [_with(row, *of_row) for row, *of_row in zip(rows, lists, taken, strict=True)]


def _with(
    row: EncodingRow, lists: Sequence[ModifierField], taken: Sequence[ModifierField]
) -> EncodingRow:
    """The row with modifiers; of those that say the same bits, the first."""
    banks = {m.name.removeprefix("@") for m in taken if m.name.startswith("@")}
    operands = tuple(
        replace(o, bank="") if o.bank.isdigit() and o.bank not in banks else o for o in row.operands
    )
    used, kept = 0, list[ModifierField]()
    plain = [m for m in taken if not m.name.startswith("@")]
    for modifier in (*lists, *plain):
        bits = placed(-1, modifier.pieces)
        if not bits & used:
            kept.append(modifier)
        used |= bits
    order = [*plain, *lists]
    return replace(
        row, operands=operands, modifiers=(*row.modifiers, *sorted(kept, key=order.index))
    )


def found_lists(rows: Sequence[EncodingRow], chip: Architecture) -> list[list[ModifierField]]:
    """The modifiers that are lists of bits: which bit each place of them is."""
    lines: list[str] = []
    asked: list[tuple[int, str, int, int | None]] = []
    for place, row in enumerate(rows):
        if row.format != "vop3":
            continue
        text = text_of(row, sample_bits(row), chip)
        for name in _LISTS:
            length = _list_length(row, name)
            for hot in (None, *range(length)):
                flags = ",".join("1" if i == hot else "0" for i in range(length))
                lines.append(f"{text} {name}:[{flags}]")
                asked.append((place, name, length, hot))
        if "bitop3" in row.name:
            for hot in (None, *range(8)):
                lines.append(f"{text} bitop3:{0 if hot is None else 1 << hot}")
                asked.append((place, "bitop3", 8, hot))
    answers = dict(zip(asked, assemble(lines, chip.name), strict=True))
    found: list[list[ModifierField]] = [[] for _ in rows]
    for (place, name, length, hot), none in answers.items():
        if hot is not None or none is None:
            continue
        bits = tuple(_changed_bit(none, answers[place, name, length, hot]) for hot in range(length))
        if set(bits) != {-1} and not any(b >= 0 and rows[place].mask >> b & 1 for b in bits):
            found[place].append(ModifierField(name, "list", bits))
    return found


def _list_length(row: EncodingRow, name: str) -> int:
    """How many flags it has: one for each source and, of the op_sel of VOP3, one for the result."""
    sources = sum(o.name.startswith(("src", "matrix_src")) for o in row.operands)
    if row.size == 16:
        return 3
    if name == "op_sel" and re.search(r"_sr_(fp8|bf8)_|pk_fp4_", row.name):
        return 4  # the last two of them count bytes of the target
    packed = row.name.startswith(("v_pk_", "v_fma_mix", "v_mad_mix", "v_dot"))
    return sources + (name == "op_sel" and not packed)


def _changed_bit(before: bytes, after: bytes | None) -> int:
    """The only bit in which two instructions differ, else -1."""
    if after is None:
        return -1
    changed = int.from_bytes(before, "little") ^ int.from_bytes(after, "little")
    return changed.bit_length() - 1 if changed.bit_count() == 1 else -1


def named_as_llvm_does(rows: Sequence[EncodingRow]) -> Iterator[EncodingRow]:
    """The rows, in whose names there is an encoding only where there are two."""
    long = {row.name.removesuffix("_e64") for row in rows if row.name.endswith("_e64")}
    for row in rows:
        base = row.name.removesuffix("_e32")
        yield row if base in long else replace(row, name=base)


def rows_of_chip(chip: Architecture, only: Set[str] | None = None) -> list[EncodingRow]:
    """All rows of a chip, or those of some mnemonics."""

    def asked(names: Iterable[str]) -> list[str]:
        return [name for name in names if only is None or name in only]

    bases = None if only is None else {base_name(name) for name in only}
    vector = [name for name in vector_names(chip.name) if bases is None or name in bases]
    short = [f"{name}_{encoding}" for name in vector for encoding in ("e32", "sdwa", "dpp")]
    rows = found_rows(short, chip, short_forms)
    both = {row.name.removesuffix("_e32") for row in rows if row.name.endswith("_e32")}
    buffers = [name for name in sorted(NO_EFFECT) if name.startswith("buffer_")]
    rows += [
        *found_rows([name for name in vector if name not in both], chip, short_forms),
        # Only what has a short form, too, is written with the name of its encoding.
        *found_rows([f"{n}_e64" if n in both else n for n in vector], chip, long_forms),
        *found_rows(asked(scalar_names()), chip, scalar_forms),
        *found_rows(asked(matrix_names(chip)), chip, partial(matrix_forms, chip)),
        *found_rows(asked(lds_names()), chip, lds_forms),
        *found_rows(asked(memory_names(("flat", "global", "scratch"))), chip, flat_forms),
        *found_rows(asked([*memory_names(["buffer"]), *buffers]), chip, buffer_forms),
        *found_rows(asked(typed_names(("buffer", "tbuffer"))), chip, typed_forms),
    ]
    others = [parse_row(UNSPELLED[chip.name])] if chip.name in UNSPELLED else []
    first: dict[tuple[int, int], EncodingRow] = {}
    for row in (*named_as_llvm_does(with_modifiers(rows, chip)), *others):
        if only is None or row.name in only:
            first.setdefault((row.base & ~row.mask, row.mask), row)
    return list(first.values())


def main() -> None:
    chips: dict[str, list[str]] = {}
    for chip in ARCHITECTURES.values():
        for row in rows_of_chip(chip):
            chips.setdefault(str(row), []).append(chip.family)
        print(chip.name, len(chips), flush=True)
    order = {name: i for i, name in enumerate(BY_NAME)}
    lines = [f"{row} {','.join(families)}\n" for row, families in chips.items()]
    lines.sort(key=lambda line: (order[line.split()[0]], line.split()[1]))
    TABLE.write_text(
        "# Written by scripts/instruction_table.py: format, bits, mnemonic, operands, modifiers,\n"
        "# suffixes, families; see mfmadsl/emulator/code_object/table.py\n" + "".join(lines)
    )


if __name__ == "__main__":
    main()

"""What runs as text runs as a code object, and the other way round."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Iterator
from dataclasses import replace

import pytest

from mfmadsl.emulator import EmulationError
from mfmadsl.emulator.code_object.disassemble import disassemble
from mfmadsl.emulator.code_object.table import rows_of
from mfmadsl.emulator.instructions.compare import COMPARE
from mfmadsl.emulator.instructions.row import Row
from mfmadsl.emulator.instructions.table import compile_instruction
from mfmadsl.emulator.instructions.vector import vector_rows
from mfmadsl.emulator.machine.bits import width_of
from mfmadsl.emulator.machine.control import PASSED
from mfmadsl.emulator.machine.mode import Machine
from mfmadsl.emulator.text.assembly import parse_instruction
from mfmadsl.emulator.text.data import CODE
from mfmadsl.model import ARCHITECTURES, Architecture
from scripts.instruction_table import assemble, sample_bits
from tests.emulator.instructions.manual.forms import forms
from tests.emulator.instructions.test_malformed import LINES

CHIPS = pytest.mark.parametrize("chip", ARCHITECTURES.values(), ids=lambda chip: chip.name)
SEED = int(os.environ["MFMADSL_SEED"])
DRAWN = 60  # mnemonics of each chip

REFUSED = {
    "s_sethalt": "a wave that stops is one that a debugger looks at",
}
"""What the table has so that code which never comes there can be read."""
IN_PART = {
    "v_pk_fmac_f16_dpp": "of registers as they are only",
    "v_pk_fmac_f16_sdwa": "of registers as they are only",
    "s_getreg_b32": "of some registers only",
    "s_sendmsg": "of an interrupt only",
    "s_setreg_b32": "of what may change while a kernel runs",
    "s_setreg_imm32_b32": "of what may change while a kernel runs",
}


def executes(text: str, chip: Architecture) -> bool:
    """Whether an instruction is executed, or passed."""
    instruction = replace(parse_instruction(text), address=CODE, size=4)
    if instruction.name in PASSED:
        return True
    try:
        compile_instruction(instruction, Machine(chip.name))
    except EmulationError:
        return False
    return True


@CHIPS
def test_what_is_disassembled_is_executed(chip: Architecture) -> None:
    unknown = set()
    for rows in rows_of(chip.family).values():
        for row in rows:
            code = sample_bits(row).to_bytes(row.size, "little")
            if "label" not in row.fields:
                (one,) = disassemble(code, chip)
                if not executes(one.text, chip):
                    unknown.add(one.name)
    assert unknown - set(IN_PART) == set(REFUSED)


def written(name: str, row: Row) -> Iterator[str]:
    """All forms of an instruction, whether there are such or not."""
    kinds = row.kinds[: row.source_count - row.accumulates]
    registers = [f"v[{2 * i + 2}:{2 * i + 3}]" if width_of(kind) == 64 else f"v{2 * i + 2}"
                 for i, kind in enumerate(kinds)]  # fmt: skip
    target = "v[0:1]" if row.result.itemsize == 8 else "v0"
    for form in forms(len(registers)):
        operands = [s.spelled(r) for s, r in zip(form.sources, registers, strict=True)]
        modifiers = form.modifiers
        if name in COMPARE:
            target, modifiers = "vcc", re.sub(r" dst_(sel|unused):\w+", "", modifiers)
        yield f"{name}{form.suffix} {target}, {', '.join(operands)}{modifiers}"


@CHIPS
def test_what_is_executed_is_disassembled(chip: Architecture) -> None:
    generator = random.Random(SEED)
    rows = {**vector_rows(chip.name), **COMPARE}
    names = {*generator.sample(sorted(rows), DRAWN), "v_sub_u32", "v_madak_f16"}
    lines = dict.fromkeys(line for name in sorted(names) for line in written(name, rows[name]))
    known = [line for line in (*lines, *LINES, *OTHERS) if executes(line, chip)]
    answers = [*zip(known, assemble(known, chip.name), strict=True)]
    for line, code in answers:
        if code is not None:
            size = max(4, len(code.rstrip(b"\0")) + 3 & ~3)
            first = next(iter(disassemble(code[:size], chip)))
            assert executes(first.text, chip), f"{line} with MFMADSL_SEED={SEED}"
    assert sum(code is not None for _, code in answers) > 0.5 * len(known)


OTHERS = [
    "v_nop",
    "v_trig_preop_f64 v[0:1], v[2:3], v4",
    "v_cvt_pk_f32_fp8_sdwa v[0:1], v2 src0_sel:WORD_0",
    "v_cvt_pk_f32_bf8_sdwa v[0:1], v2 src0_sel:WORD_1",
    "v_cvt_f32_fp8_sdwa v0, v2 src0_sel:BYTE_3",
    "v_dot2c_f32_f16_dpp v0, v2, v4 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf",
    "v_mul_legacy_f32_e32 v0, v2, v4",
    "v_add_co_u32_e64 v0, s[4:5], v2, v4 clamp",
    "v_cmp_lt_f32_e64 s[4:5], v2, v4 clamp",
    "ds_bpermute_b32 a0, v2, a4",
    "s_load_dword s4, s[0:1], s3 offset:-8",
    "s_load_dword s4, s[0:1], -8",
]
"""What one of the two did not know."""

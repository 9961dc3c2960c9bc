"""Write docs/opcodes.md: which opcodes of each chip the emulator executes, and which not.

    python -m scripts.opcodes

What opcodes there are is asked of LLVM's assembler, which `ziglang` brings: it has a list of all
mnemonics, and says of each whether a chip has it.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import ziglang

from mfmadsl.emulator.code_object.table import rows_of
from mfmadsl.emulator.instructions.modifier import base_name
from mfmadsl.model import ARCHITECTURES, Architecture

PAGE = Path(__file__).parent.parent / "docs/opcodes.md"
_KINDS = re.compile(rb"(?:s|v|ds|buffer|tbuffer|global|flat|scratch)_[a-z0-9_]+")
_GRAPHICS = re.compile(r"v_interp|v_screen_partition|ds_gws_|ds_ordered_count|s_code_end")
_OTHER_SPELLING = re.compile(r"v_mfma_\w+x\d+[a-z]+\d+(_1k)?|v_accvgpr_write|v_mul_lo_i32")
"""Of matrix instructions of later chips and of two others; the opcode is that of another name."""
_PART_OF_ANOTHER = ("v_mfma_ld_scale_b32",)
_WINDOW = 1 << 17  # bytes around a mnemonic in which all others lie
_TABLE_ONLY = ("s_sethalt",)
"""What is read where code never comes to it, and not executed."""

REASONS = {
    r"s_scratch_": "scalar accesses to scratch memory: where its lanes' words lie is not modelled",
    r"s_cbranch_(g_fork|i_fork|join)": "forks, which no compiler makes",
    r"s_(rfe|rfe_restore)_b64|s_endpgm_|s_sethalt|s_sendmsghalt|s_setkill":
        "of trap handlers, debuggers and graphics",
    r"s_atc_probe": "translates addresses ahead",
    r"buffer_store_lds": "stores from the LDS",
    r"v_cvt_sr_(bf16|f16)_f32":
        "rounds by random bits: no public source says which of them count, and HIP's header has no "
        "function of it for a host",
}  # fmt: skip


@cache
def mnemonics() -> tuple[str, ...]:
    """All that the assembler has, of any chip: its list begins each with its length."""
    content = Path(ziglang.__file__).with_name("zig").read_bytes()
    place = content.index(b"\x12v_accvgpr_read_b32")
    part = content[place - _WINDOW : place + _WINDOW]
    found = _KINDS.finditer(part)
    return tuple(sorted({m[0].decode() for m in found if part[m.start() - 1] == len(m[0])}))


def opcodes(chip: Architecture) -> list[str]:
    """Those of a chip that compute, by mnemonics without the name of an encoding."""
    names = [name for name in mnemonics() if not _GRAPHICS.match(name)]
    lacking = _lacking(names, chip.name)
    known = executed(chip)
    found = {base_name(name) for name in names if name not in lacking}
    other = {name for name in found - known if _OTHER_SPELLING.fullmatch(name)}
    return sorted(found - other - set(_PART_OF_ANOTHER))


def executed(chip: Architecture) -> set[str]:
    """The mnemonics of a chip that the emulator executes."""
    rows = (row for same in rows_of(chip.family).values() for row in same)
    return {base_name(row.name) for row in rows} - set(_TABLE_ONLY)


def _lacking(names: Sequence[str], arch: str) -> set[str]:
    """The mnemonics that a chip does not have; of others the assembler misses operands."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "names.s")
        source.write_text("".join(f"{name}\n" for name in names))
        command = [
            sys.executable, "-m", "ziglang", "cc", "-target", "amdgcn-amdhsa-none",
            f"-mcpu={arch}", "-c", str(source), "-o", str(source.with_suffix(".o")),
        ]  # fmt: skip
        said = subprocess.run(command, capture_output=True, text=True, check=False).stderr
    answers = re.findall(r"names\.s:(\d+):\d+: error: (.*)", said)
    return {
        names[int(line) - 1]
        for line, message in answers
        if "not supported" in message or "invalid instruction" in message
    }


def missing(chip: Architecture) -> list[str]:
    """The opcodes of a chip that the emulator does not execute."""
    known = executed(chip)
    return [name for name in opcodes(chip) if name not in known]


def counts(chip: Architecture) -> str:
    """The line of a chip in the table of the page."""
    total, not_executed = len(opcodes(chip)), len(missing(chip))
    share = 100 * (total - not_executed) / total
    return f"| {chip.name} | {total} | {total - not_executed} | {share:.1f} % |"


def reason_of(name: str) -> str:
    """Why an opcode is not executed."""
    return next((why for pattern, why in REASONS.items() if re.match(pattern, name)), "")


def main() -> None:
    chips = list(ARCHITECTURES.values())
    lacking = {chip.name: missing(chip) for chip in chips}
    lines: dict[tuple[str, str], list[str]] = {}
    for name in sorted({name for names in lacking.values() for name in names}):
        where = ", ".join(chip for chip, names in lacking.items() if name in names)
        lines.setdefault((reason_of(name), where), []).append(f"`{name}`")
    rows = [f"| {', '.join(names)} | {chips} | {why} |" for (why, chips), names in lines.items()]
    PAGE.write_text(
        "# Opcodes\n\n"
        "This page counts the opcodes of each chip that the emulator executes, and lists the\n"
        "others. `python -m scripts.opcodes` writes it. The opcodes are those of LLVM's\n"
        "assembler, without graphics (interpolation, exports, global wave sync).\n\n"
        "| chip | opcodes | executed | share |\n| --- | --- | --- | --- |\n"
        + "".join(f"{counts(chip)}\n" for chip in chips)
        + "\nNot executed, and refused with the line where they stand:\n\n"
        "| opcodes | chips | why |\n| --- | --- | --- |\n" + "".join(f"{row}\n" for row in rows)
    )


if __name__ == "__main__":
    main()

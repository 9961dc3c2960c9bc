"""Text of any kind that LLVM's assembler takes, to a program.

What compilers write, and plain code by hand, is read as it stands. Macros, symbols, expressions,
conditions, data and addresses of code are LLVM's to understand: it assembles the text, the object
is read, and each instruction gets the line of the text that it comes from.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from io import BytesIO
from pathlib import Path

from elftools.common.exceptions import DWARFError, ELFError
from elftools.elf.elffile import ELFFile

from mfmadsl.emulator.code_object.error import CodeObjectError
from mfmadsl.emulator.code_object.read import read_code_object
from mfmadsl.emulator.error import EmulationError
from mfmadsl.emulator.text.assembly import Program, parse_assembly
from mfmadsl.emulator.text.data import CODE
from mfmadsl.emulator.text.registers import target_of
from mfmadsl.emulator.text.source_lines import source_lines
from mfmadsl.environment.assembler import find_assembler
from mfmadsl.environment.linker import find_linker
from mfmadsl.model import ARCHITECTURES, DEFAULT_ARCH

_OF_LLVM = r"num_\w+|numbered_sgpr|private_seg_size|uses_\w+|has_\w+"
"""The ends of symbols that LLVM itself sets, to say what kernels use."""
_NEEDS_ASSEMBLER = re.compile(
    r"/\*"
    r"|^[ \t]*\.(?:macro|rept|irpc?|if\w*|include|incbin|equ|equiv|eqv|altmacro)\b.*"
    rf"|^[ \t]*\.set[ \t]+(?!amdgpu\.|\S+\.(?:{_OF_LLVM}),).*"
    r"|^[ \t]*[A-Za-z_.$][\w.$]*[ \t]*=[^=].*"
    r"|^[ \t]*\d+:.*",  # a label that may be there several times
    re.MULTILINE,
)
_EXPRESSION = re.compile(r"[\w)]\s*(?:<<|>>|[-+*/%&^|])\s*[\w(]|[~!(]\s*\w")
_ADDRESSES = ("s_getpc_b64", "s_setpc_b64", "s_swappc_b64", "s_call_b64")
_DEBUG = re.compile(r"^[ \t]*\.(?:file|loc|cfi_\w+)\b.*$", re.MULTILINE)
_REFUSAL = re.compile(r"^[^\n]*?:(\d+):(\d+): error: (.*)$", re.MULTILINE)
_PLACE = re.compile(r"^[^\n]*?kernel\.s:(\d+):\d+: (?:error|note)", re.MULTILINE)
_READS_FILE = re.compile(
    r"\.inc(?:lude|bin)\b"
    r"|(?:^|:)[ \t]*\.(?!L)\w*\\",  # a directive whose name a macro makes may be one of these
    re.MULTILINE | re.IGNORECASE,
)
_SECONDS = 60


def read_program(text: str, kernel: str | None = None) -> Program:
    """The program of one kernel of a text; `kernel` says which, where it holds several.

    Raises EmulationError if there is no such kernel, a line cannot be read, or LLVM's assembler is
    needed and not found.
    """
    if found := _NEEDS_ASSEMBLER.search(text):
        line = text.count("\n", 0, found.start()) + 1
        return _assembled(text, kernel, line)
    try:
        program = parse_assembly(text, kernel)
    except EmulationError as error:
        written = error.fault.instruction
        if written is None or error.line is None or not _EXPRESSION.search(written):
            raise
        return _assembled(text, kernel, error.line)
    for each in program.instructions:
        if each.name in _ADDRESSES and each.address is None:
            return _assembled(text, kernel, each.line)
    return program


@lru_cache(maxsize=8)
def _assembled(text: str, kernel: str | None, line: int) -> Program:
    """The program as LLVM assembles it; `line` is one that only LLVM understands."""
    arch, features = target_of(text)
    if arch not in ARCHITECTURES:
        raise EmulationError(
            "LLVM's assembler is needed for this, and has to know the chip: name it by "
            f'`.amdgcn_target "amdgcn-amd-amdhsa--{DEFAULT_ARCH}"`, for example',
            line, _line_of(text, line),
        )  # fmt: skip
    if found := _READS_FILE.search(text):
        line = text.count("\n", 0, found.end()) + 1
        message = "may read another file: write what it has into the text"
        raise EmulationError(message, line, _line_of(text, line))
    data = _object(text, arch + features, line)
    try:
        code_object = read_code_object(data)
        names = list(code_object.kernels)
        if kernel is None and len(names) > 1:
            raise EmulationError(f"the text holds several kernels, name one: {', '.join(names)}")
        if not names:
            raise EmulationError("the text holds no kernel: its metadata describes none")
        program = parse_assembly(code_object.assembly(kernel or names[0], addressed=True))
    except CodeObjectError as error:
        raise EmulationError(f"as LLVM assembles it: {error}") from None
    lines = _lines(data)
    return replace(
        program,
        instructions=tuple(
            replace(each, line=lines.get(each.address or 0, 0)) for each in program.instructions
        ),
        sources=source_lines(text.splitlines()),
    )


def _object(text: str, target: str, line: int) -> bytes:
    """The code object of a text. Raises EmulationError with what LLVM says is wrong."""
    assembler, linker = find_assembler(), find_linker()
    if assembler is None or linker is None:
        raise EmulationError(
            "LLVM's assembler is needed for this, and there is none: pip install ziglang",
            line, _line_of(text, line),
        )  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="mfmadsl-") as folder:
        source, assembled, linked = (Path(folder, f"kernel.{end}") for end in ("s", "o", "hsaco"))
        source.write_text(_DEBUG.sub("", text))
        said = _run(
            *assembler, "-x", "assembler", "-g", "-target", "amdgcn-amd-amdhsa",
            f"-mcpu={target}", "-c", str(source), "-o", str(assembled),
        )  # fmt: skip
        if said is not None:
            raise _refusal(text, said)
        said = _run(*linker, "-shared", "--no-undefined", str(assembled), "-o", str(linked))
        if said is not None:
            raise EmulationError(f"LLVM's linker says: {said.splitlines()[0]}")
        return linked.read_bytes()


def _run(*command: str) -> str | None:
    """What a command says that fails; None of one that does not."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_SECONDS
        )
    except subprocess.TimeoutExpired:
        return f"it takes longer than {_SECONDS} seconds"
    return (done.stderr.strip() or f"exit status {done.returncode}") if done.returncode else None


def _refusal(text: str, said: str) -> EmulationError:
    """LLVM's first message, at the line of the text, and its column."""
    found = _REFUSAL.search(said)
    if found is None:
        return EmulationError(f"LLVM's assembler says: {said.splitlines()[0]}")
    place = _PLACE.search(said, found.start())  # of what is in a macro, the use of it
    line = int((place or found)[1])
    message = f"LLVM's assembler says, at column {found[2]}: {found[3]}"
    return EmulationError(message, line, _line_of(text, line))


def _line_of(text: str, line: int) -> str:
    lines = text.splitlines()
    return " ".join(lines[line - 1].split()) if 0 < line <= len(lines) else ""


def _lines(data: bytes) -> Mapping[int, int]:
    """The line of each instruction by its address; of what a macro makes, that of its use."""
    found = {}
    try:
        debug = ELFFile(BytesIO(data)).get_dwarf_info()
        for unit in debug.iter_CUs():
            program = debug.line_program_for_CU(unit)
            for entry in program.get_entries() if program is not None else ():
                if entry.state is not None and not entry.state.end_sequence:
                    found[CODE + entry.state.address] = entry.state.line
    except (DWARFError, ELFError) as error:
        raise EmulationError(f"the lines of the assembled text cannot be read: {error}") from None
    return found

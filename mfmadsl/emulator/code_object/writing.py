"""One kernel of a code object, written as LLVM's assembly text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from mfmadsl.emulator.code_object.descriptor import USUAL
from mfmadsl.emulator.code_object.disassemble import Decoded, disassemble
from mfmadsl.emulator.code_object.error import CodeObjectError
from mfmadsl.emulator.code_object.notes import as_yaml
from mfmadsl.emulator.code_object.section import ElfSection
from mfmadsl.emulator.code_object.source_lines import SourceLine, SourceLines
from mfmadsl.emulator.text import long_branch
from mfmadsl.emulator.text.data import data_text
from mfmadsl.emulator.text.source_lines import file_directive
from mfmadsl.model import Architecture

_TRIPLE = "amdgcn-amd-amdhsa-"
_JUMPS = ("s_setpc_b64", "s_swappc_b64", "s_call_b64")
_ASKS = "s_getpc_b64"
NO_SOURCES = SourceLines()


@dataclass(frozen=True)
class Code:
    """Machine code, and where it lies. Of code that is not `sized` nobody says how long it is: more
    may follow, that is no code."""

    address: int
    content: bytes
    sized: bool = True


def assembly_text(
    target: str,
    version: int,
    name: str,
    metadata: Mapping[str, Any],
    directives: Mapping[str, int],
    code: Code,
    chip: Architecture,
    functions: tuple[Code, ...] = (),
    sections: tuple[ElfSection, ...] = (),
    addressed: bool = False,
    sources: SourceLines = NO_SOURCES,
) -> str:
    """The text of a kernel and, where it computes an address, of the functions that it may call and
    of the data that it may reach. With `addressed` it tells in any case where instructions lie.

    Raises CodeObjectError for code that cannot be told as text.
    """
    try:
        instructions, reaches = _instructions(code, chip, functions, addressed, sources)
    except CodeObjectError as error:
        raise CodeObjectError(f"kernel `{name}`: {error}") from None
    lines = [
        f"\t\t.amdhsa_{key} {value}"
        for key, value in directives.items()
        # Some are of certain chips only: none is written that says nothing.
        if value or key in USUAL
    ]
    end = f".L{name}_end"
    return "\n".join([
        f'\t.amdgcn_target "{_TRIPLE}-{target}"',
        f"\t.amdhsa_code_object_version {version}",
        "\t.text",
        f"\t.globl\t{name}",
        "\t.p2align\t8",
        f"\t.type\t{name},@function",
        f"{name}:",
        instructions,
        f"{end}:",
        f"\t.size\t{name}, {end}-{name}",
        '\t.section\t.rodata,"a",@progbits',
        "\t.p2align\t6",
        f"\t.amdhsa_kernel {name}",
        *lines,
        "\t.end_amdhsa_kernel",
        "\t.amdgpu_metadata",
        f"{as_yaml(metadata, version)}\t.end_amdgpu_metadata",
        *(_data(section) for section in sections if reaches),
        "",
    ])  # fmt: skip


def _data(section: ElfSection) -> str:
    return data_text(
        section.name, section.address, section.content, section.is_writable, section.is_code
    )


@lru_cache(maxsize=64)
def _instructions(
    code: Code,
    chip: Architecture,
    functions: tuple[Code, ...],
    addressed: bool,
    sources: SourceLines,
) -> tuple[str, bool]:
    """The instructions of a kernel, with labels where branches lead, and whether it computes an
    address: then each has its own behind it, as it has if `addressed`, and what it may call
    follows.
    """
    decoded = tuple(_with_long_branches(code, chip))
    names = {each.name for each in decoded}
    if not names & {_ASKS, *_JUMPS}:
        return _written(code, decoded, ".LBB", addressed, sources), False
    texts = [_written(code, decoded, ".LBB", True, sources)]
    for number, function in enumerate(functions):
        try:
            called = tuple(_with_long_branches(function, chip))
            texts.append(_written(function, called, f".LF{number}", True, sources))
        except CodeObjectError as error:  # told where a jump leads there
            texts.append(f"; {function.address:012X}: {error}")
    return "\n".join(texts), True


def _written(
    code: Code, decoded: Sequence[Decoded], label: str, addressed: bool, sources: SourceLines
) -> str:
    labels = {d.target: f"{label}_{d.target:x}" for d in decoded if d.target is not None}
    strays = labels.keys() - {d.offset for d in decoded}
    if strays:
        raise CodeObjectError(f"a branch leads into an instruction, to byte {min(strays)}")
    lines: list[str] = []
    files: dict[str, int] = {}
    last = None
    for d in decoded:
        if d.offset in labels:
            lines.append(f"{labels[d.offset]}:")
        source = sources.at(code.address + d.offset)
        if sources.lines and (place := source and (source.file, source.line)) != last:
            lines += _comes_from(source, files)
            last = place
        separator = "," if d.name == "s_call_b64" else ""
        text = d.text if d.target is None else f"{d.text}{separator} {labels[d.target]}"
        lines.append(f"\t{text}{_place(code, d) if addressed else ''}")
    return "\n".join(lines)


def _comes_from(source: SourceLine | None, files: dict[str, int]) -> list[str]:
    """The directives that say of which line of the source the next instructions are."""
    if source is None:
        return ["\t.loc\t1 0"]
    named = source.file in files
    number = files.setdefault(source.file, len(files) + 1)
    place = f"\t.loc\t{number} {source.line}"
    return [place] if named else [file_directive(number, source.file), place]


def _place(code: Code, one: Decoded) -> str:
    """Where an instruction lies, and its words, as llvm-objdump writes it."""
    content = code.content[one.offset : one.offset + one.size]
    words = [content[i : i + 4][::-1].hex().upper() for i in range(0, len(content), 4)]
    return f" // {code.address + one.offset:012X}: {' '.join(words)}"


def _with_long_branches(code: Code, chip: Architecture) -> Iterator[Decoded]:
    """The instructions, with `s_branch` for each long branch within the code."""
    decoded, at = disassemble(code.content, chip, code.sized), 0
    begins = {each.offset for each in decoded}
    while at < len(decoded):
        first, run = decoded[at], decoded[at : at + long_branch.LENGTH]
        away = None
        if first.name == _ASKS:
            away = long_branch.distance([each.text for each in run])
        if away is None or (target := first.offset + first.size + away) not in begins:
            yield first
            at += 1
        else:
            size = sum(each.size for each in run)
            yield Decoded(first.offset, size, "s_branch", "s_branch", target)
            at += len(run)

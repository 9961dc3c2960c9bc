"""One kernel of a code object, written as LLVM's assembly text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from mfmadsl.emulator.code_object.descriptor import USUAL
from mfmadsl.emulator.code_object.disassemble import Decoded, disassemble
from mfmadsl.emulator.code_object.error import CodeObjectError
from mfmadsl.emulator.code_object.notes import as_yaml
from mfmadsl.emulator.text import long_branch
from mfmadsl.model import Architecture

_TRIPLE = "amdgcn-amd-amdhsa-"
_ELSEWHERE = {
    "s_getpc_b64": "asks where it lies itself, to reach constants, globals or functions from there",
    "s_swappc_b64": "calls a function",
    "s_setpc_b64": "jumps to an address that it computes",
    "s_call_b64": "calls a function",
}
"""Instructions after which the code is not what stands between two labels."""


def assembly_text(
    target: str,
    version: int,
    name: str,
    metadata: Mapping[str, Any],
    directives: Mapping[str, int],
    code: bytes,
    chip: Architecture,
    sized: bool = True,
) -> str:
    """The text of a kernel. Raises CodeObjectError for code that cannot be told as text."""
    try:
        instructions = _instructions(code, chip, sized)
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
        "",
    ])  # fmt: skip


@lru_cache(maxsize=64)
def _instructions(code: bytes, chip: Architecture, sized: bool) -> str:
    """The instructions, with labels where branches lead."""
    decoded = tuple(_with_long_branches(code, chip, sized))
    _check_stays(decoded)
    labels = {d.target: f".LBB_{d.target:x}" for d in decoded if d.target is not None}
    strays = labels.keys() - {d.offset for d in decoded}
    if strays:
        raise CodeObjectError(f"a branch leads into an instruction, to byte {min(strays)}")
    lines = []
    for d in decoded:
        if d.offset in labels:
            lines.append(f"{labels[d.offset]}:")
        lines.append(f"\t{d.text}" if d.target is None else f"\t{d.text} {labels[d.target]}")
    return "\n".join(lines)


def _with_long_branches(code: bytes, chip: Architecture, sized: bool) -> Iterator[Decoded]:
    """The instructions, with `s_branch` for each long branch within the code."""
    decoded, at = disassemble(code, chip, sized), 0
    while at < len(decoded):
        first, run = decoded[at], decoded[at : at + long_branch.LENGTH]
        away = None
        if first.name == "s_getpc_b64":
            away = long_branch.distance([each.text for each in run])
        if away is None or not 0 <= (target := first.offset + first.size + away) < len(code):
            yield first
            at += 1
        else:
            size = sum(each.size for each in run)
            yield Decoded(first.offset, size, "s_branch", "s_branch", target)
            at += len(run)


def _check_stays(decoded: tuple[Decoded, ...]) -> None:
    for d in decoded:
        if d.name in _ELSEWHERE:
            raise CodeObjectError(
                f"byte {d.offset} of the code, `{d.text}`: it {_ELSEWHERE[d.name]}, which is not "
                "emulated: compile with everything inlined, and constants as arguments"
            )

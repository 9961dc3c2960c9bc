"""Assembly text in LLVM's syntax to a program: instructions, labels and launch facts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from mfmadsl.emulator.error import EmulationError, OperandError
from mfmadsl.emulator.text.data import CODE, DataSection, data_of
from mfmadsl.emulator.text.long_branch import with_long_branches
from mfmadsl.emulator.text.metadata import KernelArgument, read_metadata
from mfmadsl.emulator.text.operand import LAST_SCALAR, Operand, parse_integer, parse_operand
from mfmadsl.emulator.text.registers import (
    Registers,
    asked_scalar_registers,
    asked_vector_registers,
    target_of,
    used_registers,
)
from mfmadsl.emulator.text.source_lines import source_lines
from mfmadsl.model import assumed

_LABEL = re.compile(r"[.\w$@]+:")
_DIRECTIVE = re.compile(r"\.amdhsa_(\w+) (-?(?:0x[0-9a-fA-F]{1,16}|0|[1-9]\d{0,18}))")
_NUMBER = re.compile(r"0x[0-9a-fA-F]+|0|[1-9]\d*")
_LONGEST_LINE = 1000  # characters; LLVM's longest have some hundred
_ARGUMENTS = {  # of instructions whose operand is no register and no constant like others
    "s_waitcnt": re.compile(r"(?:(?:vmcnt|lgkmcnt|expcnt)\(\d+\)[ &]*)+|" + _NUMBER.pattern),
    **dict.fromkeys(("s_nop", "s_sleep", "s_setprio"), _NUMBER),
    "s_sendmsg": re.compile(r"sendmsg\([\w, ]+\)|" + _NUMBER.pattern),
}
_NO_OPERAND = re.compile(r"(hwreg|gpr_idx)\([^)]*\)")  # of s_setreg, s_getreg, s_set_gpr_idx
_PLACE = re.compile(r"//\s*([0-9A-Fa-f]{8,16}):((?:\s+[0-9A-Fa-f]{8}){1,5})\s*")
"""Where code lies and what its words are, as llvm-objdump writes it behind an instruction."""
_UNREAD = re.compile(r"; ([0-9A-F]{12}): (.+)")
"""A function that is not known in full: where it lies, and why."""
_MODIFIER = re.compile(r"\s([a-z]\w*):(\[[^\]]*\]|\w+\([^)]*\)|[^\s,]+)")


@dataclass(frozen=True)
class Instruction:
    """One line: `name` as written, operands left to right, `key:value` modifiers and flags.

    `address` is where it lies, and `size` how many bytes it has, where a comment tells it.
    """

    name: str
    operands: tuple[Operand, ...]
    modifiers: Mapping[str, str]
    line: int
    text: str
    address: int | None = None
    size: int = 0

    def taking(self, *counts: int) -> list[Operand]:
        """The operands, if there are as many as one of `counts` says. Raises OperandError else."""
        if len(self.operands) not in counts:
            expected = " or ".join(map(str, counts))
            raise OperandError(f"it takes {expected} operands, not {len(self.operands)}")
        return list(self.operands)

    def number(self, key: str, bits: int = 16) -> int:
        """The value of a modifier such as `offset:16`, of up to so many bits; without it, 0.

        Raises OperandError for any other value.
        """
        text = self.modifiers.get(key, "0")
        value = parse_integer(text)
        if value is None or not 0 <= value < 1 << bits:
            raise OperandError(f"{key} is a number of {bits} bits, not {text}")
        return value

    def signed_number(self, key: str) -> int:
        """The value of a modifier that may be negative; without it, 0.

        Raises OperandError for what is no number.
        """
        text = self.modifiers.get(key, "0")
        value = parse_integer(text)
        if value is None:
            raise OperandError(f"{key} is a number, not {text}")
        return value

    def flags(self, key: str, count: int, default: int = 0) -> list[int]:
        """So many bits of a modifier such as `op_sel:[0,1]`. Raises OperandError for others."""
        flags = self.written_flags(key)
        if flags is None:
            return [default] * count
        if len(flags) != count:
            raise OperandError(f"{key} has {count} flags, not {len(flags)}")
        return flags

    def written_flags(self, key: str) -> list[int] | None:
        """The bits of a modifier, as many as there are; None without it.

        Raises OperandError for what are no bits.
        """
        text = self.modifiers.get(key)
        if text is None:
            return None
        flags = [flag.strip() for flag in text.strip("[]").split(",")]
        if set(flags) - {"0", "1"}:
            raise OperandError(f"the flags of {key} are 0 or 1, not {text}")
        return [int(flag) for flag in flags]


@dataclass(frozen=True)
class Program:
    """One kernel. `entry` and the values of `labels` and `addresses` index `instructions`.

    `registers` are those that it uses. `workgroup_size` is in threads, where the metadata requires
    one, and `most_threads` the largest that it allows. `data` is what it reaches by addresses,
    and `unread` has functions with what is not known, and why. `counted_scalars` are the scalar
    registers that the metadata counts, VCC among them. `retries` says that the chip is one that
    executes memory instructions again after a page fault (`:xnack+`). `sources` has `file:line` of
    the source for lines of the text.
    """

    name: str
    arch: str
    entry: int
    instructions: tuple[Instruction, ...]
    labels: Mapping[str, int]
    directives: Mapping[str, int] = field(default_factory=dict)
    arguments: tuple[KernelArgument, ...] = ()
    registers: Registers = field(default_factory=lambda: Registers(0, 0, 0, 0, 0))
    addresses: Mapping[int, int] = field(default_factory=dict)
    workgroup_size: tuple[int, ...] | None = None
    most_threads: int | None = None
    data: tuple[DataSection, ...] = ()
    unread: Mapping[int, str] = field(default_factory=dict)
    counted_scalars: int = 0
    retries: bool = False
    sources: Mapping[int, str] = field(default_factory=dict)
    kept: dict[object, Any] = field(default_factory=dict, init=False, compare=False, repr=False)
    """What whoever runs it has made of it, for the next time."""

    @cached_property
    def scalar_registers(self) -> int:
        """How many scalar registers it asks for, VCC and the like not among them; all, where
        the text does not say it."""
        if "next_free_sgpr" not in self.directives:
            return LAST_SCALAR + 1
        if self.addresses:  # of machine code, which only says granules of them, with VCC
            return asked_scalar_registers(self.directives)
        return max(self.directive("next_free_sgpr"), self.counted_scalars)

    def directive(self, name: str) -> int:
        """The value of `.amdhsa_NAME`; 0, its default, where the text does not say it."""
        return self.directives.get(name, 0)


def moved(program: Program, by: int) -> Program:
    """The program with its code and data so many bytes on; what addresses data holds stay."""
    return replace(
        program,
        instructions=tuple(
            each if each.address is None else replace(each, address=each.address + by)
            for each in program.instructions
        ),
        addresses={address + by: place for address, place in program.addresses.items()},
        data=tuple(replace(each, address=each.address + by) for each in program.data),
        unread={address + by: why for address, why in program.unread.items()},
    )


def parse_assembly(text: str, kernel: str | None = None) -> Program:
    """The program of one kernel; `kernel` says which, where the text holds several.

    Raises EmulationError if there is no such kernel or a line cannot be read.
    """
    lines = text.splitlines()
    directives = _directives(lines)
    if not directives:
        raise EmulationError("the text holds no kernel: there is no `.amdhsa_kernel`")
    if kernel is None and len(directives) > 1:
        raise EmulationError(f"the text holds several kernels, name one: {', '.join(directives)}")
    name = kernel or next(iter(directives))
    if name not in directives:
        raise EmulationError(f"there is no kernel `{name}`, but: {', '.join(directives)}")
    instructions, labels = _instructions(lines)
    if name not in labels:
        raise EmulationError(f"kernel `{name}` has no code")
    arch, features = target_of(text)
    metadata = read_metadata(text, name)
    registers = used_registers(text, name, metadata.counts, directives[name])
    return Program(
        name=name,
        arch=arch,
        entry=labels[name],
        instructions=instructions,
        labels=labels,
        directives={
            "reserve_xnack_mask": int(":xnack-" not in features),
            **_counted(metadata.counts, registers, arch),
            **directives[name],
        },
        arguments=metadata.arguments,
        registers=registers,
        addresses={
            each.address: place
            for place, each in enumerate(instructions)
            if each.address is not None
        },
        workgroup_size=metadata.workgroup_size,
        retries=":xnack+" in features,
        sources=source_lines(lines) if ".loc" in text else {},
        most_threads=metadata.counts.get("max_flat_workgroup_size"),
        counted_scalars=metadata.counts.get("sgpr_count", 0),
        data=data_of(lines),
        unread={
            CODE + int(found[1], 16): found[2]
            for line in lines
            if line[:1] == ";" and (found := _UNREAD.fullmatch(line))
        },
    )


def _counted(counts: Mapping[str, int], registers: Registers, arch: str) -> dict[str, int]:
    """What directives say by symbols, where the linker counts for them, in numbers."""
    sizes = ("group_segment_fixed_size", "private_segment_fixed_size")
    found = {name: counts[name] for name in sizes if name in counts}
    if "vgpr_count" in counts:
        found["next_free_vgpr"] = asked_vector_registers({}, registers, arch)
        if registers.accumulation and not assumed(arch).separate_files:
            found["accum_offset"] = found["next_free_vgpr"] - registers.accumulation
    return found


def _directives(lines: list[str]) -> dict[str, dict[str, int]]:
    kernels: dict[str, dict[str, int]] = {}
    current: dict[str, int] | None = None
    for line in lines:
        words = line.split(";")[0].split()
        if not words:
            continue
        if words[0] == ".amdhsa_kernel":
            current = kernels.setdefault(words[-1], {})
        elif words[0] == ".end_amdhsa_kernel":
            current = None
        elif current is not None and (found := _DIRECTIVE.fullmatch(" ".join(words))):
            current[found[1]] = int(found[2], 0)
    return kernels


def _instructions(lines: list[str]) -> tuple[tuple[Instruction, ...], dict[str, int]]:
    codes, labels = lines_of_code(lines)
    instructions = (_placed(parse_instruction(code, n), lines[n - 1]) for n, code in codes)
    return tuple(instructions), labels


def lines_of_code(lines: list[str]) -> tuple[list[tuple[int, str]], dict[str, int]]:
    """The instructions, each with the number of its line, and the places of labels among them."""
    instructions: list[tuple[int, str]] = []
    labels: dict[str, int] = {}
    for number, code in with_long_branches(list(_labels_and_code(lines))):
        if _is_label(code):
            labels[code[:-1]] = len(instructions)
        else:
            instructions.append((number, code))
    return instructions, labels


def _placed(instruction: Instruction, line: str) -> Instruction:
    """The instruction with the place that a comment of its line tells."""
    found = _PLACE.search(line) if "//" in line else None
    if found is None:
        return instruction
    return replace(instruction, address=CODE + int(found[1], 16), size=4 * len(found[2].split()))


def _labels_and_code(lines: list[str]) -> Iterator[tuple[int, str]]:
    """The labels and the instructions, each with the number of its line."""
    in_metadata = False
    for number, line in enumerate(lines, start=1):
        code = code_of(line)
        if code in (".amdgpu_metadata", ".end_amdgpu_metadata"):
            in_metadata = code == ".amdgpu_metadata"
        if not in_metadata and code and (not code.startswith(".") or _is_label(code)):
            yield number, code


def _is_label(code: str) -> bool:
    """Whether a line, without its comment, is a label."""
    return code.endswith(":") and _LABEL.fullmatch(code) is not None


def parse_instruction(code: str, number: int = 0) -> Instruction:
    """One instruction; `number` is its line in error messages."""
    if len(code) > _LONGEST_LINE:
        message = f"a line of {len(code)} characters is no instruction"
        raise EmulationError(message, number, code[:60] + "...")
    name, _, rest = code.partition(" ") if " " in code else code.partition("\t")
    name, rest = name.strip(), rest.strip()
    if name in _ARGUMENTS:
        if not _ARGUMENTS[name].fullmatch(rest):
            raise EmulationError("cannot read the operands", number, code)
        return Instruction(name, (), {"argument": rest}, number, code)
    modifiers: dict[str, str] = dict(_MODIFIER.findall(rest))
    rest = _MODIFIER.sub("", rest)
    if special := _NO_OPERAND.search(rest):
        modifiers[special[1]] = special[0]
        rest = rest.replace(special[0], "").strip(" ,")
    operands: list[Operand] = []
    pieces = [piece.strip() for piece in re.split(r",(?![^\[]*\])", rest)]
    for position, piece in enumerate(pieces):
        words = piece.split()
        if position < len(pieces) - 1 and len(words) != 1:
            raise EmulationError("cannot read the operands", number, code)
        if words:
            try:
                operands.append(parse_operand(words[0]))
            except EmulationError as error:
                raise EmulationError(str(error), number, code) from None
        modifiers |= dict.fromkeys(words[1:], "1")
    return Instruction(name, tuple(operands), modifiers, number, code)


def code_of(line: str) -> str:
    """A line without its comment."""
    return line.split(";", maxsplit=1)[0].split("//", maxsplit=1)[0].strip()

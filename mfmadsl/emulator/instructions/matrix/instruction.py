"""A line of assembly to a matrix instruction, by the ISA manuals and by nothing else here."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mfmadsl.emulator.instructions.matrix.arithmetic import Arithmetic, arithmetic
from mfmadsl.emulator.instructions.matrix.formats import format_of
from mfmadsl.emulator.instructions.matrix.isa import MatrixTile, tiles_of
from mfmadsl.emulator.instructions.matrix.layout import source_blocks, source_lanes
from mfmadsl.emulator.machine.mode import Machine
from mfmadsl.emulator.machine.operation import OperandRead, Operation, reads_of
from mfmadsl.emulator.text.assembly import Instruction
from mfmadsl.emulator.text.operand import AssemblySymbol, Literal, Operand, Register, as_register
from mfmadsl.model import assumed

if TYPE_CHECKING:
    from mfmadsl.emulator.instructions.matrix.execute import Matrix

_MNEMONIC = re.compile(
    r"v_(?P<form>mfma|smfmac|mfma_scale)_(?P<out>f32|i32|f64)_(?P<m>\d+)x(?P<n>\d+)x(?P<k>\d+)"
    r"(?:_(?P<blocks>\d+)b)?_?(?P<types>f8f6f4|[a-z]+\d+(?:_[a-z]+\d+|_1k)?)(?:_e64)?"
)
_FORMATS = ("fp8", "bf8", "fp6", "bf6", "fp4")  # of f8f6f4, by cbsz for A and blgp for B
_MODIFIERS = {
    "mfma": {"cbsz", "abid", "blgp", "neg"},
    "smfmac": {"cbsz", "abid"},
    "mfma_scale": {"cbsz", "blgp", "op_sel", "op_sel_hi"},
}
_NUMBERS = {"cbsz": 3, "abid": 4, "blgp": 3}  # the bits of each
_OPERANDS = {"mfma": 4, "smfmac": 4, "mfma_scale": 6}


@dataclass(frozen=True)
class _Name:
    """What a mnemonic says; `types` are those of A and B, as it spells them."""

    form: str
    out: str
    m: int
    n: int
    k: int
    types: str
    stated_blocks: int | None

    @property
    def kinds(self) -> tuple[str, str]:
        """The types of A and B, unless modifiers choose them."""
        first, second, *_ = self.types.removesuffix("_1k").split("_") * 2
        return first, second

    def tile(self, arch: str) -> MatrixTile | None:
        """What the chip's manual says of the instruction; None if the chip has no such one."""
        tile = tiles_of(arch, self.form, self.out, self.types).get((self.m, self.n, self.k))
        return tile if tile and self.stated_blocks in (None, tile.shape.blocks) else None

    def arithmetic(self, arch: str) -> Arithmetic:
        # CDNA2 has both instructions for bf16; later chips have the second under both names.
        both = assumed(arch).family == "CDNA2" and self.types.endswith("_1k")
        kind = self.types if both else self.kinds[0]
        return arithmetic(arch, self.form == "mfma", kind)


def _parse(mnemonic: str) -> _Name | None:
    match = _MNEMONIC.fullmatch(mnemonic)
    if match is None:
        return None
    m, n, k = (int(match[d]) for d in ("m", "n", "k"))
    blocks = match["blocks"]
    return _Name(
        match["form"], match["out"], m, n, k, match["types"], int(blocks) if blocks else None
    )


def is_modelled(mnemonic: str, arch: str) -> bool:
    """Whether the emulator gives a chip's very bits; of other than matrix instructions, True."""
    name = _parse(mnemonic)
    return name is None or name.arithmetic(arch).known


@dataclass(frozen=True)
class MatrixWork:
    """What a wave's instruction multiplies: the wider type of A and B, all multiply-adds, and those
    of elements that a sparse A stores."""

    kind: str
    multiply_adds: int
    stored: int


def work_of(instruction: Instruction, arch: str) -> MatrixWork | None:
    """What a matrix instruction multiplies; None of other ones."""
    name = _parse(instruction.name)
    tile = name.tile(arch) if name else None
    if name is None or tile is None:
        return None
    kinds: Sequence[str] = name.kinds
    if kinds[0] == "f8f6f4":
        chosen = (instruction.number(each, _NUMBERS[each]) for each in ("cbsz", "blgp"))
        kinds = [_FORMATS[number] for number in chosen if number < len(_FORMATS)]
    widest = max(kinds, key=lambda kind: int(re.sub(r"\D", "", kind)))
    whole = tile.shape.m * tile.shape.n * tile.shape.k * tile.shape.blocks
    return MatrixWork(widest, whole, whole // 2 if name.form == "smfmac" else whole)


def compile_matrix(instruction: Instruction, machine: Machine) -> Operation | None:
    """What a matrix instruction does on a chip, or None if it is not one that is known."""
    if instruction.name in machine.described:
        from mfmadsl.emulator.instructions.matrix.described import compile_described

        return compile_described(instruction, machine)
    found = matrix_of(instruction, machine)
    if found is None:
        return None
    from mfmadsl.emulator.instructions.matrix.execute import execute

    matrix, passes, reads = found
    return Operation(
        lambda waves: execute(waves, matrix), "matrix", reads, (matrix.d,), whole_wave=True,
        slots=passes,
    )  # fmt: skip


def matrix_of(
    instruction: Instruction, machine: Machine
) -> tuple[Matrix, int, tuple[OperandRead, ...]] | None:
    """A matrix instruction of a chip, the passes that it takes, and what it reads; None if it is
    not one that is known."""
    name = _parse(instruction.name)
    if name is None or not _is_written_right(name, instruction, machine.arch):
        return None
    tile = name.tile(machine.arch)
    if tile is None:
        return None
    shape, passes, blocks = tile.shape, tile.passes, tile.shape.blocks
    cbsz, abid, blgp = (instruction.number(x, bits) for x, bits in _NUMBERS.items())
    kinds = name.kinds
    if kinds[0] == "f8f6f4":
        if max(cbsz, blgp) >= len(_FORMATS):
            return None
        kinds, cbsz, blgp = (_FORMATS[cbsz], _FORMATS[blgp]), 0, 0
        passes *= 2 if {"fp8", "bf8"} & set(kinds) else 1
    sparse = name.form == "smfmac"
    if blgp and name.out == "f64":
        return None  # of f64 the bits of blgp are written `neg`
    if not sparse and (1 << cbsz > blocks or abid >= 1 << cbsz):
        return None  # there are not so many blocks to choose from
    # The code for the host needs LLVM, whose import other kernels need not wait for.
    from mfmadsl.emulator.instructions.matrix.execute import Factor, Matrix

    d, a, b = map(as_register, instruction.operands[:3])
    more = [
        operand for operand in instruction.operands[3:] if not isinstance(operand, AssemblySymbol)
    ]
    stored = replace(shape, k=shape.k // 2) if sparse else shape
    sources = source_blocks(blocks, 0 if sparse else cbsz, 0 if sparse else abid)
    negated = [flag == 1 for flag in instruction.flags("neg", 3)]
    form_a, form_b = (format_of(kind, machine.arch) for kind in kinds)
    matrix = Matrix(
        shape=shape,
        out=name.out,
        how=name.arithmetic(machine.arch).how.of_at_most(name.k),
        a=Factor(a, form_a, stored, name.m, sources, negated=negated[0]),
        b=Factor(
            b, form_b, shape, name.n, tuple(range(blocks)), source_lanes(blgp) if blgp else None,
            negated[1],
        ),
        c=d if sparse else more[0],
        d=d,
        c_negated=negated[2],
        index=(as_register(more[0]), 0 if cbsz else abid) if sparse else None,
        scales=_scales(instruction, more) if name.form == "mfma_scale" else (),
    )  # fmt: skip
    if not matrix.has_right_registers:
        return None
    return matrix, passes, reads_of(a, b, *more, *((d,) if sparse else ()))


def _is_written_right(name: _Name, instruction: Instruction, arch: str) -> bool:
    """Whether it has the operands and modifiers of its kind; LLVM's assembler refuses others."""
    operands, modifiers = instruction.operands, instruction.modifiers
    negates = name.out == "f64" and assumed(arch).negates
    return (
        len(operands) == _OPERANDS[name.form]
        and not set(modifiers) - _MODIFIERS[name.form]
        and ("neg" not in modifiers or negates)
        and all(_is_vector(operand) for operand in operands[:3])
        and all(
            _is_vector(operand) or (isinstance(operand, Literal) and operand.is_inline)
            for operand in operands[3:]
        )
        and (name.form != "smfmac" or _is_vector(operands[3]))
    )


def _is_vector(operand: Operand) -> bool:
    """Registers of the two files that matrix cores reach, as they are."""
    return (
        isinstance(operand, Register)
        and operand.bank in "va"
        and not (operand.negate or operand.absolute or operand.extend)
    )


def _scales(
    instruction: Instruction, more: Sequence[Register | Literal]
) -> tuple[tuple[Register | Literal, int], ...]:
    """The operands that hold the scales of A and B, and which of their bytes."""
    low, high = ([*(instruction.written_flags(key) or []), 0, 0] for key in ("op_sel", "op_sel_hi"))
    return tuple((more[1 + x], low[x] + 2 * high[x]) for x in (0, 1))

"""Scalar instructions: a loop over waves."""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from mfmadsl.emulator.instructions.row import Row
from mfmadsl.emulator.instructions.scalar import SAVE_EXEC, SCALAR, SCALAR_COMPARE, WRITE_EXEC
from mfmadsl.emulator.machine.bits import constant
from mfmadsl.emulator.machine.mode import Machine
from mfmadsl.emulator.native.code import I8, I64, NativeCode
from mfmadsl.emulator.native.form import CodeForm, NativeStep, SourceForm
from mfmadsl.emulator.native.number import VectorNumber, splat
from mfmadsl.emulator.native.scalars import COMPARISONS, SAVED, SCALARS
from mfmadsl.emulator.text.assembly import Instruction
from mfmadsl.emulator.text.operand import EXEC, Literal, Operand, Register, as_register

_HELD = {"k16": "i32", "n16": "u32", "b32": "u32", "b64": "u64"}


def describe_scalar(instruction: Instruction, machine: Machine) -> NativeStep | None:
    """A scalar instruction as a step."""
    del machine
    name, operands = instruction.name, instruction.operands
    if name in SCALAR and name in SCALARS:
        row, target = SCALAR[name], as_register(operands[0])
        sources = [*operands[1:], *([target] if row.accumulates else [])]
        options = (row.takes_scc, row.result_words, row.scc is not None)
        return _step("scalar", name, row, sources, target, options)
    if name in SCALAR_COMPARE and name in COMPARISONS:
        return _step("scalar-compare", name, SCALAR_COMPARE[name], operands, None, (False, 0, True))
    if name in SAVE_EXEC or name in WRITE_EXEC:
        row = {**SAVE_EXEC, **WRITE_EXEC}[name]
        target = as_register(operands[0])
        saved = (False, 2, True, name in WRITE_EXEC)
        return _step("save-exec", name, row, operands[1:], target, saved)
    return None


def _step(
    writer: str, name: str, row: Row, operands: Sequence[Operand], target: Register | None,
    options: tuple[object, ...],
) -> NativeStep | None:  # fmt: skip
    forms, values = [], []
    for operand, kind in zip(operands, row.kinds, strict=False):
        held = _HELD.get(kind, kind)
        if isinstance(operand, Literal):
            value = _constant(operand, kind)
            forms.append(SourceForm("c", held))
        elif isinstance(operand, Register):
            value = operand.index
            forms.append(SourceForm("s", held))
        else:
            return None
        values.append(value)
    if target is not None:
        values.append(target.index)
    words = row.result_words if target is not None else 0
    changes_exec = writer == "save-exec" or (target is not None and target.index + words > EXEC)
    form = CodeForm(writer, name, tuple(forms), None, options)
    return NativeStep(form, tuple(values), changes_exec, bool(options[2]))


def _constant(literal: Literal, kind: str) -> int:
    if kind in ("k16", "n16"):
        bits = literal.bits(16, floating=False)
        return bits - (1 << 16) * (bits >> 15) if kind == "k16" else bits
    found = constant(literal, kind)
    value = int(found.view(f"u{found.itemsize}"))
    return value - (1 << 64) * (value >> 63)


def read_scalars(code: NativeCode, form: CodeForm, wave: ir.Value) -> list[VectorNumber]:
    """All sources of a form in one wave, as vectors of one."""
    found = []
    for place, source in enumerate(form.sources):
        value, wide = code.value(place), source.kind[1:] == "64"
        if source.bank == "c":
            word = value if wide else code.builder.trunc(value, ir.IntType(32))
        else:
            word = (code.scalar_pair if wide else code.scalar)(value, wave)
        kind = "u64" if wide else "u32"
        found.append(splat(code.builder, word, 1, kind).as_(source.kind))
    return found


def only(code: NativeCode, number: VectorNumber) -> ir.Value:
    """The one lane of a vector of one."""
    return code.builder.extract_element(number.value, ir.IntType(32)(0))


def _scc(code: NativeCode, wave: ir.Value) -> VectorNumber:
    byte = code.load(code.scc_place(wave), I8)
    bit = code.builder.icmp_unsigned("!=", byte, I8(0))
    return splat(code.builder, bit, 1, "b1")


def _put_scc(code: NativeCode, wave: ir.Value, condition: VectorNumber) -> None:
    code.store(code.builder.zext(only(code, condition), I8), code.scc_place(wave))


def write_scalar(code: NativeCode, form: CodeForm) -> None:
    """The code of an instruction that gives a number."""
    takes_scc, _, gives_scc = form.options
    scalar = SCALARS[form.name]
    with code.waves() as wave:
        values = read_scalars(code, form, wave)
        if takes_scc:
            values.append(_scc(code, wave))
        result = scalar.compute(*values)
        if gives_scc:
            assert scalar.scc is not None
            _put_scc(code, wave, scalar.scc(*values, result))
        code.put_scalar(code.value(len(form.sources)), wave, only(code, result.pattern()))


def write_compare(code: NativeCode, form: CodeForm) -> None:
    """The code of a comparison."""
    with code.waves() as wave:
        _put_scc(code, wave, COMPARISONS[form.name](*read_scalars(code, form, wave)))


def write_save_exec(code: NativeCode, form: CodeForm) -> None:
    """The code of an instruction that changes EXEC and keeps the old one, or the new one too."""
    keeps_new = form.options[3]
    combine = SAVED[form.name.removeprefix("s_").split("_")[0]]
    with code.waves() as wave:
        (source,) = read_scalars(code, form, wave)
        active = splat(code.builder, code.scalar_pair(I64(EXEC), wave), 1, "u64")
        result = combine(source, active)
        kept = result if keeps_new else active
        code.put_scalar(code.value(1), wave, only(code, kept))
        code.put_scalar(I64(EXEC), wave, only(code, result))
        _put_scc(code, wave, result != 0)

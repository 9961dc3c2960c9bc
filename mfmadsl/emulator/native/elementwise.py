"""Vector instructions that compute in each lane for itself: the rows of the tables."""

from __future__ import annotations

from mfmadsl.emulator.instructions.modifier import base_name
from mfmadsl.emulator.instructions.row import Row
from mfmadsl.emulator.instructions.source import sources_of
from mfmadsl.emulator.instructions.target import target_of
from mfmadsl.emulator.instructions.vector import vector_rows
from mfmadsl.emulator.machine.mode import Machine
from mfmadsl.emulator.native.code import NativeCode, chunks
from mfmadsl.emulator.native.conversions import CONVERSIONS
from mfmadsl.emulator.native.floats import FLOATS, flushing, without_denormals
from mfmadsl.emulator.native.form import CodeForm, NativeStep, source_form, target_form
from mfmadsl.emulator.native.integers import INTEGERS, SATURATING
from mfmadsl.emulator.native.number import VectorNumber
from mfmadsl.emulator.native.operand import read_sources, within_row, write_target
from mfmadsl.emulator.text.assembly import Instruction
from mfmadsl.emulator.text.operand import as_register

FUNCTIONS = {**INTEGERS, **FLOATS, **CONVERSIONS}


def describe_row(instruction: Instruction, machine: Machine) -> NativeStep | None:
    """A row of the tables as a step; the instruction is one that the interpreter takes."""
    name = base_name(instruction.name)
    row = vector_rows(machine.arch).get(name)
    if row is None or name not in FUNCTIONS or row.reads_mode:
        return None
    clamp = "clamp" in instruction.modifiers
    if clamp and not machine.dx10_clamp and row.saturating is None:
        return None
    first, *operands = instruction.operands
    register = as_register(first)
    if row.accumulates:
        operands.append(register)
    found = [source_form(source) for source in sources_of(instruction, row.kinds, operands)]
    sources = [each for each in found if each is not None]
    target, place = target_form(target_of(instruction, register, row.source_count, row.part))
    if len(sources) < len(found) or row.part or row.undocumented:
        return None
    if any(s.lanes is not None and not within_row(s.lanes) for s, _ in sources):
        return None
    factor = float(instruction.modifiers.get("mul", 1)) / float(instruction.modifiers.get("div", 1))
    form = CodeForm(
        "row", name, tuple(source for source, _ in sources), target,
        (clamp, *_mode_of(row, machine, factor)),
    )  # fmt: skip
    return NativeStep(form, (*(value for _, value in sources), place))


def _mode_of(row: Row, machine: Machine, factor: float) -> tuple[tuple[str, ...], float]:
    """The types that are flushed, and the factor that results are scaled by."""
    flushed = machine.flushed if row.on_floats else ()
    scaled = factor != 1 and not machine.ieee and f"f{8 * row.result.itemsize}" in flushed
    return flushed, factor if scaled else 1.0


def write_row(code: NativeCode, form: CodeForm) -> None:
    """The code of a row."""
    assert form.target is not None
    clamp, flushed, factor = form.options
    saturates = clamp and form.name in SATURATING
    compute = SATURATING[form.name] if saturates else FUNCTIONS[form.name]
    if flushed:
        compute = flushing(compute, *flushed)
    with chunks(code) as chunk:
        result = compute(*read_sources(chunk, form))
        if factor != 1:
            result = without_denormals(result * factor) + 0.0
        if clamp and not saturates:
            result = clamped(result)
        write_target(chunk, form.target, code.value(len(form.sources)), result)


def clamped(values: VectorNumber) -> VectorNumber:
    """Floats in [0, 1]; NaN becomes 0."""
    if values.kind == "f16":
        return clamped(values.to("f32")).to("f16")
    return (values > 0.0).choose((values < 1.0).choose(values, 1.0), 0.0)

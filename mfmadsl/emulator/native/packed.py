"""Packed instructions in native code: two numbers at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from mfmadsl.emulator.error import OperandError
from mfmadsl.emulator.instructions.modifier import base_name
from mfmadsl.emulator.instructions.packed import PAIRS_OF_F32, PAIRS_OF_HALVES
from mfmadsl.emulator.instructions.source import SourceOperand, half_of
from mfmadsl.emulator.instructions.target import Target
from mfmadsl.emulator.machine.mode import Machine
from mfmadsl.emulator.native.code import NativeCode, chunks
from mfmadsl.emulator.native.elementwise import clamped
from mfmadsl.emulator.native.floats import FLOATS, flushing, fused
from mfmadsl.emulator.native.form import CodeForm, NativeStep, SourceForm, source_form, target_form
from mfmadsl.emulator.native.integers import (
    INTEGERS,
    SATURATING,
    Compute,
    pair_of_halves,
    pair_of_words,
)
from mfmadsl.emulator.native.number import VectorNumber
from mfmadsl.emulator.native.operand import read_sources, write_target
from mfmadsl.emulator.text.assembly import Instruction
from mfmadsl.emulator.text.operand import Literal, Operand, Register, as_register

_MIXED = {f"v_fma_{form}": form for form in ("mix_f32", "mixlo_f16", "mixhi_f16")}


def _plain(name: str) -> str:
    """The instruction that does the same with one number."""
    return name.replace("v_pk_", "v_")


def _compute(name: str, clamp: bool) -> Compute:
    if clamp and _plain(name) in SATURATING:
        return SATURATING[_plain(name)]
    return {**INTEGERS, **FLOATS}[_plain(name)]


def describe_packed(instruction: Instruction, machine: Machine) -> NativeStep | None:
    """A packed instruction as a step."""
    name = base_name(instruction.name)
    if name == "v_pk_mov_b32":
        return _move(instruction)
    if name in _MIXED:
        return _mixed(instruction, machine, _MIXED[name])
    for table, part_of in ((PAIRS_OF_F32, _word), (PAIRS_OF_HALVES, half_of)):
        if name in table and (_plain(name) in INTEGERS or _plain(name) in FLOATS):
            return _pair(instruction, machine, name, table[name].kinds, part_of)
    return None


def _word(operand: Operand, kind: str, high: bool) -> SourceOperand:
    """The low or high word of a pair, or a constant, which the interpreter has looked at."""
    if isinstance(operand, Literal):
        return SourceOperand(operand, kind)
    pair = as_register(operand)
    return SourceOperand(replace(pair, index=pair.index + high, count=1), kind)


def _forms(sources: list[SourceOperand]) -> tuple[tuple[SourceForm, ...], tuple[int, ...]] | None:
    found = [source_form(source) for source in sources]
    known = [each for each in found if each is not None]
    if len(known) < len(found):
        return None
    return tuple(s for s, _ in known), tuple(v for _, v in known)


def _pair(
    instruction: Instruction, machine: Machine, name: str, kinds: tuple[str, ...],
    part_of: Callable[[Operand, str, bool], SourceOperand],
) -> NativeStep | None:  # fmt: skip
    clamp, floating = "clamp" in instruction.modifiers, kinds[0][0] == "f"
    if clamp and floating and not machine.dx10_clamp:
        return None
    register, *operands = instruction.operands
    sources: list[SourceOperand] = []
    for select, negate, default in (("op_sel", "neg_lo", 0), ("op_sel_hi", "neg_hi", 1)):
        parts = instruction.flags(select, len(kinds), default)
        signs = instruction.flags(negate, len(kinds))
        for operand, kind, part, sign in zip(operands, kinds, parts, signs, strict=True):
            try:
                source = part_of(operand, kind, part == 1)
            except OperandError:
                return None
            form = source_form(source)
            if form is None:
                return None
            if sign and isinstance(source.operand, Register):
                flipped = not source.operand.negate
                source = replace(source, operand=replace(source.operand, negate=flipped))
            elif sign:
                return None
            sources.append(source)
    described = _forms(sources)
    if described is None:
        return None
    target, place = target_form(Target(as_register(register)))
    flushed = tuple(kind for kind in machine.flushed if kind in kinds)
    return NativeStep(
        CodeForm("packed", name, described[0], target, (clamp, flushed)), (*described[1], place)
    )


def write_packed(code: NativeCode, form: CodeForm) -> None:
    """The code of an operation on two parts of the sources."""
    assert form.target is not None
    clamp, flushed = form.options
    compute = _compute(form.name, clamp)
    if flushed:
        compute = flushing(compute, *flushed)
    with chunks(code) as chunk:
        sources = read_sources(chunk, form)
        half = len(sources) // 2
        low, high = (_finished(compute(*part), clamp) for part in (sources[:half], sources[half:]))
        join = pair_of_halves if low.bits == 16 else pair_of_words
        write_target(chunk, form.target, code.value(len(sources)), join(low, high))


def _finished(result: VectorNumber, clamp: bool) -> VectorNumber:
    return clamped(result) if clamp and result.is_float else result


def _move(instruction: Instruction) -> NativeStep | None:
    register, *operands = instruction.operands
    chosen = instruction.flags("op_sel", 2)
    described = _forms(
        [_word(each, "u32", bool(which)) for each, which in zip(operands, chosen, strict=True)]
    )
    if described is None:
        return None
    target, place = target_form(Target(as_register(register)))
    return NativeStep(CodeForm("packed-move", "", described[0], target), (*described[1], place))


def write_packed_move(code: NativeCode, form: CodeForm) -> None:
    """The code of v_pk_mov_b32."""
    assert form.target is not None
    with chunks(code) as chunk:
        write_target(chunk, form.target, code.value(2), pair_of_words(*read_sources(chunk, form)))


def _mixed(instruction: Instruction, machine: Machine, name: str) -> NativeStep | None:
    clamp = "clamp" in instruction.modifiers
    if clamp and not machine.dx10_clamp:
        return None
    register, *operands = instruction.operands
    sources = []
    for operand, narrow, high in zip(
        operands, instruction.flags("op_sel_hi", 3), instruction.flags("op_sel", 3), strict=True
    ):
        whole = SourceOperand(operand, "f32")
        sources.append(half_of(operand, "f16", high == 1) if narrow else whole)
    described = _forms(sources)
    if described is None:
        return None
    into = as_register(register)
    if name == "mix_f32":
        target = Target(into)
    else:
        target = Target(into, 16 * (name == "mixhi_f16"), 16, preserve=True)
    form, place = target_form(target)
    # Denormals of the narrow sources are kept: they are numbers of float32 by then.
    flushed = tuple(kind for kind in machine.flushed if kind == "f32")
    step = CodeForm("mixed", name, described[0], form, (clamp, flushed))
    return NativeStep(step, (*described[1], place))


def write_mixed(code: NativeCode, form: CodeForm) -> None:
    """The code of v_fma_mix."""
    assert form.target is not None
    clamp, flushed = form.options
    compute = flushing(fused, *flushed) if flushed else fused
    with chunks(code) as chunk:
        result = compute(*(source.to("f32") for source in read_sources(chunk, form)))
        result = clamped(result) if clamp else result
        narrow = result if form.name == "mix_f32" else result.to("f16")
        write_target(chunk, form.target, code.value(3), narrow)

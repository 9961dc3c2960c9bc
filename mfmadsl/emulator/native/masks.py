"""Vector instructions that read or write a bit a lane: comparisons, choices, sums with carries."""

from __future__ import annotations

from dataclasses import replace

from mfmadsl.emulator.instructions.compare import COMPARE
from mfmadsl.emulator.instructions.modifier import base_name
from mfmadsl.emulator.instructions.source import SourceOperand, sources_of
from mfmadsl.emulator.instructions.target import target_of
from mfmadsl.emulator.machine.mode import Machine
from mfmadsl.emulator.machine.wave import EXEC_PAIR, VCC_PAIR
from mfmadsl.emulator.native.code import I64, NativeCode, chunks
from mfmadsl.emulator.native.floats import flushing
from mfmadsl.emulator.native.form import CodeForm, NativeStep, SourceForm, source_form, target_form
from mfmadsl.emulator.native.integers import Compute
from mfmadsl.emulator.native.number import VectorNumber
from mfmadsl.emulator.native.operand import read_sources, within_row, write_target
from mfmadsl.emulator.native.scalars import RELATIONS
from mfmadsl.emulator.text.assembly import Instruction
from mfmadsl.emulator.text.operand import EXEC, Literal, Operand, Register, as_register

_CARRYING_IN = ("v_addc_co_u32", "v_subb_co_u32", "v_subbrev_co_u32")
_CARRIES = (*_CARRYING_IN, "v_add_co_u32", "v_sub_co_u32", "v_subrev_co_u32")

_FLOATING: dict[str, Compute] = {
    **RELATIONS,
    "lg": lambda a, b: (a < b) | (a > b),
    "neq": lambda a, b: ~(a == b),
    "nlg": lambda a, b: ~((a < b) | (a > b)),
    "ngt": lambda a, b: ~(a > b),
    "nge": lambda a, b: ~(a >= b),
    "nlt": lambda a, b: ~(a < b),
    "nle": lambda a, b: ~(a <= b),
    "o": lambda a, b: ~(a.is_nan() | b.is_nan()),
    "u": lambda a, b: a.is_nan() | b.is_nan(),
}
_INTEGER: dict[str, Compute] = {**RELATIONS, "ne": RELATIONS["lg"]}


def described(
    sources: list[SourceOperand],
) -> tuple[tuple[SourceForm, ...], tuple[int, ...]] | None:
    """The forms and values of sources; None if no native code reads one of them."""
    found = [source_form(source) for source in sources]
    known = [each for each in found if each is not None]
    if len(known) < len(found):
        return None
    if any(s.lanes is not None and not within_row(s.lanes) for s, _ in known):
        return None
    return tuple(s for s, _ in known), tuple(v for _, v in known)


def is_clear_of(target: Register, sources: tuple[SourceForm, ...], values: tuple[int, ...]) -> bool:
    """Whether no scalar source lies in a mask that is written chunk by chunk."""
    return not any(
        source.bank == "s" and value + int(source.kind[1:]) // 33 >= target.index
        and value <= target.index + 1
        for source, value in zip(sources, values, strict=True)
    )  # fmt: skip


def describe_compare(instruction: Instruction, machine: Machine) -> NativeStep | None:
    """A comparison of two vectors as a step."""
    name = base_name(instruction.name)
    if name not in COMPARE or "class" in name:
        return None
    relation, kind = name.split("_")[2:]
    if relation not in (_FLOATING if kind[0] == "f" else _INTEGER):
        return None
    register, *operands = instruction.operands
    target, row = as_register(register), COMPARE[name]
    to_exec = name.startswith("v_cmpx")
    found = described(sources_of(instruction, row.kinds, operands))
    if found is None or not is_clear_of(target, *found):
        return None
    if to_exec and not is_clear_of(EXEC_PAIR, *found):
        return None
    forms, values = found
    flushed = tuple(x for x in machine.flushed if x == kind)
    form = CodeForm("compare", f"{relation}_{kind}", forms, None, (to_exec, flushed))
    return NativeStep(form, (*values, target.index), to_exec or target.index >= EXEC - 1)


def write_compare(code: NativeCode, form: CodeForm) -> None:
    """The code of a comparison."""
    relation, kind = form.name.split("_")
    to_exec, flushed = form.options
    compute = (_FLOATING if kind[0] == "f" else _INTEGER)[relation]
    with chunks(code) as chunk:
        sources = read_sources(chunk, form)
        if flushed:
            sources = [flushing(lambda a: a, *flushed)(source) for source in sources]
        if kind == "f16":
            sources = [source.to("f32") for source in sources]
        found = compute(*sources) & chunk.exec_mask
        chunk.put_mask(code.value(2), found)
        if to_exec:
            chunk.put_mask(I64(EXEC), found)


def describe_choice(instruction: Instruction, machine: Machine) -> NativeStep | None:
    """v_cndmask_b32 as a step."""
    del machine
    if base_name(instruction.name) != "v_cndmask_b32":
        return None
    first, left, right, *mask = instruction.operands
    condition = as_register(mask[0]) if mask and isinstance(mask[0], Register) else VCC_PAIR
    if mask and not isinstance(mask[0], Register):
        return None
    kinds = ["f32" if _is_signed(each) else "u32" for each in (left, right)]
    found = described(sources_of(instruction, kinds, (left, right)))
    if found is None:
        return None
    target, place = target_form(target_of(instruction, as_register(first), 2))
    form = CodeForm("choice", "", found[0], target)
    return NativeStep(form, (*found[1], place, condition.index))


def _is_signed(operand: Operand) -> bool:
    return isinstance(operand, Register | Literal) and (operand.negate or operand.absolute)


def write_choice(code: NativeCode, form: CodeForm) -> None:
    """The code of a choice by a mask."""
    assert form.target is not None
    with chunks(code) as chunk:
        left, right = (source.pattern() for source in read_sources(chunk, form))
        chosen = chunk.mask(code.value(3)).choose(right, left)
        write_target(chunk, form.target, code.value(2), chosen)


def describe_carry(instruction: Instruction, machine: Machine) -> NativeStep | None:
    """A sum of 32 bits with a carry as a step."""
    del machine
    name = base_name(instruction.name)
    if name not in _CARRIES:
        return None
    first, out, left, right, *carry = instruction.operands
    if carry and not isinstance(carry[0], Register):
        return None
    found = described(sources_of(instruction, ("u32", "u32"), (left, right)))
    carry_out = as_register(out)
    if found is None or not is_clear_of(carry_out, *found):
        return None
    if carry and not _is_same_or_clear(as_register(carry[0]), carry_out):
        return None
    target, place = target_form(target_of(instruction, as_register(first), 2))
    clamp = "clamp" in instruction.modifiers
    form = CodeForm("carry", name, found[0], target, (bool(carry), clamp))
    carries = tuple(as_register(each).index for each in carry)
    return NativeStep(
        form, (*found[1], place, carry_out.index, *carries), carry_out.index >= EXEC - 1
    )


def _is_same_or_clear(one: Register, other: Register) -> bool:
    return abs(one.index - other.index) != 1


def write_carry(code: NativeCode, form: CodeForm) -> None:
    """The code of a sum with a carry."""
    assert form.target is not None
    takes, clamp = form.options
    with chunks(code) as chunk:
        a, b = (source.to("i64") for source in read_sources(chunk, form))
        if "rev" in form.name:
            a, b = b, a
        carried = chunk.mask(code.value(4)).to("u64").as_("i64") if takes else a.constant(0)
        total = a - b - carried if "sub" in form.name else a + b + carried
        out = _carries(total) & chunk.exec_mask
        result = total.maximum(0).minimum(0xFFFF_FFFF) if clamp else total
        write_target(chunk, form.target, code.value(2), result.to("u32"))
        chunk.put_mask(code.value(3), out)


def _carries(total: VectorNumber) -> VectorNumber:
    return (total < 0) | (total > 0xFFFF_FFFF)


def describe_wide_sum(instruction: Instruction, machine: Machine) -> NativeStep | None:
    """v_mad_u64_u32 and v_mad_i64_i32 as steps."""
    del machine
    name = base_name(instruction.name)
    if name not in ("v_mad_u64_u32", "v_mad_i64_i32"):
        return None
    first, out, *operands = instruction.operands
    kinds = ("i32", "i32", "i64") if "i64" in name else ("u32", "u32", "u64")
    found = described(
        [SourceOperand(operand, kind) for operand, kind in zip(operands, kinds, strict=True)]
    )
    carry_out, target = as_register(out), as_register(first)
    if found is None or not is_clear_of(carry_out, *found):
        return None
    form, place = target_form(target_of(replace(instruction, modifiers={}), target, 3))
    step = CodeForm("wide-sum", name, found[0], form)
    return NativeStep(step, (*found[1], place, carry_out.index), carry_out.index >= EXEC - 1)


def write_wide_sum(code: NativeCode, form: CodeForm) -> None:
    """The code of 32 x 32 + 64 bits."""
    assert form.target is not None
    with chunks(code) as chunk:
        left, right, added = read_sources(chunk, form)
        product = left.to(added.kind) * right.to(added.kind)
        total = product + added
        if added.kind == "u64":
            carry = total < product
        else:
            carry = ((product < 0) ^ (added < 0)).choose(total < 0, product < 0)
        out = carry & chunk.exec_mask
        write_target(chunk, form.target, code.value(3), total)
        chunk.put_mask(code.value(4), out)

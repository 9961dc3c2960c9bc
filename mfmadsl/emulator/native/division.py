"""The steps of a division of float32 in native code; their meaning is that of
`instructions/division.py`, with which tests compare them."""

from __future__ import annotations

from mfmadsl.emulator.instructions.modifier import base_name
from mfmadsl.emulator.instructions.source import SourceOperand
from mfmadsl.emulator.instructions.target import Target
from mfmadsl.emulator.machine.mode import Machine
from mfmadsl.emulator.machine.wave import VCC_PAIR
from mfmadsl.emulator.native.code import NativeCode, chunks
from mfmadsl.emulator.native.floats import sum_to_odd
from mfmadsl.emulator.native.form import CodeForm, NativeStep, target_form
from mfmadsl.emulator.native.masks import described, is_clear_of
from mfmadsl.emulator.native.number import VectorNumber
from mfmadsl.emulator.native.operand import read_sources, write_target
from mfmadsl.emulator.text.assembly import Instruction
from mfmadsl.emulator.text.operand import EXEC, as_register

_SMALLEST = 2.0**-126
_NAN = 0x7FC0_0000
_SHIFT, _LIMIT, _MANTISSA = 64, 96, 23


def describe_division(instruction: Instruction, machine: Machine) -> NativeStep | None:
    """v_div_scale_f32 and v_div_fmas_f32 as steps."""
    del machine
    name = base_name(instruction.name)
    if name not in ("v_div_scale_f32", "v_div_fmas_f32"):
        return None
    scales = name == "v_div_scale_f32"
    register, *operands = instruction.operands
    flag = as_register(operands.pop(0)) if scales else VCC_PAIR
    found = described([SourceOperand(operand, "f32") for operand in operands])
    if found is None or (scales and not is_clear_of(flag, *found)):
        return None
    target, place = target_form(Target(as_register(register)))
    form = CodeForm("division-scale" if scales else "division-step", "", found[0], target)
    changes_exec = scales and flag.index >= EXEC - 1
    return NativeStep(form, (*found[1], place, flag.index), changes_exec)


def _scaled(a: VectorNumber, exponent: int) -> VectorNumber:
    """A number times a power of two, as its pattern."""
    return (a.to("f64") * 2.0**exponent).to("f32").pattern()


def _exponent(a: VectorNumber) -> VectorNumber:
    return (a.pattern() >> _MANTISSA & 0xFF).as_("i32")


def write_division_scale(code: NativeCode, form: CodeForm) -> None:
    """The code of v_div_scale_f32: the cases of the manual, the first of which counts."""
    assert form.target is not None
    with chunks(code) as chunk:
        value, denominator, numerator = read_sources(chunk, form)
        kept, up, down = value.pattern(), _scaled(value, _SHIFT), _scaled(value, -_SHIFT)
        wide = denominator.to("f64")
        quotient_tiny = (numerator / denominator).absolute() < _SMALLEST
        inverse_tiny = (wide.constant(1.0) / wide).absolute() < _SMALLEST
        zero = (denominator == 0.0) | (numerator == 0.0)
        is_denominator, is_numerator = value == denominator, value == numerator
        cases = [
            (zero, kept.constant(_NAN), False),
            (
                (_exponent(numerator) - _exponent(denominator)) >= _LIMIT,
                is_denominator.choose(up, kept),
                True,
            ),
            ((denominator.absolute() < _SMALLEST), up, False),
            (inverse_tiny & quotient_tiny, is_denominator.choose(down, kept), True),
            (inverse_tiny, down, False),
            (quotient_tiny, is_numerator.choose(up, kept), True),
            (_exponent(numerator) <= _MANTISSA, up, False),
        ]
        result, flag = kept, zero & ~zero
        for condition, scaled, flagged in reversed(cases):
            result = condition.choose(scaled, result)
            flag = flag | condition if flagged else flag & ~condition
        write_target(chunk, form.target, code.value(3), result)
        chunk.put_mask(code.value(4), flag & chunk.exec_mask)


def write_division_step(code: NativeCode, form: CodeForm) -> None:
    """The code of v_div_fmas_f32: a * b + c, and back to its size where VCC says so."""
    assert form.target is not None
    with chunks(code) as chunk:
        a, b, c = read_sources(chunk, form)
        total = sum_to_odd(a.to("f64") * b.to("f64"), c.to("f64"))
        is_large = (c.absolute() >= 2.0) & c.is_finite()
        power = is_large.choose(total.constant(2.0**_SHIFT), total.constant(2.0**-_SHIFT))
        scale = chunk.mask(code.value(4)).choose(power, 1.0)
        write_target(chunk, form.target, code.value(3), (total * scale).to("f32"))

"""Loads of scalar memory in native code: words into scalar registers, one address a wave."""

from __future__ import annotations

import re

from mfmadsl.emulator.instructions.smem import SMEM_FLAGS, constant_offset
from mfmadsl.emulator.machine.mode import Machine
from mfmadsl.emulator.native.access import Segments, host_address
from mfmadsl.emulator.native.code import I32, I64, NativeCode
from mfmadsl.emulator.native.form import CodeForm, NativeStep
from mfmadsl.emulator.text.assembly import Instruction
from mfmadsl.emulator.text.operand import EXEC, Literal, Register, as_register

_LOAD = re.compile(r"s_load_dword(x2|x4|x8|x16|)")
_WORD = ~3


def describe_scalar_load(instruction: Instruction, machine: Machine) -> NativeStep | None:
    """A scalar load as a step."""
    del machine
    if not _LOAD.fullmatch(instruction.name) or set(instruction.modifiers) - SMEM_FLAGS:
        return None
    first, second, *rest = instruction.operands
    target, base = as_register(first), as_register(second)
    offset = rest[0] if rest else Literal("0")
    constant = int(constant_offset(instruction, offset, signed=True))
    values = [target.index, base.index, constant - (1 << 64) * (constant >> 63)]
    if isinstance(offset, Register):
        values.append(offset.index)
    form = CodeForm("scalar-load", "", options=(target.count, isinstance(offset, Register), False))
    return NativeStep(form, tuple(values), target.index + target.count > EXEC)


def write_scalar_load(code: NativeCode, form: CodeForm) -> None:
    """The code of a scalar load: all addresses are checked before a register changes. Who looks at
    accesses is told by the interpreter where parts of an address do not count."""
    count, has_offset, is_checked = form.options
    builder = code.builder
    segments = Segments(code, I64(4 * count), is_store=False)
    for loads in (False, True):
        with code.waves() as wave:
            base = code.scalar_pair(code.value(1), wave)
            displacement = code.value(2)
            if has_offset:
                more = builder.zext(code.scalar(code.value(3), wave), I64)
                displacement = builder.add(displacement, more)
            if is_checked and not loads:
                for part in (base, displacement):
                    cut = builder.and_(part, I64(~_WORD))
                    code.refuse_if(builder.icmp_unsigned("!=", cut, I64(0)))
            whole = (builder.and_(part, I64(_WORD)) for part in (base, displacement))
            address = builder.add(*whole)
            if not loads:
                segments.check(address)
                continue
            at = host_address(code, address)
            words = [code.load(builder.add(at, I64(4 * i)), I32) for i in range(count)]
            for i, word in enumerate(words):
                code.put_scalar(builder.add(code.value(0), I64(i)), wave, word)

"""Instructions as steps for those who look at accesses: each of these is looked at before it is
executed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from mfmadsl.emulator.instructions.buffer_place import pieces
from mfmadsl.emulator.instructions.lds import accessed_bytes
from mfmadsl.emulator.instructions.vmem import stored_bytes
from mfmadsl.emulator.machine.coherence import DEVICE, Coherence
from mfmadsl.emulator.machine.mode import Machine
from mfmadsl.emulator.machine.width import Width
from mfmadsl.emulator.native.form import CodeForm, NativeStep
from mfmadsl.emulator.native.steps import describe
from mfmadsl.emulator.native.stretch import Access
from mfmadsl.emulator.text.assembly import Instruction
from mfmadsl.model import assumed

_Size = Callable[[Instruction], int | None]


@dataclass(frozen=True)
class CheckedSteps:
    """The steps of an instruction, and the accesses that they look at."""

    steps: tuple[NativeStep, ...]
    accesses: tuple[Access, ...] = ()


@dataclass(frozen=True)
class PieceSizes:
    """Of the pieces of memory whose accesses are kept, as powers of two: of the LDS, and of global
    memory. Accesses that are not aligned make them smaller."""

    lds: int
    memory: int

    @classmethod
    def of(cls, instructions: Sequence[Instruction]) -> PieceSizes:
        """Those that a program has at first."""
        return cls(*(smallest(instructions, of).bit_length() - 1 for of in _SIZES))


def smallest(instructions: Sequence[Instruction], of: _Size) -> int:
    """Bytes of the smallest access, or those of a word."""
    return min([4, *(size for each in instructions if (size := of(each)))])


_SIZES: tuple[_Size, _Size] = (accessed_bytes, stored_bytes)


def describe_checked(
    instruction: Instruction, machine: Machine, issued: Mapping[str, int], sizes: PieceSizes
) -> CheckedSteps | None:
    """An instruction that the interpreter takes, as steps; None if it has none. `issued` says how
    many of its line have been issued, it included, by counters."""
    step = describe(instruction, machine)
    if step is None:
        return None
    if step.form.is_on_registers:
        return CheckedSteps((step,))
    if step.form.writer == "scalar-load":
        options = (*step.form.options[:-1], True)
        return CheckedSteps((replace(step, form=replace(step.form, options=options)),))
    if step.form.writer == "lds":
        return _lds(step, issued["lgkmcnt"], sizes.lds)
    coherence = Coherence.of(assumed(machine.arch))
    places = _global if step.form.writer == "global" else _buffer
    is_load, width = step.form.options[:2]
    reach = coherence.reach(instruction) if is_load else coherence.store_reach(instruction)
    if not is_load and reach == DEVICE:
        return None
    access = Access(in_lds=False, stores=not is_load, reach=reach)
    options = (width.size, sizes.memory)
    check = CodeForm(f"memory-{'load' if is_load else 'store'}-check", "", options=options)
    steps = (places(step), NativeStep(check, (issued["vmcnt"], reach)), step)
    return CheckedSteps(steps, (access,))


def _odd_bits(is_load: bool, width: Width) -> int:
    """Of the address of a store: parts of words are written in an order of their own."""
    return 0 if is_load else min(width.size, 4) - 1


def _lds(step: NativeStep, number: int, shift: int) -> CheckedSteps:
    is_load, width, count, _, _ = step.form.options
    address, *pairs = step.values
    form = CodeForm("lds-places", "", options=(not is_load,))
    options = (width.size, shift)
    check = CodeForm(f"lds-{'load' if is_load else 'store'}-check", "", options=options)
    steps: list[NativeStep] = []
    for place in pairs[1::2]:
        values = (address, place, width.size, _odd_bits(is_load, width))
        steps += [NativeStep(form, values), NativeStep(check, (number,))]
    access = Access(in_lds=True, stores=not is_load)
    return CheckedSteps((*steps, step), (access,) * count)


def _global(step: NativeStep) -> NativeStep:
    is_load, width, _, has_base, _ = step.form.options
    _, lanes, displacement, *base = step.values
    values = (lanes, displacement, *(base or [0]), width.size, _odd_bits(is_load, width))
    return NativeStep(CodeForm("global-places", "", options=(not is_load, has_base)), values)


def _buffer(step: NativeStep) -> NativeStep:
    is_load, width, _, parts, is_constant, _ = step.form.options
    piece = pieces(width)[0][1].size
    values = (*step.values[1:], width.size, _odd_bits(is_load, width), piece)
    form = CodeForm("buffer-places", "", options=(not is_load, parts, is_constant))
    return NativeStep(form, values)

"""The LLVM intrinsic that an entry calls, against those that LLVM has.

`llvm_intrinsics.json` lists the matrix intrinsics of LLVM 22: the chips on which LLVM selects each,
and the types of A, B and C, once for each overload (IntrinsicsAMDGPU.td, and compiling each).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from itertools import islice
from typing import NamedTuple

from mfmadsl.language.diagnostic import Diagnostic
from mfmadsl.language.syntax import CallField, Name
from mfmadsl.model import ARCHITECTURES, Intrinsic, Operand
from mfmadsl.model.chips import with_followers
from mfmadsl.model.signature import register_type

_VERSION = 22


class LlvmIntrinsic(NamedTuple):
    """`operands` has the types of A, B and C, once for each overload."""

    chips: tuple[str, ...]
    operands: tuple[tuple[str, str, str], ...]


@cache
def llvm_intrinsics() -> Mapping[str, LlvmIntrinsic]:
    """The matrix intrinsics of LLVM on the chips that mfmadsl knows, by name."""
    text = (files("mfmadsl.language") / "llvm_intrinsics.json").read_text()
    return {
        name: LlvmIntrinsic(
            with_followers(found["chips"]), tuple(tuple(x) for x in found["operands"])
        )
        for name, found in json.loads(text).items()
    }


def check_call(call: CallField) -> Iterator[Diagnostic]:
    """Whether LLVM has what an entry calls, or the entry says that it does not."""
    known = call.text in llvm_intrinsics()
    if not known and not call.unknown:
        near = get_close_matches(call.text, llvm_intrinsics(), 1, 0.8)
        hint = f'did you mean "{near[0]}"? ' if near else ""
        hint += "For an instruction that LLVM lacks, write `unknown` after it"
        message = f'LLVM {_VERSION} has no matrix intrinsic "{call.text}"'
        yield Diagnostic("call", message, call.span, hint)


def check_signature(call: CallField, described: Sequence[Intrinsic]) -> Iterator[Diagnostic]:
    """Whether LLVM has what an entry calls on the entry's chips, for its operands.

    `described` are the instructions of the entry, one for each pair of types.
    """
    known = llvm_intrinsics().get(call.text)
    if known is None:
        return
    missing = [chip for chip in described[0].chips if chip not in known.chips]
    if call.unknown:
        if not missing:
            message = f'LLVM {_VERSION} knows "{call.text}"'
            yield Diagnostic("call", message, call.span, "leave out `unknown`")
        return
    if missing:
        message = f'LLVM has no "{call.text}" on {" and ".join(missing)}'
        hint = f"`cycles` may name {' '.join(known.chips)}; or write `unknown` after the text"
        yield Diagnostic("call", message, call.span, hint)
    problems = filter(None, (_mismatch(intrinsic, known) for intrinsic in described))
    for problem in islice(problems, 1):
        yield Diagnostic("call", problem, call.span)


class LlvmRead(NamedTuple):
    """A lane gets `registers` elements of `bits` bits each."""

    bits: int
    registers: int


LLVM_READS: Mapping[str, LlvmRead] = {
    **{
        f"llvm.amdgcn.ds.read.tr16.b64.v4{element}": LlvmRead(16, 4)
        for element in ("i16", "f16", "bf16")
    },
    "llvm.amdgcn.ds.read.tr8.b64.v2i32": LlvmRead(8, 8),
}
"""The reads of LLVM 22 in which lanes exchange whole bytes (IntrinsicsAMDGPU.td)."""


def check_read(
    call: CallField, chips: Sequence[Name], shape: Mapping[str, int]
) -> Iterator[Diagnostic]:
    """Whether LLVM has the read that an entry calls, on its chips and for its elements.

    `shape` has the bits of an element and the registers of a lane, or nothing if it is wrong.
    """
    known = LLVM_READS.get(call.text)
    if known is None:
        near = get_close_matches(call.text, LLVM_READS, 1, 0.8)
        hint = f'did you mean "{near[0]}"?' if near else f"there are: {', '.join(LLVM_READS)}"
        message = f'LLVM {_VERSION} has no read "{call.text}" in which lanes exchange elements'
        yield Diagnostic("call", message, call.span, hint)
        return
    theirs = [a.name for a in ARCHITECTURES.values() if a.transposing_reads]
    for chip in chips:
        if chip.text in ARCHITECTURES and chip.text not in theirs:
            message = f'LLVM has no "{call.text}" on {chip.text}'
            yield Diagnostic("chip", message, chip.span, f"it is on {' '.join(theirs)}")
    if shape and (shape["bits"], shape["registers"]) != (known.bits, known.registers):
        message = f'"{call.text}" gives {known.registers} elements of {known.bits} bits'
        hint = f"the shape says {shape['registers']} of {shape['bits']}"
        yield Diagnostic("call", message, call.span, hint)


def _mismatch(intrinsic: Intrinsic, known: LlvmIntrinsic) -> str:
    """How the operands differ from those of every overload: in the first operand that none has."""
    passed = {o.name: str(register_type(intrinsic, o)) for o in _operands(intrinsic)}
    left = list(known.operands)
    for position, (name, dtype) in enumerate(passed.items()):
        fitting = [types for types in left if types[position] == dtype]
        if not fitting:
            wanted = " or ".join(dict.fromkeys(types[position] for types in left))
            return f'`{name}` is {dtype} in each lane, but "{intrinsic.call}" takes {wanted}'
        left = fitting
    return ""


def _operands(intrinsic: Intrinsic) -> tuple[Operand, ...]:
    return intrinsic.a, intrinsic.b, intrinsic.c

"""What TIR cannot express: functions of `backend/gpu/device_functions.ll`, waits, barriers."""

from __future__ import annotations

from functools import reduce
from operator import or_

from tvm import tirx
from tvm.ir import Call
from tvm.tirx import Buffer, BufferLoad, BufferStore, Evaluate, Expr

from mfmadsl.model import Architecture
from mfmadsl.passes.tir.expression import bits_of, i32, of_length, ramp

_WORD = 32  # bits that lanes exchange at once

PAST_THE_END = -(1 << 31)
"""An offset, as an unsigned number, that no buffer reaches."""

KINDS = {1: "i8", 2: "i16", 4: "i32", 8: "v2i32", 16: "v4i32"}
"""What the functions for buffers are called, by the bytes that a lane moves."""


def call(dtype: str, name: str, *arguments: Expr) -> Expr:
    """A call of one of the project's device functions."""
    return tirx.call_extern(dtype, f"mfmadsl.{name}", *arguments)


def intrinsic(dtype: str, name: str, *arguments: Expr) -> Expr:
    """A call of one of LLVM's intrinsics that has no effect but its value."""
    return tirx.call_llvm_pure_intrin(dtype, name, *arguments)


def permute(high: Expr, low: Expr, selector: int | Expr) -> Expr:
    """Four of the eight bytes of two words: `v_perm_b32`."""
    chosen = i32(selector) if isinstance(selector, int) else selector
    return intrinsic("int32", "llvm.amdgcn.perm", high, low, chosen)


def shifted(high: Expr, low: Expr, count: Expr) -> Expr:
    """Two words moved down by the low two bits of `count` bytes: `v_alignbyte_b32`."""
    return intrinsic("int32", "llvm.amdgcn.alignbyte", high, low, count)


def uniform(value: Expr) -> Expr:
    """A value that is the same in all lanes, in a scalar register."""
    return tirx.call_llvm_intrin("int32", "llvm.amdgcn.readfirstlane", value)


def select(condition: Expr, value: Expr, other: Expr) -> Expr:
    """One of two words. TVM looks long at what may be known where a Select has chosen."""
    return device("int32", "select", condition, value, other)


def masked(word: Expr, mask: int, bits: int) -> Expr:
    """`word & mask | bits` in one instruction: LLVM does not take the halves of the word apart."""
    return call("int32", "masked", word, i32(mask), i32(bits))


def kept(value: Expr) -> Expr:
    """A lane's value that LLVM takes no constant out of.

    It would add that to an offset in the instruction: what is left may be negative, which lies past
    the end of any buffer.
    """
    return device("int32", "kept", value)


def renewed(value: Expr) -> Expr:
    """A lane's value, made when it is asked for, of which LLVM does not know that it had it."""
    return call("int32", "renewed", value)


def renewed_words(words: Buffer) -> list[BufferStore]:
    """A lane's words, all made where this stands, of which LLVM does not know what they were."""
    count, first = int(words.shape[0]), 0
    found = []
    while first < count:
        length = next(n for n in (4, 2, 1) if n <= count - first)
        dtype, places = of_length("int32", length), [ramp(first, length)]
        name = "renewed" if length == 1 else f"renewed.{length}"
        found.append(BufferStore(words, call(dtype, name, BufferLoad(words, places)), places))
        first += length
    return found


def there(value: Expr) -> Evaluate:
    """A lane's word is computed by now."""
    return Evaluate(call("int32", "there", value))


def placed(value: Expr) -> Expr:
    """Four numbers of float32, computed where this stands."""
    return call("float32x4", "placed", value)


def zeros() -> Expr:
    """Two of a lane's words, filled where this stands: LLVM does not know with what."""
    return call("int32x2", "zeros")


def barrier() -> Evaluate:
    """All waves of the workgroup are here, and what they have written to the LDS is there."""
    return _effect("llvm.amdgcn.s.barrier")


def meeting() -> Evaluate:
    """All waves of the workgroup are here; each has waited for its own accesses of the LDS."""
    return Evaluate(call("int32", "meet"))


def settled() -> Evaluate:
    """What lanes of this wave have written to the LDS is there for the others."""
    return Evaluate(call("int32", "settle"))


def keep_order() -> Evaluate:
    """LLVM's scheduler moves nothing across this."""
    return _effect("llvm.amdgcn.sched.barrier", i32(0))


def wait_for_lds(chip: Architecture) -> Evaluate:
    """All LDS accesses of this wave are done: one wait where LLVM would put one before each use."""
    return _wait(chip.waits(lgkmcnt=0))


def wait_for_memory(chip: Architecture, under_way: int = 0) -> Evaluate:
    """All loads from memory of this wave are done, but for so many of the youngest.

    More than the counter can count are never under way: the chip does not issue them.
    """
    largest = next(c.largest for c in chip.wait_counters if c.name == "vmcnt")
    return _wait(chip.waits(vmcnt=min(under_way, largest)))


def priority(level: int) -> Evaluate:
    """From here on this wave goes before those of a lower level: 0, as at first, to 3."""
    return _effect("llvm.amdgcn.s.setprio", tirx.const(level, "int16"))


def _wait(counters: int) -> Evaluate:
    return _effect("llvm.amdgcn.s.waitcnt", i32(counters))


def _effect(name: str, *arguments: Expr) -> Evaluate:
    return Evaluate(tirx.call_llvm_intrin("void", name, *arguments))


def other_half(value: Expr, lanes: int) -> Expr:
    """A value of another lane of a group of so many, all of them active: that of the other half of
    them, if all lanes of a half have the same."""
    dtype = str(value.ty.dtype)
    bits = bits_of(dtype)
    own = tirx.reinterpret(f"uint{bits}", value)
    parts = []
    for first in range(0, bits, _WORD):
        word = tirx.reinterpret("int32", (own >> first if first else own).astype("uint32"))
        other = tirx.reinterpret("uint32", device("int32", f"other.half.of.{lanes}", word))
        parts.append(other.astype(f"uint{bits}") << first if first else other.astype(f"uint{bits}"))
    return tirx.reinterpret(dtype, reduce(or_, parts))


def device(dtype: str, name: str, *arguments: Expr) -> Expr:
    """A call of a function without effects of `backend/*_functions.ll`."""
    return tirx.call_pure_extern(dtype, f"mfmadsl.{name}", *arguments)


def called(expression: Call) -> str:
    """The name of the operator that a call calls, without TVM's prefix."""
    return str(getattr(expression.op, "name", expression.op)).rpartition(".")[2]


def device_function(expression: Call) -> str:
    """The name of the device function that a call calls, or nothing where it calls none."""
    if called(expression) not in ("call_extern", "call_pure_extern"):
        return ""
    name = str(getattr(expression.args[0], "value", ""))
    return name.removeprefix("mfmadsl.") if name.startswith("mfmadsl.") else ""


def reads_other_lanes(expression: Call) -> bool:
    """Whether a call gives a lane what another one has, which has to be active."""
    return ".half.of." in device_function(expression)

"""A row of the instruction table: all that there is to say of one instruction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from mfmadsl.emulator.machine.bits import Array, Compute, dtype_of, width_of
from mfmadsl.emulator.machine.mode import Machine
from mfmadsl.emulator.machine.operation import Operation, Slots, Unit
from mfmadsl.emulator.text.assembly import Instruction

QUARTER_RATE = 4
"""Slots of products of 32 bits (LLVM's cost model and its scheduling class `WriteIntMul`), and of
functions of 64 bits that the vector ALU approximates (LLVM's class `WriteTrans64`)."""


_HELD_AS = {"u8": "u32", "k16": "i32", "n16": "u32"}


@dataclass(frozen=True)
class Row:
    """An instruction that takes sources of fixed types and computes a result from them.

    What it computes: `compute` takes the sources as arrays of `kinds` and gives the result, whose
    type it sets. A `u8` is a byte of a word; `k16` and `n16` are constants of 16 bits, with a sign
    and without; an `x16` is a float of 16 bits, given as its bits. With `accumulates`, the target
    is the last source; with `reads_mode` the MODE register is; with `takes_scc` the scalar
    condition code follows all, and `scc` makes the new one of them and of the result. `saturating`
    is what `clamp` makes of an instruction on integers. With `part`, the result is so many bits of
    a register, 8 or 16, whose others stay; with `in_passes` it is written before all sources are
    read, so that none may lie there. `undocumented` says what of the result nobody tells
    surely, and of which sources: it is an error where an active lane has such ones.

    How undefined bits flow: `moves` lists the sources whose bits the instruction only moves, masks
    or merges, so that bits that nobody wrote may pass through it; all other sources must be
    defined. `adds` marks sums, where what is undefined spreads upward.

    How it is written: `banks` are those of the target's registers and of the sources'. `short` says
    whether there are encodings of 32 bits, and with them SDWA and DPP; None is for those that have
    them unless they have three sources and another target. A `bare` one has no modifiers at all,
    one without `op_sel` not that one, though its operands are halves.

    What it costs: `unit` executes it, for as many issue slots as `slots` says; None is one, or
    where a source or the result has 64 bits, as many as the chip takes for that.
    """

    kinds: tuple[str, ...]
    compute: Compute
    moves: tuple[int, ...] = ()
    accumulates: bool = False
    saturating: Compute | None = None
    reads_mode: bool = False
    adds: bool = False
    scc: Compute | None = None
    takes_scc: bool = False
    part: int = 0
    in_passes: bool = False
    undocumented: tuple[str, Compute] | None = None
    banks: tuple[str, str] = ("v", "vs")
    short: bool | None = None
    bare: bool = False
    op_sel: bool = True
    unit: Unit = "valu"
    slots: Slots | None = None

    @cached_property
    def result(self) -> np.dtype[Any]:
        """The type of the result."""
        zeros = [np.zeros(1, dtype_of(_HELD_AS.get(kind, kind))) for kind in self.kinds]
        condition = [np.zeros(1, np.bool_)] if self.takes_scc else []
        with np.errstate(all="ignore"):
            return np.asarray(self.compute(*zeros, *condition)).dtype

    @property
    def result_words(self) -> int:
        """How many registers the result takes."""
        return max(1, self.result.itemsize // 4)

    @property
    def on_floats(self) -> bool:
        """Whether it takes or gives floats."""
        return any(kind[0] == "f" for kind in self.kinds) or self.result.kind == "f"

    @property
    def is_wide(self) -> bool:
        """Whether a source or the result has 64 bits."""
        return self.result.itemsize == 8 or any(width_of(kind) == 64 for kind in self.kinds)

    @property
    def source_count(self) -> int:
        """How many sources there are besides the MODE register."""
        return len(self.kinds) - self.reads_mode

    @property
    def has_short_form(self) -> bool:
        """Whether it has encodings of 32 bits."""
        if self.short is not None:
            return self.short
        return self.source_count < 3 or self.accumulates

    @property
    def has_op_sel(self) -> bool:
        """Whether op_sel says which halves (or bytes) of registers it takes and gives."""
        narrow = self.result.itemsize < 4 or any(width_of(kind) < 32 for kind in self.kinds)
        return self.op_sel and narrow and not self.has_short_form and not self.accumulates

    @property
    def cost(self) -> Slots:
        """For how many issue slots its unit is busy with it, as an `Operation` says it."""
        return self.slots or ("wide" if self.is_wide else 1)


@dataclass(frozen=True)
class Special:
    """An instruction whose operands are more than sources of fixed types: `compile_one` reads them.

    Of its modifiers it knows `modifiers`; with `sub_words` those of SDWA and DPP, which choose from
    two sources; with `signed` those that negate a float or make it positive.
    """

    compile_one: Callable[[Instruction], Operation]
    modifiers: frozenset[str] = frozenset()
    sub_words: bool = False
    signed: bool = False


def row(kinds: str, compute: Compute, *moves: int, **more: Any) -> Row:
    """A row whose types are written as one text."""
    return Row(tuple(kinds.split()), compute, moves, **more)


def flushed_row(row: Row, machine: Machine) -> Row:
    """A row with denormals flushed as the mode says."""
    if not machine.flushed or not row.on_floats:
        return row
    return replace(row, compute=machine.flushed_compute(row.compute))


def upward(undefined: Array) -> Array:
    """The bits of a sum that may change with undefined ones of an addend: those and all above."""
    return undefined | (~undefined + undefined.dtype.type(1))


def undefined_bits(row: Row, values: list[Array], undefined: list[Array]) -> Array:
    """The bits of a result that depend on undefined ones, of a row that only moves them.

    Whatever moves or merges bits gives a result that differs in just those bits when all of the
    undefined ones are 0 and when all are 1.
    """
    if row.adds:
        spread = [upward(undefined[i]) for i in row.moves]
        return np.asarray(np.bitwise_or.reduce(np.broadcast_arrays(*spread)))
    results = []
    for fill in (0, 1):
        filled = list(values)
        for i in row.moves:
            bits = values[i].view(f"u{values[i].itemsize}")
            bits = bits | undefined[i] if fill else bits & ~undefined[i]
            filled[i] = bits.view(values[i].dtype)
        result = np.asarray(row.compute(*filled))
        results.append(result.view(f"u{result.itemsize}"))
    return results[0] ^ results[1]

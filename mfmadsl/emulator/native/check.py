"""Looks at accesses to memory in native code: is anything wrong with them?

What is not surely right is left to the interpreter, and to those who tell what is wrong. A step
that looks comes between one that writes down where lanes go, and the access itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

from llvmlite import ir

from mfmadsl.emulator.machine.wave import LANES
from mfmadsl.emulator.native.code import I32, I64, NativeCode
from mfmadsl.emulator.native.fields import Field

Once = TypeVar("Once")


class PlacedLane(Generic[Once]):
    """A lane that goes somewhere: its number, the offset, and what is known of its wave."""

    def __init__(self, number: ir.Value, offset: ir.Value, wave: Once) -> None:
        self.number, self.offset, self.wave = number, offset, wave


@contextmanager
def placed_lanes(
    code: NativeCode, of_wave: Callable[[ir.Value], Once]
) -> Iterator[PlacedLane[Once]]:
    """The lanes that go somewhere, in their order."""
    with code.waves() as number, placed_in_wave(code, number, of_wave(number)) as lane:
        yield lane


@contextmanager
def placed_in_wave(code: NativeCode, number: ir.Value, wave: Once) -> Iterator[PlacedLane[Once]]:
    """Those of a wave, of which something is known."""
    builder = code.builder
    first = builder.add(code.field("places"), builder.mul(number, I64(8 * LANES)))
    with code.loop(I64(LANES)) as lane:
        offset = code.load(builder.add(first, builder.mul(lane, I64(8))), I64, 8)
        with builder.if_then(builder.icmp_signed(">=", offset, I64(0))):
            yield PlacedLane(lane, offset, wave)


def entry(code: NativeCode, table: Field, index: ir.Value, kind: ir.Type = I64) -> ir.Value:
    """An entry of a table."""
    size = kind.width // 8
    return code.load(
        code.builder.add(code.field(table), code.builder.mul(index, I64(size))), kind, size
    )


def ticket(code: NativeCode, issued: Field, ahead: Field, wave: ir.Value, number: int) -> ir.Value:
    """The ticket of a wave's instruction, whose number in its line is a value."""
    builder = code.builder
    before = builder.add(entry(code, issued, wave), code.field(ahead))
    return builder.add(before, code.value(number))


def refuse_undefined(code: NativeCode, shadow: Field, offset: ir.Value, size: int) -> None:
    """Leave what nobody wrote to the interpreter."""
    kind = ir.IntType(8 * size)
    bits = code.load(code.builder.add(code.field(shadow), offset), kind)
    code.refuse_if(code.builder.icmp_unsigned("!=", bits, kind(0)))


def define(code: NativeCode, shadow: Field, lane: PlacedLane[Any], size: int) -> None:
    """What a lane stores is defined from here on."""
    code.store(ir.IntType(8 * size)(0), code.builder.add(code.field(shadow), lane.offset))


class Undo:
    """Changes of tables, which are taken back if an instruction is refused after them. They are of
    some kinds: as many pieces at once as `kinds` says, of each of which so many bytes are kept."""

    def __init__(self, code: NativeCode, size: int, kinds: Iterable[int]) -> None:
        self._code, builder = code, code.builder
        self._size, self._kinds = size, sorted(set(kinds))
        self._next = builder.alloca(I64)
        builder.store(code.field("undo"), self._next)
        self._back = code.function.append_basic_block("back")

    def keep(self, place: ir.Value, count: int, *old: ir.Value) -> None:
        """Keep what so many pieces from a place on have had."""
        code, builder = self._code, self._code.builder
        at = builder.load(self._next)
        for number, each in enumerate(old):
            size = each.type.count * each.type.element.width // 8
            code.store(each, builder.add(at, I64(number * size)), 4)
        last = builder.add(at, I64(self._size * count))
        header = builder.add(
            builder.mul(place, I64(len(self._kinds))), I64(self._kinds.index(count))
        )
        code.store(header, last, 8)
        builder.store(builder.add(last, I64(8)), self._next)

    def refuse_if(self, condition: ir.Value) -> None:
        """Leave the instruction to the interpreter."""
        with self._code.builder.if_then(condition, likely=False):
            self._code.builder.branch(self._back)

    def finish(self, restore: Callable[[ir.Value, int, ir.Value], None]) -> None:
        """All changes have been made. `restore` takes one back: it is given the place, how many
        pieces there are, and the address of what was there."""
        code, builder = self._code, self._code.builder
        kinds = I64(len(self._kinds))
        with builder.goto_block(self._back):
            body, end = (builder.append_basic_block(name) for name in ("body", "end"))
            left = builder.icmp_unsigned(">", builder.load(self._next), code.field("undo"))
            builder.cbranch(left, body, end)
            builder.position_at_end(body)  # the youngest first
            last = builder.sub(builder.load(self._next), I64(8))
            header = code.load(last, I64, 8)
            place, kind = builder.udiv(header, kinds), builder.urem(header, kinds)
            for number, count in enumerate(self._kinds):
                with builder.if_then(builder.icmp_unsigned("==", kind, I64(number))):
                    begin = builder.sub(last, I64(self._size * count))
                    restore(place, count, begin)
                    builder.store(begin, self._next)
            builder.branch(self._back)
            builder.position_at_end(end)
            builder.ret(I64(1))


def any_of(code: NativeCode, conditions: ir.Value) -> ir.Value:
    """Whether one of a vector of conditions is true."""
    bits = ir.IntType(conditions.type.count)
    return code.builder.icmp_unsigned("!=", code.builder.bitcast(conditions, bits), bits(0))


def halves(code: NativeCode, pair: ir.Value) -> tuple[ir.Value, ir.Value]:
    """The two words of a pair."""
    builder = code.builder
    return builder.trunc(pair, I32), builder.trunc(builder.lshr(pair, I64(32)), I32)


def pair(code: NativeCode, low: ir.Value, high: ir.Value) -> ir.Value:
    """Two words as a pair."""
    builder = code.builder
    return builder.or_(builder.zext(low, I64), builder.shl(builder.zext(high, I64), I64(32)))

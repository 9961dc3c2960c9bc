"""Where lanes access memory in native code, and whether they may."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from llvmlite import ir

from mfmadsl.emulator.machine.wave import LANES
from mfmadsl.emulator.machine.width import Width
from mfmadsl.emulator.native.code import I1, I8, I16, I32, I64, NativeCode
from mfmadsl.emulator.text.operand import EXEC

_NEVER = (1 << 63) - 1


@dataclass(frozen=True)
class Lane:
    """An active lane: its wave, and how far its words lie behind those of the first lane of all."""

    wave: ir.Value
    number: ir.Value
    offset: ir.Value


@contextmanager
def active_lanes(code: NativeCode) -> Iterator[Lane]:
    """All active lanes, in the order of waves and lanes."""
    with code.waves() as wave:
        active = code.scalar_pair(I64(EXEC), wave)
        with code.loop(I64(LANES)) as number, lane_if_active(code, active, wave, number) as lane:
            yield lane


@contextmanager
def lane_if_active(
    code: NativeCode, active: ir.Value, wave: ir.Value, number: ir.Value
) -> Iterator[Lane]:
    """A lane of a wave, if its bit is set."""
    builder = code.builder
    with builder.if_then(builder.trunc(builder.lshr(active, number), I1)):
        place = builder.add(builder.mul(wave, I64(LANES)), number)
        yield Lane(wave, number, builder.mul(place, I64(4)))


def word_of(code: NativeCode, row: ir.Value, lane: Lane) -> ir.Value:
    """A lane's word of the register at an address."""
    return code.load(code.builder.add(row, lane.offset), I32, 4)


def put_word(code: NativeCode, row: ir.Value, lane: Lane, word: ir.Value) -> None:
    """Change a lane's word of the register at an address."""
    code.store(word, code.builder.add(row, lane.offset), 4)


def rows_of(code: NativeCode, bank: str, number: ir.Value, count: int) -> list[ir.Value]:
    """The addresses of registers that follow one another."""
    return [code.register_row(bank, code.builder.add(number, I64(place))) for place in range(count)]


def load_words(code: NativeCode, address: ir.Value, width: Width) -> list[ir.Value]:
    """What a lane loads, extended to words."""
    if width.words:
        return [
            code.load(code.builder.add(address, I64(4 * place)), I32)
            for place in range(width.words)
        ]
    narrow = code.load(address, I8 if width.size == 1 else I16)
    extend = code.builder.sext if width.signed else code.builder.zext
    return [extend(narrow, I32)]


def beside(code: NativeCode, old: ir.Value, half: ir.Value, place: str) -> ir.Value:
    """A number of 16 bits in one half of a word whose other half stays."""
    builder = code.builder
    if place == "hi":
        return builder.or_(builder.and_(old, I32(0xFFFF)), builder.shl(half, I32(16)))
    low = builder.and_(half, I32(0xFFFF))
    return builder.or_(builder.and_(old, I32(0xFFFF_0000)), low)


def put_words(
    code: NativeCode, rows: list[ir.Value], lane: Lane, words: list[ir.Value], width: Width
) -> None:
    """Put what a lane has loaded into registers."""
    for row, word in zip(rows, words, strict=True):
        value = beside(code, word_of(code, row, lane), word, width.half) if width.half else word
        put_word(code, row, lane, value)


def refuse_unaligned(code: NativeCode, address: ir.Value, width: Width) -> None:
    """Parts of words are written in an order of their own, which the interpreter knows."""
    size = min(width.size, 4)
    if size > 1:
        rest = code.builder.and_(address, I64(size - 1))
        code.refuse_if(code.builder.icmp_unsigned("!=", rest, I64(0)))


def store_words(
    code: NativeCode,
    rows: list[ir.Value],
    width: Width,
    lanes: Callable[[NativeCode], Iterator[tuple[Lane, ir.Value]]],
) -> None:
    """Store registers: first the first word of all lanes, then the second. `lanes` loops over the
    lanes that do, and gives their addresses."""
    builder = code.builder
    for place, row in enumerate(rows):
        for lane, address in lanes(code):
            word = word_of(code, row, lane)
            if width.half == "hi":
                word = builder.lshr(word, I32(16))
            if not width.words:
                word = builder.trunc(word, I8 if width.size == 1 else I16)
            code.store(word, builder.add(address, I64(4 * place)))


def repeated(code: NativeCode, value: ir.Value, count: int) -> ir.Value:
    """A vector of the same value."""
    one = ir.VectorType(value.type, 1)
    first = code.builder.insert_element(ir.Constant(one, ir.Undefined), value, I32(0))
    places = ir.Constant(ir.VectorType(I32, count), [0] * count)
    return code.builder.shuffle_vector(first, ir.Constant(one, ir.Undefined), places)


class Segments:
    """Looks whether addresses lie in a segment of global memory: mostly in that of the last one."""

    def __init__(self, code: NativeCode, size: ir.Value, is_store: bool) -> None:
        self._code, self._size, self._is_store = code, size, is_store
        builder = code.builder
        self._low, self._high = builder.alloca(I64), builder.alloca(I64)
        builder.store(I64(_NEVER), self._low)
        builder.store(I64(0), self._high)

    def are_elsewhere(self, addresses: ir.Value) -> ir.Value:
        """Which of a vector are not in the segment of the last one."""
        code, builder, count = self._code, self._code.builder, addresses.type.count
        ends = builder.add(addresses, repeated(code, self._size, count))
        low, high = (repeated(code, builder.load(each), count) for each in (self._low, self._high))
        below, above = (
            builder.icmp_signed("<", addresses, low),
            builder.icmp_signed(">", ends, high),
        )
        return builder.or_(below, above)

    def check(self, address: ir.Value) -> None:
        """Refuse an access that is not inside of a segment, or is to one that is protected."""
        code, builder = self._code, self._code.builder
        end = builder.add(address, self._size)
        below = builder.icmp_signed("<", address, builder.load(self._low))
        above = builder.icmp_signed(">", end, builder.load(self._high))
        with builder.if_then(builder.or_(below, above), likely=False):
            builder.store(I64(_NEVER), self._low)
            with code.loop(code.field("segments")) as place:
                start = self._entry("starts", place)
                stop = self._entry("ends", place)
                inside = builder.and_(
                    builder.icmp_signed("<=", start, address), builder.icmp_signed("<=", end, stop)
                )
                with builder.if_then(inside):
                    if self._is_store:
                        flag = code.load(builder.add(code.field("protected"), place), I8)
                        code.refuse_if(builder.icmp_unsigned("!=", flag, I8(0)))
                    builder.store(start, self._low)
                    builder.store(stop, self._high)
            missing = builder.icmp_signed("==", builder.load(self._low), I64(_NEVER))
            code.refuse_if(missing)

    def _entry(self, name: str, place: ir.Value) -> ir.Value:
        code, builder = self._code, self._code.builder
        table = code.field("starts" if name == "starts" else "ends")
        return code.load(builder.add(table, builder.mul(place, I64(8))), I64, 8)


def host_address(code: NativeCode, address: ir.Value) -> ir.Value:
    """Where on this machine an address of global memory lies."""
    builder = code.builder
    offset = builder.sub(address, code.field("first_address"))
    return builder.add(code.field("memory"), offset)


def refuse_if_watched(code: NativeCode) -> None:
    """Stores are the interpreter's where somebody looks for changes of memory."""
    code.refuse_if(code.builder.icmp_unsigned("==", code.field("may_store"), I64(0)))

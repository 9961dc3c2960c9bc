"""Looks at accesses to global memory in native code: see `check`.

For each piece the last write is kept, and the last reads of two waves. Those of other waves have to
be ones of the same workgroup, behind which a barrier lies.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from llvmlite import ir

from mfmadsl.emulator.machine.wave import LANES
from mfmadsl.emulator.native.access import repeated
from mfmadsl.emulator.native.check import (
    Undo,
    any_of,
    define,
    entry,
    halves,
    pair,
    placed_lanes,
    refuse_undefined,
    ticket,
)
from mfmadsl.emulator.native.code import I1, I8, I32, I64, NativeCode
from mfmadsl.emulator.native.fields import PAGE_BITS, REACH_BITS, Field
from mfmadsl.emulator.native.form import CodeForm

_LANE_BITS = 6
_AT_ONCE = 16  # pieces, of lanes that follow one another
_NUMBERS = ir.VectorType(I32, _AT_ONCE)
_WRITES: tuple[Field, Field] = ("written", "updated")
_READS: tuple[Field, Field] = ("read", "read_before")
_PAGES: dict[Field, Field] = {
    "written": "written_pages", "updated": "updated_pages", "read": "read_pages",
    "read_before": "read_before_pages",
}  # fmt: skip
_Refuse = Callable[[ir.Value], None]


@dataclass(frozen=True)
class _Wave:
    """A wave's number in the launch, that of its workgroup's first, its ticket and its mark."""

    number: ir.Value
    first: ir.Value
    ticket: ir.Value
    mark: ir.Value

    def note(self, code: NativeCode) -> ir.Value:
        """What is noted of a read."""
        return pair(code, code.builder.add(self.number, I32(1)), self.mark)


def _wave(code: NativeCode, wave: ir.Value) -> _Wave:
    """The values are the instruction's number, and how far it reaches."""
    builder = code.builder
    index = entry(code, "index", wave)
    number = entry(code, "ids", index)
    first = builder.sub(number, builder.urem(number, code.field("per_group")))
    mine = ticket(code, "memory_issued", "memory_ahead", index, 0)
    mark = builder.or_(builder.shl(mine, I64(REACH_BITS)), code.value(1))
    narrow = (builder.trunc(each, I32) for each in (number, first, mine, mark))
    return _Wave(*narrow)


class _Block:
    """So many pieces of memory that follow one another."""

    def __init__(self, code: NativeCode, first: ir.Value, count: int) -> None:
        self.code, self.builder, self.first, self.count = code, code.builder, first, count
        self.kind = ir.VectorType(I64, count)

    def _at(self, table: Field) -> ir.Value:
        return self.builder.add(self.code.field(table), self.builder.mul(self.first, I64(8)))

    def load(self, table: Field) -> ir.Value:
        """What a table has of them."""
        return self.code.load(self._at(table), self.kind, 4)

    def put(self, table: Field, value: ir.Value) -> None:
        """Change a table: to the same of all, or to a vector."""
        full = value if value.type == self.kind else repeated(self.code, value, self.count)
        self.code.store(full, self._at(table), 4)

    def is_noted(self, table: Field) -> ir.Value:
        """Whether there may be any accesses, or there are surely none."""
        code, builder = self.code, self.builder
        pages = code.field(_PAGES[table])
        ends = (self.first, builder.add(self.first, I64(self.count - 1)))
        flags = [
            code.load(builder.add(pages, builder.lshr(end, I64(PAGE_BITS))), I8) for end in ends
        ]
        return builder.icmp_unsigned("!=", builder.or_(*flags), I8(0))

    def mark_noted(self, table: Field) -> None:
        """There are some now."""
        code, builder = self.code, self.builder
        for end in (self.first, builder.add(self.first, I64(self.count - 1))):
            page = builder.add(code.field(_PAGES[table]), builder.lshr(end, I64(PAGE_BITS)))
            code.store(I8(1), page)

    def are_any(self, notes: ir.Value) -> ir.Value:
        """Whether there are any accesses."""
        return any_of(self.code, self.builder.icmp_unsigned("!=", notes, self.kind(None)))

    def refuse_late(self, table: Field, wave: _Wave, refuse: _Refuse) -> None:
        """Refuse what does not surely come behind the accesses of a table. Of writes the lanes are
        told apart, and they must not be of the same instruction, either."""
        some = self.are_any(self.load(table))
        with self.builder.if_then(some), self.code.loop(I64(self.count)) as place:
            one = _Block(self.code, self.builder.add(self.first, place), 1)
            note = self.builder.extract_element(one.load(table), I32(0))
            self._refuse_one(note, wave, refuse, table in _WRITES)

    def _refuse_one(self, note: ir.Value, wave: _Wave, refuse: _Refuse, lanes: bool) -> None:
        code, builder = self.code, self.builder
        who, mark = halves(code, note)
        other = builder.sub(who, I32(1))
        if lanes:
            other = builder.lshr(other, I32(_LANE_BITS))
        when = builder.lshr(mark, I32(REACH_BITS))
        apart = builder.sub(other, wave.first)
        per_group = builder.trunc(code.field("per_group"), I32)
        together = builder.icmp_unsigned("<", apart, per_group)
        none = builder.icmp_unsigned("==", note, I64(0))
        mine = builder.icmp_unsigned("==", other, wave.number)
        if lanes:
            again = builder.icmp_unsigned("==", when, wave.ticket)
            refuse(builder.and_(mine, again))
        other = builder.select(none, wave.number, other)
        known = entry(code, "known", builder.zext(other, I64), I32)
        ordered = builder.icmp_signed("<=", when, known)
        between = builder.trunc(code.field("between_groups"), I1)
        right = builder.select(together, ordered, builder.not_(between))
        refuse(builder.not_(builder.or_(builder.or_(none, mine), right)))

    def note_before(self, wave: _Wave) -> None:
        """Where another wave has read before, that is now the read before the last."""
        code, builder = self.code, self.builder
        before = self.load("read")
        with builder.if_then(self.are_any(before)):
            vector = ir.VectorType(I32, self.count)
            who = repeated(code, builder.add(wave.number, I32(1)), self.count)
            others = builder.icmp_unsigned("!=", builder.trunc(before, vector), who)
            some = builder.icmp_unsigned("!=", before, self.kind(None))
            moves = builder.and_(others, some)
            with builder.if_then(any_of(code, moves)):
                kept = self.load("read_before")
                self.mark_noted("read_before")
                self.put("read_before", builder.select(moves, before, kept))


class _Lanes:
    """Where the lanes of an instruction go, which move so many bytes each."""

    def __init__(self, code: NativeCode, size: int) -> None:
        self._code, self._builder, self._size = code, code.builder, size
        self.shift = code.field("memory_shift")
        self._most, self._first, self._differ = (code.builder.alloca(I64) for _ in range(3))
        for place, value in ((self._most, 0), (self._first, -1), (self._differ, 0)):
            code.builder.store(I64(value), place)

    def pieces(self, offset: ir.Value) -> tuple[ir.Value, ir.Value]:
        """The first and the last piece from an offset on."""
        builder = self._builder
        last = builder.add(offset, I64(self._size - 1))
        return builder.lshr(offset, self.shift), builder.lshr(last, self.shift)

    def look(self) -> None:
        """Look at all of them."""
        builder = self._builder
        with placed_lanes(self._code, lambda wave: wave) as lane:
            first, last = self.pieces(lane.offset)
            count = builder.add(builder.sub(last, first), I64(1))
            so_far, start = builder.load(self._most), builder.load(self._first)
            more = builder.icmp_unsigned(">", count, so_far)
            builder.store(builder.select(more, count, so_far), self._most)
            begins = builder.icmp_signed("<", start, I64(0))
            start = builder.select(begins, lane.offset, start)
            builder.store(start, self._first)
            apart = builder.or_(builder.load(self._differ), builder.xor(start, lane.offset))
            builder.store(apart, self._differ)

    @property
    def most(self) -> ir.Value:
        """The most pieces of one of them."""
        return self._builder.load(self._most)

    def are_apart(self, expected: int) -> ir.Value:
        """Whether they access whole pieces of the expected size, and either the same ones or
        others."""
        if self._size & self._size - 1:  # three words
            return I1(0)
        builder = self._builder
        odd = builder.and_(builder.load(self._differ), I64(self._size - 1))
        cut = builder.and_(builder.load(self._first), I64((1 << expected) - 1))
        none = builder.icmp_unsigned("==", builder.or_(odd, cut), I64(0))
        return builder.and_(builder.icmp_unsigned("==", self.shift, I64(expected)), none)


def _each_block(
    code: NativeCode, size: int, shift: int, write: Callable[[_Block, _Wave, ir.Value], None]
) -> None:
    """The pieces of all lanes, of a size that is known: many at once where the lanes of a wave go
    to places that follow one another. Each comes with the numbers of its lanes."""
    builder, count = code.builder, size >> shift
    with code.waves() as wave:
        once = _wave(code, wave)
        places = builder.add(code.field("places"), builder.mul(wave, I64(8 * LANES)))
        with builder.if_else(_is_row(code, places, size)) as (yes, no):
            with yes:
                first = builder.lshr(code.load(places, I64, 8), I64(shift))
                lanes = ir.Constant(_NUMBERS, [place // count for place in range(_AT_ONCE)])
                with code.loop(I64(LANES * count // _AT_ONCE)) as number:
                    start = builder.mul(number, I64(_AT_ONCE))
                    block = _Block(code, builder.add(first, start), _AT_ONCE)
                    begin = builder.trunc(builder.udiv(start, I64(count)), I32)
                    write(block, once, builder.add(lanes, repeated(code, begin, _AT_ONCE)))
            with no, code.loop(I64(LANES)) as lane:
                offset = code.load(builder.add(places, builder.mul(lane, I64(8))), I64, 8)
                with builder.if_then(builder.icmp_signed(">=", offset, I64(0))):
                    block = _Block(code, builder.lshr(offset, I64(shift)), count)
                    write(block, once, repeated(code, builder.trunc(lane, I32), count))


def _is_row(code: NativeCode, places: ir.Value, size: int) -> ir.Value:
    """Whether the lanes of a wave all go somewhere, one behind the other."""
    builder = code.builder
    if size & size - 1:
        return I1(0)
    first = code.load(places, I64, 8)
    found = builder.icmp_signed(">=", first, I64(0))
    for begin in range(0, LANES, _AT_ONCE):
        kind = ir.VectorType(I64, _AT_ONCE)
        offsets = code.load(builder.add(places, I64(8 * begin)), kind, 8)
        steps = ir.Constant(kind, [size * (begin + lane) for lane in range(_AT_ONCE)])
        there = builder.add(repeated(code, first, _AT_ONCE), steps)
        other = any_of(code, builder.icmp_unsigned("!=", offsets, there))
        found = builder.and_(found, builder.not_(other))
    return found


def write_memory_load_check(code: NativeCode, form: CodeForm) -> None:
    """Of loads of so many bytes, of pieces of which the size is expected.

    Lanes are noted piece by piece, unless they access either the same pieces or others.
    """
    size, expected = form.options
    builder, lanes = code.builder, _Lanes(code, size)
    lanes.look()
    shadow = builder.icmp_unsigned("!=", code.field("memory_undefined"), I64(0))
    with builder.if_then(shadow), placed_lanes(code, lambda wave: wave) as lane:
        refuse_undefined(code, "memory_undefined", lane.offset, size)

    def check(block: _Block, wave: _Wave, numbers: ir.Value | None = None) -> None:
        del numbers
        for table in _WRITES:
            with builder.if_then(block.is_noted(table)):
                block.refuse_late(table, wave, code.refuse_if)

    def check_and_note(block: _Block, wave: _Wave, numbers: ir.Value) -> None:
        check(block, wave, numbers)
        block.note_before(wave)

    def note(block: _Block, wave: _Wave, numbers: ir.Value | None = None) -> None:
        del numbers
        block.put("read", wave.note(code))
        block.mark_noted("read")

    def one_by_one() -> None:
        with placed_lanes(code, lambda wave: _wave(code, wave)) as lane:
            first, last = lanes.pieces(lane.offset)
            with code.loop(builder.add(last, I64(1)), first) as piece:
                check(_Block(code, piece, 1), lane.wave)
        with code.loop(lanes.most) as place:
            for notes in (False, True):
                with placed_lanes(code, lambda wave: _wave(code, wave)) as lane:
                    first, last = lanes.pieces(lane.offset)
                    piece = builder.add(first, place)
                    inside = builder.icmp_unsigned("<", piece, last)
                    block = _Block(code, builder.select(inside, piece, last), 1)
                    if notes:
                        note(block, lane.wave)
                    else:
                        block.note_before(lane.wave)

    if size < 1 << expected:  # less than a piece
        one_by_one()
        return
    with builder.if_else(lanes.are_apart(expected)) as (yes, no):
        with yes:
            _each_block(code, size, expected, check_and_note)
            _each_block(code, size, expected, note)
        with no:
            one_by_one()


def write_memory_store_check(code: NativeCode, form: CodeForm) -> None:
    """Of stores of so many bytes, likewise."""
    size, expected = form.options
    builder, known = code.builder, code.field("memory_shift")
    count = size >> expected
    undo = Undo(code, 8, (1, count, _AT_ONCE))
    odd = builder.sub(builder.shl(I64(1), known), I64(1))
    is_known = builder.icmp_unsigned("==", known, I64(expected))
    with placed_lanes(code, lambda wave: wave) as lane:
        rest = builder.and_(lane.offset, odd)
        code.refuse_if(builder.icmp_unsigned("!=", rest, I64(0)))

    def check(block: _Block, wave: _Wave, numbers: ir.Value) -> None:
        for table in ("updated", *_READS):
            with builder.if_then(block.is_noted(table)):
                block.refuse_late(table, wave, undo.refuse_if)
        block.refuse_late("written", wave, undo.refuse_if)
        undo.keep(block.first, block.count, block.load("written"))
        first = builder.add(builder.shl(wave.number, I32(_LANE_BITS)), I32(1))
        who = builder.add(repeated(code, first, block.count), numbers)
        marks = repeated(code, pair(code, I32(0), wave.mark), block.count)
        block.put("written", builder.or_(builder.zext(who, block.kind), marks))
        block.mark_noted("written")

    with builder.if_else(is_known) as (yes, no):
        with yes:
            _each_block(code, size, expected, check)
        with no, placed_lanes(code, lambda wave: _wave(code, wave)) as lane:
            first = builder.lshr(lane.offset, known)
            with code.loop(builder.lshr(I64(size), known)) as place:
                block = _Block(code, builder.add(first, place), 1)
                check(block, lane.wave, repeated(code, builder.trunc(lane.number, I32), 1))
    shadow = builder.icmp_unsigned("!=", code.field("memory_undefined"), I64(0))
    with builder.if_then(shadow), placed_lanes(code, lambda wave: wave) as place:
        define(code, "memory_undefined", place, size)

    def restore(place: ir.Value, pieces: int, at: ir.Value) -> None:
        block = _Block(code, place, pieces)
        block.put("written", code.load(at, block.kind, 4))

    undo.finish(restore)

"""Looks at accesses to the LDS in native code: see `check`.

For each piece the last write is kept, and the last read of each wave of the workgroup. They have to
lie before the last barrier, and to be waited for there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from llvmlite import ir

from mfmadsl.emulator.machine.wave import LANES
from mfmadsl.emulator.native.access import repeated
from mfmadsl.emulator.native.check import (
    PlacedLane,
    Undo,
    any_of,
    define,
    entry,
    placed_in_wave,
    placed_lanes,
    refuse_undefined,
    ticket,
)
from mfmadsl.emulator.native.code import I8, I32, I64, NativeCode
from mfmadsl.emulator.native.fields import Field
from mfmadsl.emulator.native.form import CodeForm
from mfmadsl.emulator.native.number import declared

_NEVER = (1 << 31) - 1
_AT_ONCE = 16  # lanes
_OFFSETS = ir.VectorType(I64, _AT_ONCE)
_Refuse = Callable[[ir.Value], None]


@dataclass(frozen=True)
class _Wave:
    """A wave's number, that in its workgroup, that of the workgroup's first, its ticket, and up to
    which tickets all writes and reads of its workgroup are over, at least."""

    index: ir.Value
    number: ir.Value
    first: ir.Value
    ticket: ir.Value
    over: ir.Value


class _Waves:
    """What is known of waves. The value is the instruction's number."""

    def __init__(self, code: NativeCode) -> None:
        self._code, self._least = code, code.builder.alloca(I64)

    def of(self, wave: ir.Value) -> _Wave:
        """What is known of one."""
        code, builder = self._code, self._code.builder
        index = entry(code, "index", wave)
        number = builder.urem(index, code.field("per_group"))
        first = builder.sub(index, number)
        builder.store(I64(_NEVER), self._least)
        with code.loop(code.field("per_group")) as mate:
            passed = entry(code, "lds_passed", builder.add(first, mate))
            least = builder.load(self._least)
            less = builder.icmp_signed("<", passed, least)
            builder.store(builder.select(less, passed, least), self._least)
        mine = ticket(code, "lds_issued", "lds_ahead", index, 0)
        over = builder.trunc(builder.load(self._least), I32)
        return _Wave(index, number, first, builder.trunc(mine, I32), over)


class _Block:
    """So many pieces of LDS that follow one another."""

    def __init__(self, code: NativeCode, first: ir.Value, count: int) -> None:
        self.code, self.builder, self.first, self.count = code, code.builder, first, count
        self.kind = ir.VectorType(I32, count)

    def _at(self, table: ir.Value) -> ir.Value:
        return self.builder.add(table, self.builder.mul(self.first, I64(4)))

    def load(self, table: Field) -> ir.Value:
        """What a table has of them."""
        return self.code.load(self._at(self.code.field(table)), self.kind, 4)

    def put(self, table: Field, value: ir.Value) -> None:
        """Change a table: to the same of all, or to a vector."""
        full = value if value.type == self.kind else repeated(self.code, value, self.count)
        self.code.store(full, self._at(self.code.field(table)), 4)

    def reads(self, number: ir.Value) -> ir.Value:
        """The address of the last reads of a wave of the workgroup."""
        row = self.builder.mul(number, self.code.field("lds_row"))
        return self._at(self.builder.add(self.code.field("lds_read"), row))

    def load_reads(self, number: ir.Value) -> ir.Value:
        """These reads."""
        return self.code.load(self.reads(number), self.kind, 4)

    def is_behind(self, tickets: ir.Value, limit: ir.Value) -> ir.Value:
        """Whether some tickets are behind a limit, or of loads straight to the LDS."""
        compared = self.builder.icmp_unsigned(">", tickets, repeated(self.code, limit, self.count))
        return any_of(self.code, compared)

    def each(self, vector: ir.Value) -> Iterator[ir.Value]:
        """The elements of a vector."""
        for place in range(self.count):
            yield self.builder.extract_element(vector, I32(place))

    def refuse_late_write(self, written: ir.Value, wave: _Wave, refuse: _Refuse) -> None:
        """Refuse pieces whose last write may not be over."""
        code, builder = self.code, self.builder
        with builder.if_then(self.is_behind(written, wave.over), likely=False):
            writers = self.each(self.load("lds_writer"))
            for last, writer in zip(self.each(written), writers, strict=True):
                when, who = builder.sext(last, I64), builder.zext(writer, I64)
                another = builder.icmp_signed("!=", who, wave.index)
                late = builder.icmp_signed(">", when, entry(code, "lds_passed", who))
                refuse(builder.and_(late, another))
                # One of a load straight to LDS is over behind a barrier.
                passed = entry(code, "memory_passed", who)
                refuse(builder.icmp_signed(">", builder.sub(I64(0), when), passed))

    def refuse_late_reads(self, wave: _Wave, refuse: _Refuse) -> None:
        """Refuse pieces that another wave may be reading."""
        code, builder = self.code, self.builder
        with code.loop(code.field("per_group")) as reader:
            mine = builder.icmp_unsigned("==", reader, wave.number)
            limit = builder.select(mine, I32(_NEVER), wave.over)
            reads = self.load_reads(reader)
            with builder.if_then(self.is_behind(reads, limit), likely=False):
                passed = entry(code, "lds_passed", builder.add(wave.first, reader))
                passed = builder.select(mine, I64(_NEVER), passed)
                for read in self.each(reads):
                    refuse(builder.icmp_signed(">", builder.sext(read, I64), passed))


@contextmanager
def _blocks(
    code: NativeCode, lane: PlacedLane[_Wave], size: int, shift: int | None, refuse: _Refuse
) -> Iterator[_Block]:
    """The pieces of a lane: all at once where their size is known, or else one by one."""
    builder = code.builder
    if shift is not None:
        rest = builder.and_(lane.offset, I64((1 << shift) - 1))
        refuse(builder.icmp_unsigned("!=", rest, I64(0)))
        yield _Block(code, builder.lshr(lane.offset, I64(shift)), size >> shift)
        return
    known = code.field("lds_shift")
    odd = builder.sub(builder.shl(I64(1), known), I64(1))
    refuse(builder.icmp_unsigned("!=", builder.and_(lane.offset, odd), I64(0)))
    first = builder.lshr(lane.offset, known)
    with code.loop(builder.lshr(I64(size), known)) as place:
        yield _Block(code, builder.add(first, place), 1)


def _for_each_size(code: NativeCode, shift: int, write: Callable[[int | None], None]) -> None:
    """Code for pieces of the size that a program has at first, and for others."""
    is_known = code.builder.icmp_unsigned("==", code.field("lds_shift"), I64(shift))
    with code.builder.if_else(is_known) as (yes, no):
        with yes:
            write(shift)
        with no:
            write(None)


class _Chunks:
    """In which chunks of the LDS waves are, as bits of a mask: 64 chunks make all of it. What waves
    have accessed since the last barrier is kept likewise, and not over for sure.

    Where nobody else is in the same chunks, there is no need to look at pieces.
    """

    def __init__(self, code: NativeCode, size: int) -> None:
        self._code, self._size = code, size
        self._mask, self._others, self.offsets = (code.builder.alloca(I64) for _ in range(3))
        code.builder.store(I64(0), self.offsets)  # their bits, of all lanes

    def of(self, wave: ir.Value) -> ir.Value:
        """The chunks that the lanes of a wave access now."""
        code, builder = self._code, self._code.builder
        group = entry(code, "workgroup", wave)
        begin = repeated(code, builder.mul(group, code.field("lds_stride")), _AT_ONCE)
        shift = repeated(code, code.field("lds_chunk"), _AT_ONCE)
        one = ir.Constant(_OFFSETS, [1] * _AT_ONCE)
        builder.store(I64(0), self._mask)
        places = builder.add(code.field("places"), builder.mul(wave, I64(8 * LANES)))
        with code.loop(I64(LANES // _AT_ONCE)) as number:
            at = builder.add(places, builder.mul(number, I64(8 * _AT_ONCE)))
            offsets = code.load(at, _OFFSETS, 8)
            nowhere = builder.icmp_signed("<", offsets, _OFFSETS(None))
            first = builder.sub(offsets, begin)
            last = builder.add(first, ir.Constant(_OFFSETS, [self._size - 1] * _AT_ONCE))
            ends = [builder.shl(one, builder.lshr(end, shift)) for end in (first, last)]
            bits = builder.select(nowhere, _OFFSETS(None), builder.or_(*ends))
            some = builder.select(nowhere, _OFFSETS(None), offsets)
            for kept, more in ((self._mask, bits), (self.offsets, some)):
                name = f"llvm.vector.reduce.or.v{_AT_ONCE}i64"
                reduce = declared(builder, name, I64, [more])
                found = builder.or_(builder.load(kept), builder.call(reduce, [more]))
                builder.store(found, kept)
        return builder.load(self._mask)

    def others(self, wave: _Wave, tables: Iterable[Field]) -> ir.Value:
        """The chunks that other waves of the workgroup have accessed. Where all chunks of a wave
        are marked, nothing is known of what it did: that counts for itself, too."""
        code, builder = self._code, self._code.builder
        builder.store(I64(0), self._others)
        with code.loop(code.field("per_group")) as mate:
            place = builder.add(wave.first, mate)
            bits = [entry(code, table, place) for table in tables]
            both = bits[0] if len(bits) == 1 else builder.or_(*bits)
            mine = builder.icmp_unsigned("==", mate, wave.number)
            known = builder.icmp_signed("!=", both, I64(-1))
            theirs = builder.select(builder.and_(mine, known), I64(0), both)
            builder.store(builder.or_(builder.load(self._others), theirs), self._others)
        return builder.load(self._others)

    def note(self, table: Field, wave: _Wave, chunks: ir.Value) -> None:
        """A wave has accessed chunks."""
        code, builder = self._code, self._code.builder
        at = builder.add(code.field(table), builder.mul(wave.index, I64(8)))
        code.store(builder.or_(code.load(at, I64, 8), chunks), at, 8)


def write_lds_load_check(code: NativeCode, form: CodeForm) -> None:
    """Of loads of so many bytes, of pieces of which the size is expected."""
    size, expected = form.options
    builder, waves, chunks = code.builder, _Waves(code), _Chunks(code, size)

    def write(shift: int | None, looks: bool) -> None:
        with lanes_of_wave(code) as lane:
            refuse_undefined(code, "lds_undefined", lane.offset, size)
            with _blocks(code, lane, size, shift, code.refuse_if) as block:
                if looks:
                    block.refuse_late_write(block.load("lds_written"), lane.wave, code.refuse_if)
                mine = repeated(code, lane.wave.ticket, block.count)
                code.store(mine, block.reads(lane.wave.number), 4)

    with code.waves() as number:
        wave, mine = waves.of(number), chunks.of(number)
        chunks.note("lds_read_chunks", wave, mine)
        met = builder.and_(mine, chunks.others(wave, ("lds_written_chunks",)))
        lanes_of_wave = partial(placed_in_wave, number=number, wave=wave)
        alone = builder.and_(
            builder.icmp_unsigned("==", met, I64(0)),
            builder.icmp_unsigned("==", code.field("lds_shift"), I64(expected)),
        )
        with builder.if_else(alone) as (yes, no):
            with yes:
                write(expected, looks=False)
            with no:
                _for_each_size(code, expected, partial(write, looks=True))


def write_lds_store_check(code: NativeCode, form: CodeForm) -> None:
    """Of stores of so many bytes, likewise."""
    size, expected = form.options
    builder, waves, chunks = code.builder, _Waves(code), _Chunks(code, size)
    count = size >> expected
    undo = Undo(code, 8, (1, count))
    met = builder.alloca(I64)
    builder.store(builder.xor(code.field("lds_shift"), I64(expected)), met)
    with code.waves() as number:
        wave, mine = waves.of(number), chunks.of(number)
        chunks.note("lds_written_chunks", wave, mine)
        theirs = chunks.others(wave, ("lds_written_chunks", "lds_read_chunks"))
        builder.store(builder.or_(builder.load(met), builder.and_(mine, theirs)), met)
    cut = builder.and_(builder.load(chunks.offsets), I64((1 << expected) - 1))
    are_alone = builder.icmp_unsigned("==", builder.or_(builder.load(met), cut), I64(0))
    no_atomics = builder.icmp_unsigned("==", code.field("lds_atomic"), I64(0))

    def note(block: _Block, wave: _Wave) -> None:
        block.put("lds_written", wave.ticket)
        block.put("lds_writer", builder.trunc(wave.index, I32))

    def write(shift: int | None) -> None:
        with (
            placed_lanes(code, waves.of) as lane,
            _blocks(code, lane, size, shift, undo.refuse_if) as block,
        ):
            written = block.load("lds_written")
            block.refuse_late_write(written, lane.wave, undo.refuse_if)
            _refuse_atomic(block, undo)
            block.refuse_late_reads(lane.wave, undo.refuse_if)
            undo.keep(block.first, block.count, written, block.load("lds_writer"))
            note(block, lane.wave)

    def restore(place: ir.Value, pieces: int, at: ir.Value) -> None:
        block = _Block(code, place, pieces)
        block.put("lds_written", code.load(at, block.kind, 4))
        block.put("lds_writer", code.load(builder.add(at, I64(4 * pieces)), block.kind, 4))

    with builder.if_else(builder.and_(are_alone, no_atomics)) as (yes, no):
        with yes, placed_lanes(code, waves.of) as lane:
            first = builder.lshr(lane.offset, I64(expected))
            note(_Block(code, first, count), lane.wave)
            define(code, "lds_undefined", lane, size)
        with no:
            _for_each_size(code, expected, write)
            with placed_lanes(code, waves.of) as lane:
                define(code, "lds_undefined", lane, size)
    undo.finish(restore)


def _refuse_atomic(block: _Block, undo: Undo) -> None:
    code, builder, table = block.code, block.builder, block.code.field("lds_atomic")
    with builder.if_then(builder.icmp_unsigned("!=", table, I64(0)), likely=False):
        for place in range(block.count):
            atomic = code.load(builder.add(table, builder.add(block.first, I64(place))), I8)
            undo.refuse_if(builder.icmp_unsigned("!=", atomic, I8(0)))

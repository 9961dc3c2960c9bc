"""The frame of a piece of native code: what it reads of its surroundings, and its loops.

A function takes the address of the fields and that of a step's values, and gives 0, or 1 if the
interpreter has to execute the instruction instead; then it has changed nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from llvmlite import ir

from mfmadsl.emulator.machine.wave import LANES
from mfmadsl.emulator.native.fields import FIELDS, Field
from mfmadsl.emulator.native.number import VectorNumber, splat
from mfmadsl.emulator.text.operand import EXEC

I1, I8, I16, I32, I64 = (ir.IntType(bits) for bits in (1, 8, 16, 32, 64))
WIDTH = 16
"""Lanes that are computed at once: a row of DPP."""
CHUNKS = LANES // WIDTH
ROW_BYTES = 4 * LANES


class NativeCode:
    """One function that is being written."""

    def __init__(self, module: ir.Module, name: str) -> None:
        self.module = module
        kind = ir.FunctionType(I64, [I64.as_pointer(), I64.as_pointer()])
        self.function = ir.Function(self.module, kind, name)
        self.builder = ir.IRBuilder(self.function.append_basic_block("entry"))
        self._entry = self.function.append_basic_block("begin")
        self._begin = self.builder.branch(self._entry)
        self.builder.position_at_end(self._entry)
        self._fields: dict[Field, ir.Value] = {}
        self._values: dict[int, ir.Value] = {}

    def field(self, name: Field) -> ir.Value:
        """One of the fields."""
        if name not in self._fields:
            self._fields[name] = self._loaded(self.function.args[0], FIELDS.index(name))
        return self._fields[name]

    def value(self, place: int) -> ir.Value:
        """A value of the step: the number of a register, or a constant."""
        if place not in self._values:
            self._values[place] = self._loaded(self.function.args[1], 1 + place)
        return self._values[place]

    def _loaded(self, base: ir.Value, place: int) -> ir.Value:
        """Loaded where the function begins, so that it is there everywhere."""
        builder = ir.IRBuilder(self.function.entry_basic_block)
        builder.position_before(self._begin)
        return builder.load(builder.gep(base, [I64(place)]))

    def finish(self) -> None:
        """The function has done its work."""
        self.builder.ret(I64(0))

    @contextmanager
    def loop(self, stop: ir.Value, start: ir.Value | None = None) -> Iterator[ir.Value]:
        """A loop of an index from 0, or from `start`, below `stop`; there may be nothing to do."""
        builder = self.builder
        before = builder.block
        head = builder.append_basic_block("head")
        body, end = builder.append_basic_block("body"), builder.append_basic_block("end")
        builder.branch(head)
        builder.position_at_end(head)
        index = builder.phi(I64)
        index.add_incoming(I64(0) if start is None else start, before)
        builder.cbranch(builder.icmp_unsigned("<", index, stop), body, end)
        builder.position_at_end(body)
        yield index
        index.add_incoming(builder.add(index, I64(1)), builder.block)
        builder.branch(head)
        builder.position_at_end(end)

    @contextmanager
    def waves(self) -> Iterator[ir.Value]:
        """A loop over the waves."""
        last, first = self.field("last"), self.field("first")
        with self.loop(last, first) as wave:
            yield wave

    def refuse_if(self, condition: ir.Value) -> None:
        """Leave the instruction to the interpreter."""
        with self.builder.if_then(condition, likely=False):
            self.builder.ret(I64(1))

    # Registers.

    def register_row(self, bank: str, number: ir.Value) -> ir.Value:
        """The address of a vector register of the first wave."""
        size = self.builder.mul(self.field("count"), I64(ROW_BYTES))
        file = self.field("vector" if bank == "v" else "accumulation")
        return self.builder.add(file, self.builder.mul(number, size))

    def scalar_place(self, number: ir.Value, wave: ir.Value) -> ir.Value:
        """The address of a scalar register of a wave."""
        place = self.builder.add(self.builder.mul(number, self.field("count")), wave)
        return self.builder.add(self.field("scalar"), self.builder.mul(place, I64(4)))

    def scc_place(self, wave: ir.Value) -> ir.Value:
        """The address of the scalar condition code of a wave."""
        return self.builder.add(self.field("scc"), wave)

    def at(self, address: ir.Value, kind: ir.Type) -> ir.Value:
        """A pointer to what lies at an address."""
        return self.builder.inttoptr(address, kind.as_pointer())

    def load(self, address: ir.Value, kind: ir.Type, align: int = 1) -> ir.Value:
        """What lies at an address."""
        return self.builder.load(self.at(address, kind), align=align)

    def store(self, value: ir.Value, address: ir.Value, align: int = 1) -> None:
        """Put a value at an address."""
        self.builder.store(value, self.at(address, value.type), align=align)

    def scalar(self, number: ir.Value, wave: ir.Value) -> ir.Value:
        """A scalar register of a wave."""
        return self.load(self.scalar_place(number, wave), I32, 4)

    def scalar_pair(self, number: ir.Value, wave: ir.Value) -> ir.Value:
        """Two scalar registers of a wave as one number."""
        low = self.scalar(number, wave)
        high = self.scalar(self.builder.add(number, I64(1)), wave)
        builder = self.builder
        wide = builder.shl(builder.zext(high, I64), I64(32))
        return builder.or_(builder.zext(low, I64), wide)

    def put_scalar(self, number: ir.Value, wave: ir.Value, value: ir.Value) -> None:
        """Change a scalar register of a wave, or two."""
        builder = self.builder
        self.store(builder.trunc(value, I32) if value.type == I64 else value,
                   self.scalar_place(number, wave), 4)  # fmt: skip
        if value.type == I64:
            high = builder.trunc(builder.lshr(value, I64(32)), I32)
            self.store(high, self.scalar_place(builder.add(number, I64(1)), wave), 4)


class Chunk:
    """Sixteen lanes of a wave: the `index`-th of all."""

    def __init__(self, code: NativeCode, wave: ir.Value, number: ir.Value) -> None:
        """`number` says which of the wave's it is."""
        self.code, self.builder, self.wave, self.number = code, code.builder, wave, number
        index = self.builder.add(self.builder.mul(wave, I64(CHUNKS)), number)
        self._offset = self.builder.mul(index, I64(4 * WIDTH))
        self._exec: VectorNumber | None = None

    def register(self, bank: str, number: ir.Value) -> VectorNumber:
        """A vector register."""
        return self.loaded(self.code.register_row(bank, number))

    def loaded(self, row: ir.Value) -> VectorNumber:
        """The register at an address, which is that of the first wave's."""
        address = self.builder.add(row, self._offset)
        value = self.code.load(address, ir.VectorType(I32, WIDTH), 4)
        return VectorNumber(self.builder, value, "u32")

    def put(self, row: ir.Value, word: VectorNumber, mask: VectorNumber) -> None:
        """Change the register at an address, where a mask has lanes."""
        vector = ir.VectorType(I32, WIDTH)
        place = self.code.at(self.builder.add(row, self._offset), vector)
        builder = self.builder
        full = builder.icmp_unsigned("==", builder.bitcast(mask.value, I16), I16(0xFFFF))
        with builder.if_else(full) as (yes, no):
            with yes:
                builder.store(word.value, place, align=4)
            with no:
                # Nobody else has these registers, and masked stores are slow on some processors.
                old = builder.load(place, align=4)
                builder.store(builder.select(mask.value, word.value, old), place, align=4)

    def place(self, row: ir.Value) -> ir.Value:
        """The address of the first lane's word of a register."""
        return self.builder.add(row, self._offset)

    @property
    def exec_mask(self) -> VectorNumber:
        """The lanes that are active."""
        if self._exec is None:
            self._exec = self.mask(I64(EXEC))
        return self._exec

    def mask(self, number: ir.Value) -> VectorNumber:
        """The chunk's part of a mask of lanes in a pair of scalar registers."""
        bits = self.code.load(self._half(number), I16, 2)
        return VectorNumber(
            self.builder, self.builder.bitcast(bits, ir.VectorType(I1, WIDTH)), "b1"
        )

    def put_mask(self, number: ir.Value, mask: VectorNumber) -> None:
        """Change the chunk's part of such a mask."""
        self.code.store(self.builder.bitcast(mask.value, I16), self._half(number), 2)

    def _half(self, number: ir.Value) -> ir.Value:
        builder = self.builder
        word = builder.add(number, builder.lshr(self.number, I64(1)))
        half = builder.shl(builder.and_(self.number, I64(1)), I64(1))
        return builder.add(self.code.scalar_place(word, self.wave), half)

    def uniform(self, number: ir.Value, kind: str) -> VectorNumber:
        """A scalar register or a pair of them in all lanes."""
        wide = int(kind[1:]) == 64
        read = self.code.scalar_pair if wide else self.code.scalar
        return splat(
            self.builder, read(number, self.wave), WIDTH, f"u{kind[1:]}" if wide else "u32"
        )

    def splat(self, value: ir.Value, kind: str) -> VectorNumber:
        """A 64-bit integer, cut to a type, in all lanes."""
        element = ir.IntType(int(kind[1:]))
        narrow = value if element == I64 else self.builder.trunc(value, element)
        return splat(self.builder, narrow, WIDTH, f"u{kind[1:]}")


_ENDS: tuple[Field, Field] = ("first", "last")


@contextmanager
def chunks(code: NativeCode) -> Iterator[Chunk]:
    """All lanes of all waves, a chunk at a time."""
    builder = code.builder
    first, last = (builder.mul(code.field(name), I64(CHUNKS)) for name in _ENDS)
    with code.loop(last, first) as index:
        yield Chunk(code, builder.lshr(index, I64(2)), builder.and_(index, I64(CHUNKS - 1)))

"""A, B, C and D of a matrix instruction in native code: where they lie, and what they become."""

from __future__ import annotations

from dataclasses import dataclass

from llvmlite import ir

from mfmadsl.emulator.instructions.matrix.arithmetic import Sum
from mfmadsl.emulator.instructions.matrix.formats import FloatFormat
from mfmadsl.emulator.instructions.matrix.host_code import F64, I32, I64, TYPES, Vector, splat
from mfmadsl.emulator.instructions.matrix.layout import (
    BlockShape,
    chunk_of,
    input_rows,
    output_rows,
)
from mfmadsl.emulator.instructions.matrix.numbers import WIDTH, split_number, whole_number
from mfmadsl.emulator.machine.wave import LANES
from mfmadsl.emulator.native.code import I8, ROW_BYTES, NativeCode


@dataclass(frozen=True)
class FactorForm:
    """A or B in a form."""

    bank: str
    form: FloatFormat
    rows: int
    blocks: tuple[int, ...]


def table_of(code: NativeCode, name: str, values: list[int]) -> ir.Value:
    """The address of a table of integers beside the code."""
    kind = ir.ArrayType(I64, len(values))
    table = ir.GlobalVariable(code.module, kind, f"{code.function.name}.{name}")
    table.global_constant, table.linkage = True, "internal"
    table.initializer = ir.Constant(kind, values)
    return code.builder.ptrtoint(table, I64)


def vector_at(
    code: NativeCode, address: ir.Value, element: ir.Type, count: int, align: int = 4
) -> Vector:
    """What lies at an address, as a vector."""
    return Vector(code.builder, code.load(address, ir.VectorType(element, count), align))


def exponent_of(how: Sum) -> ir.Type:
    """The type of exponents: those of halves and smaller floats, and of their products, are
    bytes."""
    return I8 if how.narrow else I32


class FactorNumbers:
    """The numbers of A or B of one wave, as (blocks * K, rows)."""

    def __init__(
        self, code: NativeCode, how: Sum, factor: FactorForm, shape: BlockShape, name: str
    ):
        self._code, self._how, self._factor = code, how, factor
        bits = factor.form.bits
        chunk = chunk_of(shape, factor.rows, bits)
        lanes, items = input_rows(shape, factor.rows, chunk, factor.blocks)
        self._count = len(lanes)
        self._entries = [
            table_of(code, f"{name}.{what}", each)
            for what, each in (
                ("registers", (items * bits // 32).tolist()),
                ("lanes", (4 * lanes).tolist()),
                ("shifts", (items * bits % 32).tolist()),
            )
        ]
        size = self._count * factor.rows
        self.values = self._room(TYPES[how.factor], size)
        self.exponents = self._room(exponent_of(how), size) if how.splits else None
        self._width = min(factor.rows, WIDTH)
        self._peak = code.builder.alloca(ir.VectorType(I32, self._width))

    def _room(self, element: ir.Type, count: int) -> ir.Value:
        place = self._code.builder.alloca(ir.ArrayType(element, count))
        place.align = 64
        return self._code.builder.ptrtoint(place, I64)

    def read(self, file: ir.Value, wave: ir.Value) -> None:
        """Read a wave's registers; `file` is where the first of the operand lies."""
        code, builder, factor, how = self._code, self._code.builder, self._factor, self._how
        row_size = builder.mul(code.field("count"), I64(ROW_BYTES))
        own = builder.add(file, builder.mul(wave, I64(ROW_BYTES)))
        zeros = ir.Constant(ir.VectorType(I32, self._width), [0] * self._width)
        builder.store(zeros, self._peak)
        with code.loop(I64(self._count)) as row:
            entry = builder.mul(row, I64(8))
            register, lane, shift = (
                code.load(builder.add(table, entry), I64, 8) for table in self._entries
            )
            words = builder.add(builder.add(own, lane), builder.mul(register, row_size))
            by = splat(builder, builder.trunc(shift, I32), self._width)
            place = builder.mul(row, I64(4 * factor.rows))
            for first in range(0, factor.rows, self._width):
                at = builder.add(words, I64(4 * first))
                found = vector_at(code, at, I32, self._width) >> by
                to = builder.add(place, I64(4 * first))
                if not how.splits:
                    number = whole_number(factor.form, how, found)
                    scale = 2 if number.element == F64 else 1
                    wide = builder.mul(to, I64(scale))
                    code.store(number.value, builder.add(self.values, wide), 4)
                    continue
                assert self.exponents is not None
                number, exponent, magnitude = split_number(factor.form, how, found)
                code.store(number.value, builder.add(self.values, to), 4)
                narrow = exponent_of(how)
                vector = ir.VectorType(narrow, self._width)
                value = exponent.value if narrow == I32 else builder.trunc(exponent.value, vector)
                size = I64(narrow.width // 8)
                at = builder.mul(builder.lshr(to, I64(2)), size)
                code.store(value, builder.add(self.exponents, at), 1)
                peak = Vector(builder, builder.load(self._peak)).maximum(magnitude)
                builder.store(peak.value, self._peak)

    def peak(self) -> ir.Value:
        """The largest magnitude that was read, in float64."""
        return as_double(
            self._code, Vector(self._code.builder, self._code.builder.load(self._peak))
        )


def as_double(code: NativeCode, patterns: Vector) -> ir.Value:
    """The largest float of patterns of magnitudes."""
    builder = code.builder
    return builder.fpext(builder.bitcast(patterns.largest(), ir.FloatType()), F64)


class Accumulators:
    """Where the rows of C or D lie; of a constant C, what is in all of them. With `copied`, so many
    registers of C are read before D is written."""

    def __init__(
        self, code: NativeCode, shape: BlockShape, out: str, bank: str, place: int, name: str,
        copied: int = 0,
    ) -> None:  # fmt: skip
        self._code, self._element, self._width = code, TYPES[out], min(shape.n, WIDTH)
        self._file = None if bank == "c" else code.register_row(bank, code.value(place))
        lanes, items = output_rows(shape, out)
        self._lanes = table_of(code, f"{name}.lanes", (4 * lanes).tolist())
        self._items = table_of(code, f"{name}.items", items.tolist())
        self._constant = code.value(place)
        self._copied, self._copy = copied, None
        if copied:
            room = code.builder.alloca(ir.ArrayType(I32, copied * LANES))
            self._copy = code.builder.ptrtoint(room, I64)

    def begin(self, wave: ir.Value) -> None:
        """A wave is about to be computed."""
        if self._copy is None:
            return
        code, builder = self._code, self._code.builder
        with code.loop(I64(self._copied)) as item:
            own = self._own(wave, item)
            words = code.load(own, ir.VectorType(I32, LANES), 4)
            to = builder.add(self._copy, builder.mul(item, I64(ROW_BYTES)))
            code.store(words, to, 4)

    def _own(self, wave: ir.Value, item: ir.Value) -> ir.Value:
        """The address of a wave's part of a register."""
        builder = self._code.builder
        size = builder.mul(self._code.field("count"), I64(ROW_BYTES))
        own = builder.add(self._file, builder.mul(wave, I64(ROW_BYTES)))
        return builder.add(own, builder.mul(item, size))

    def row(self, wave: ir.Value, row: ir.Value) -> ir.Value:
        """The address of a row in a wave."""
        code, builder = self._code, self._code.builder
        if self._file is None:
            return I64(0)
        entry = builder.mul(row, I64(8))
        lane, item = (
            code.load(builder.add(table, entry), I64, 8) for table in (self._lanes, self._items)
        )
        if self._copy is not None:
            own = builder.add(self._copy, builder.mul(item, I64(ROW_BYTES)))
        else:
            own = self._own(wave, item)
        return builder.add(own, lane)

    def load(self, row: ir.Value, column: int) -> Vector:
        """Columns of a row."""
        code, builder = self._code, self._code.builder
        if self._file is None:
            word = splat(builder, builder.trunc(self._constant, I32), self._width)
            return word if self._element == I32 else word.floats()
        return vector_at(code, builder.add(row, I64(4 * column)), self._element, self._width)

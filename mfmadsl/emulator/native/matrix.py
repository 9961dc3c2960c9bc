"""Matrix instructions in native code: a wave's A and B become numbers in a few kilobytes, which the
processor's cache holds, and then C grows by their products."""

from __future__ import annotations

from dataclasses import dataclass

from llvmlite import ir

from mfmadsl.emulator.instructions.matrix.arithmetic import Sum
from mfmadsl.emulator.instructions.matrix.execute import Factor, Matrix
from mfmadsl.emulator.instructions.matrix.formats import FloatFormat
from mfmadsl.emulator.instructions.matrix.group import (
    MatrixProduct,
    add_group,
    parts_of,
    peak_of,
    start,
    state_of,
)
from mfmadsl.emulator.instructions.matrix.host_code import (
    F32,
    F64,
    I32,
    I64,
    TYPES,
    Vector,
    splat,
)
from mfmadsl.emulator.instructions.matrix.instruction import matrix_of
from mfmadsl.emulator.instructions.matrix.layout import (
    BlockShape,
    chunk_of,
    input_rows,
    output_rows,
)
from mfmadsl.emulator.instructions.matrix.numbers import WIDTH, split_number, whole_number
from mfmadsl.emulator.instructions.matrix.sums import SAFE
from mfmadsl.emulator.machine.mode import Machine
from mfmadsl.emulator.machine.wave import LANES
from mfmadsl.emulator.native.code import I8, ROW_BYTES, Code
from mfmadsl.emulator.native.form import Form, Step
from mfmadsl.emulator.text.assembly import Instruction
from mfmadsl.emulator.text.operand import Literal, Register

_MANY_GROUPS = 4  # up to so many are written one after the other
_ROWS = 4  # that are computed at once


@dataclass(frozen=True)
class FactorForm:
    """A or B in a form."""

    bank: str
    form: FloatFormat
    rows: int
    blocks: tuple[int, ...]


def describe_matrix(instruction: Instruction, machine: Machine) -> Step | None:
    """A dense matrix instruction without lanes or signs of its own as a step."""
    if instruction.name in machine.described:
        return None
    found = matrix_of(instruction, machine)
    if found is None or not _is_plain(found[0]):
        return None
    matrix = found[0]
    factors = tuple(
        FactorForm(factor.register.bank, factor.form, factor.rows, factor.blocks)
        for factor in (matrix.a, matrix.b)
    )
    if isinstance(matrix.c, Literal):
        bank, c = "c", matrix.c.bits(32, floating=matrix.out != "i32")
    else:
        bank, c = matrix.c.bank, matrix.c.index
    copied = matrix.c.count if _overlaps(matrix) and isinstance(matrix.c, Register) else 0
    options = (matrix.shape, matrix.out, matrix.how, factors, bank, matrix.d.bank, copied)
    values = (matrix.a.register.index, matrix.b.register.index, c, matrix.d.index)
    return Step(Form("matrix", "", options=options), values)


def _overlaps(matrix: Matrix) -> bool:
    """Whether C and D share some registers, but not all."""
    c, d = matrix.c, matrix.d
    return (
        isinstance(c, Register) and c != d and c.bank == d.bank
        and c.index < d.index + d.count and d.index < c.index + c.count
    )  # fmt: skip


def _is_plain(matrix: Matrix) -> bool:
    return (
        matrix.out in ("f32", "i32")
        and matrix.how.kind not in ("chain", "once")
        and matrix.index is None
        and not (matrix.scales or matrix.c_negated)
        and all(map(_is_plain_factor, (matrix.a, matrix.b)))
    )


def _is_plain_factor(factor: Factor) -> bool:
    return (
        factor.lanes is None and not factor.negated and 32 % factor.form.bits == 0
        and factor.rows % min(factor.rows, WIDTH) == 0
    )  # fmt: skip


def _table(code: Code, name: str, values: list[int]) -> ir.Value:
    """The address of a table of integers beside the code."""
    kind = ir.ArrayType(I64, len(values))
    table = ir.GlobalVariable(code.module, kind, f"{code.function.name}.{name}")
    table.global_constant, table.linkage = True, "internal"
    table.initializer = ir.Constant(kind, values)
    return code.builder.ptrtoint(table, I64)


def _vector(
    code: Code, address: ir.Value, element: ir.Type, count: int, align: int = 4
) -> Vector:
    return Vector(code.builder, code.load(address, ir.VectorType(element, count), align))


def exponent_of(how: Sum) -> ir.Type:
    """The type of exponents: those of halves and smaller floats, and of their products, are
    bytes."""
    return I8 if how.narrow else I32


class _Numbers:
    """The numbers of A or B of one wave, as (blocks * K, rows)."""

    def __init__(self, code: Code, how: Sum, factor: FactorForm, shape: BlockShape, name: str):
        self._code, self._how, self._factor = code, how, factor
        bits = factor.form.bits
        chunk = chunk_of(shape, factor.rows, bits)
        lanes, items = input_rows(shape, factor.rows, chunk, factor.blocks)
        self._count = len(lanes)
        self._entries = [
            _table(code, f"{name}.{what}", each)
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
                found = _vector(code, at, I32, self._width) >> by
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
        return _as_double(self._code, Vector(self._code.builder, self._code.builder.load(self._peak)))


def _as_double(code: Code, patterns: Vector) -> ir.Value:
    """The largest float of patterns of magnitudes."""
    builder = code.builder
    return builder.fpext(builder.bitcast(patterns.largest(), ir.FloatType()), F64)


class _Accumulators:
    """Where the rows of C or D lie; of a constant C, what is in all of them. With `copied`, so many
    registers of C are read before D is written."""

    def __init__(
        self, code: Code, shape: BlockShape, out: str, bank: str, place: int, name: str,
        copied: int = 0,
    ) -> None:  # fmt: skip
        self._code, self._element, self._width = code, TYPES[out], min(shape.n, WIDTH)
        self._file = None if bank == "c" else code.register_row(bank, code.value(place))
        lanes, items = output_rows(shape, out)
        self._lanes = _table(code, f"{name}.lanes", (4 * lanes).tolist())
        self._items = _table(code, f"{name}.items", items.tolist())
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
        return _vector(code, builder.add(row, I64(4 * column)), self._element, self._width)


def write_matrix(code: Code, form: Form) -> None:
    """The code of D = A x B + C."""
    shape, out, how, (a, b), c_bank, d_bank, copied = form.options
    builder = code.builder
    left, right = (_Numbers(code, how, each, shape, n) for each, n in ((a, "a"), (b, "b")))
    files = [code.register_row(each.bank, code.value(i)) for i, each in enumerate((a, b))]
    c = _Accumulators(code, shape, out, c_bank, 2, "c", copied)
    d = _Accumulators(code, shape, out, d_bank, 3, "d")
    with code.waves() as wave:
        for numbers, file in zip((left, right), files, strict=True):
            numbers.read(file, wave)
        c.begin(wave)
        if not how.splits:
            _add_up(code, shape, how, (left, right), c, d, wave, special=False)
        else:
            largest = builder.fadd(
                _peak_of_c(code, shape, c, wave),
                builder.fmul(builder.fmul(left.peak(), right.peak()), F64(float(shape.k))),
            )
            usual = builder.fcmp_ordered("<", largest, F64(SAFE))
            with builder.if_else(usual) as (fast, slow):
                with fast:
                    _add_up(code, shape, how, (left, right), c, d, wave, special=False)
                with slow:
                    _add_up(code, shape, how, (left, right), c, d, wave, special=True)


def _peak_of_c(code: Code, shape: BlockShape, c: _Accumulators, wave: ir.Value) -> ir.Value:
    """The largest magnitude in C."""
    builder, width = code.builder, min(shape.n, WIDTH)
    place = builder.alloca(ir.VectorType(I32, width))
    builder.store(ir.Constant(ir.VectorType(I32, width), [0] * width), place)
    with code.loop(I64(shape.blocks * shape.m)) as row:
        at = c.row(wave, row)
        for column in range(0, shape.n, width):
            magnitude = c.load(at, column).bits() & 0x7FFF_FFFF
            peak = Vector(builder, builder.load(place)).maximum(magnitude)
            builder.store(peak.value, place)
    return _as_double(code, Vector(builder, builder.load(place)))


def _add_up(
    code: Code, shape: BlockShape, how: Sum, factors: tuple[_Numbers, _Numbers],
    c: _Accumulators, d: _Accumulators, wave: ir.Value, special: bool,
) -> None:  # fmt: skip
    """Add the products of a wave to C."""
    if how.narrow and not special:
        _add_up_narrow(code, shape, how, factors, c, d, wave)
        return
    builder, width = code.builder, min(shape.n, WIDTH)
    place = builder.alloca(ir.VectorType(state_of(how), width))
    groups = shape.k // how.group
    with code.loop(I64(shape.blocks)) as block, code.loop(I64(shape.m)) as i:
        row = builder.add(builder.mul(block, I64(shape.m)), i)
        source, target = c.row(wave, row), d.row(wave, row)
        tile = builder.mul(block, I64(shape.k))
        for column in range(0, shape.n, width):
            total = start(how, c.load(source, column))
            if groups <= _MANY_GROUPS:
                for group in range(groups):
                    first = builder.add(tile, I64(group * how.group))
                    total = _group(code, shape, how, factors, (first, i, column), total, special)
            else:
                builder.store(total.value, place)
                with code.loop(I64(groups)) as group:
                    first = builder.add(tile, builder.mul(group, I64(how.group)))
                    before = Vector(builder, builder.load(place))
                    after = _group(code, shape, how, factors, (first, i, column), before, special)
                    builder.store(after.value, place)
                total = Vector(builder, builder.load(place))
            result = total.to(TYPES[how.element])
            code.store(result.value, builder.add(target, I64(4 * column)), 4)


def _add_up_narrow(
    code: Code, shape: BlockShape, how: Sum, factors: tuple[_Numbers, _Numbers],
    c: _Accumulators, d: _Accumulators, wave: ir.Value,
) -> None:  # fmt: skip
    """The same for some rows at once, whose exponents fill one vector of bytes."""
    builder, width = code.builder, min(shape.n, WIDTH)
    groups = shape.k // how.group
    with code.loop(I64(shape.blocks)) as block, code.loop(I64(shape.m // _ROWS)) as part:
        i = builder.mul(part, I64(_ROWS))
        rows = [
            builder.add(builder.add(builder.mul(block, I64(shape.m)), i), I64(r))
            for r in range(_ROWS)
        ]
        sources, targets = ([each.row(wave, row) for row in rows] for each in (c, d))
        for column in range(0, shape.n, width):
            totals = [start(how, c.load(source, column)) for source in sources]
            for group in range(groups):
                first = builder.add(builder.mul(block, I64(shape.k)), I64(group * how.group))
                at = (first, i, column)
                totals = _narrow_group(code, shape, how, factors, at, totals)
            for total, target in zip(totals, targets, strict=True):
                code.store(total.value, builder.add(target, I64(4 * column)), 4)


def _narrow_group(
    code: Code, shape: BlockShape, how: Sum, factors: tuple[_Numbers, _Numbers],
    at: tuple[ir.Value, ir.Value, int], totals: list[Vector],
) -> list[Vector]:  # fmt: skip
    """The sums of some rows with one more group of products."""
    builder, width = code.builder, min(shape.n, WIDTH)
    first, i, column = at
    left, right = factors
    assert left.exponents is not None and right.exponents is not None
    of_a = builder.add(builder.mul(first, I64(shape.m)), i)
    of_b = builder.add(builder.mul(first, I64(shape.n)), I64(column))
    values, exponents = [], []
    for x in range(how.group):
        a_at, b_at = builder.add(of_a, I64(x * shape.m)), builder.add(of_b, I64(x * shape.n))
        a_place, b_place = (builder.mul(each, I64(4)) for each in (a_at, b_at))
        b = _vector(code, builder.add(right.values, b_place), F32, width)
        values.append((builder.add(left.values, a_place), b))
        # The exponents of all rows: one of A in all columns, those of B in all rows.
        four = code.load(builder.add(left.exponents, a_at), I32)
        lanes = [p // 16 * 16 + p // width for p in range(_ROWS * width)]
        of_rows = _shuffled(splat(builder, four, width), lanes)
        of_columns = _vector(code, builder.add(right.exponents, b_at), I8, width, 1)
        repeated = _shuffled(of_columns, [p % width for p in range(_ROWS * width)])
        exponents.append(MatrixProduct(of_rows, repeated, of_rows + repeated))
    peaks = [peak_of(part) for part in parts_of(how, exponents)]
    found = []
    for row, total in enumerate(totals):
        products = [
            MatrixProduct(
                splat(builder, code.load(builder.add(a, I64(4 * row)), F32, 4), width), b, None
            )
            for a, b in values
        ]
        own = [
            _shuffled(peak, [row * width + lane for lane in range(width)]).to(I32)
            for peak in peaks
        ]
        found.append(add_group(how, total, products, False, own))
    return found


def _shuffled(numbers: Vector, lanes: list[int]) -> Vector:
    """The bytes of a vector that lanes name."""
    builder = numbers.builder
    count = numbers.count * numbers.element.width // 8
    octets = builder.bitcast(numbers.value, ir.VectorType(I8, count))
    mask = ir.Constant(ir.VectorType(I32, len(lanes)), lanes)
    return Vector(builder, builder.shuffle_vector(octets, octets, mask))


def _group(
    code: Code, shape: BlockShape, how: Sum, factors: tuple[_Numbers, _Numbers],
    at: tuple[ir.Value, ir.Value, int], total: Vector, special: bool,
) -> Vector:  # fmt: skip
    """A sum of a row with one more group of products."""
    builder, width = code.builder, min(shape.n, WIDTH)
    first, i, column = at
    element = TYPES[how.factor]
    size = 8 if element == F64 else 4
    left, right = factors
    of_a = builder.add(builder.mul(first, I64(shape.m)), i)
    of_b = builder.add(builder.mul(first, I64(shape.n)), I64(column))
    products = []
    for x in range(how.group):
        a_at = builder.add(of_a, I64(x * shape.m))
        b_at = builder.add(of_b, I64(x * shape.n))
        a_place, b_place = (builder.mul(each, I64(size)) for each in (a_at, b_at))
        a = splat(builder, code.load(builder.add(left.values, a_place), element, size), width)
        b = _vector(code, builder.add(right.values, b_place), element, width)
        exponent = None
        if left.exponents is not None and right.exponents is not None:
            kind = exponent_of(how)
            a_place, b_place = (builder.mul(each, I64(kind.width // 8)) for each in (a_at, b_at))
            a_exponent = code.load(builder.add(left.exponents, a_place), kind)
            b_exponent = _vector(code, builder.add(right.exponents, b_place), kind, width, 1)
            exponent = (splat(builder, a_exponent, width) + b_exponent).to(I32)
        products.append(MatrixProduct(a, b, exponent))
    return add_group(how, total, products, special)

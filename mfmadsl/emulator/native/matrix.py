"""Matrix instructions in native code: a wave's A and B become numbers in a few kilobytes, which the
processor's cache holds, and then C grows by their products."""

from __future__ import annotations

from llvmlite import ir

from mfmadsl.emulator.instructions.matrix.arithmetic import Sum
from mfmadsl.emulator.instructions.matrix.execute import Factor, Matrix
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
)
from mfmadsl.emulator.instructions.matrix.numbers import WIDTH
from mfmadsl.emulator.instructions.matrix.sums import SAFE
from mfmadsl.emulator.machine.mode import Machine
from mfmadsl.emulator.native.code import I8, NativeCode
from mfmadsl.emulator.native.form import CodeForm, NativeStep
from mfmadsl.emulator.native.matrix_operands import (
    Accumulators,
    FactorForm,
    FactorNumbers,
    as_double,
    exponent_of,
    vector_at,
)
from mfmadsl.emulator.text.assembly import Instruction
from mfmadsl.emulator.text.operand import Literal, Register

_MANY_GROUPS = 4  # up to so many are written one after the other
_ROWS = 4  # that are computed at once


def describe_matrix(instruction: Instruction, machine: Machine) -> NativeStep | None:
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
    return NativeStep(CodeForm("matrix", "", options=options), values)


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


def write_matrix(code: NativeCode, form: CodeForm) -> None:
    """The code of D = A x B + C."""
    shape, out, how, (a, b), c_bank, d_bank, copied = form.options
    builder = code.builder
    left, right = (FactorNumbers(code, how, each, shape, n) for each, n in ((a, "a"), (b, "b")))
    files = [code.register_row(each.bank, code.value(i)) for i, each in enumerate((a, b))]
    c = Accumulators(code, shape, out, c_bank, 2, "c", copied)
    d = Accumulators(code, shape, out, d_bank, 3, "d")
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


def _peak_of_c(code: NativeCode, shape: BlockShape, c: Accumulators, wave: ir.Value) -> ir.Value:
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
    return as_double(code, Vector(builder, builder.load(place)))


def _add_up(
    code: NativeCode, shape: BlockShape, how: Sum, factors: tuple[FactorNumbers, FactorNumbers],
    c: Accumulators, d: Accumulators, wave: ir.Value, special: bool,
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
    code: NativeCode, shape: BlockShape, how: Sum, factors: tuple[FactorNumbers, FactorNumbers],
    c: Accumulators, d: Accumulators, wave: ir.Value,
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
    code: NativeCode, shape: BlockShape, how: Sum, factors: tuple[FactorNumbers, FactorNumbers],
    at: tuple[ir.Value, ir.Value, int], totals: list[Vector],
) -> list[Vector]:  # fmt: skip
    """The sums of some rows with one more group of products."""
    builder, width = code.builder, min(shape.n, WIDTH)
    first, i, column = at
    left, right = factors
    assert left.exponents is not None
    assert right.exponents is not None
    of_a = builder.add(builder.mul(first, I64(shape.m)), i)
    of_b = builder.add(builder.mul(first, I64(shape.n)), I64(column))
    values, exponents = [], []
    for x in range(how.group):
        a_at, b_at = builder.add(of_a, I64(x * shape.m)), builder.add(of_b, I64(x * shape.n))
        a_place, b_place = (builder.mul(each, I64(4)) for each in (a_at, b_at))
        b = vector_at(code, builder.add(right.values, b_place), F32, width)
        values.append((builder.add(left.values, a_place), b))
        # The exponents of all rows: one of A in all columns, those of B in all rows.
        four = code.load(builder.add(left.exponents, a_at), I32)
        lanes = [p // 16 * 16 + p // width for p in range(_ROWS * width)]
        of_rows = _shuffled(splat(builder, four, width), lanes)
        of_columns = vector_at(code, builder.add(right.exponents, b_at), I8, width, 1)
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
            _shuffled(peak, [row * width + lane for lane in range(width)]).to(I32) for peak in peaks
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
    code: NativeCode, shape: BlockShape, how: Sum, factors: tuple[FactorNumbers, FactorNumbers],
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
        b = vector_at(code, builder.add(right.values, b_place), element, width)
        exponent = None
        if left.exponents is not None and right.exponents is not None:
            kind = exponent_of(how)
            a_place, b_place = (builder.mul(each, I64(kind.width // 8)) for each in (a_at, b_at))
            a_exponent = code.load(builder.add(left.exponents, a_place), kind)
            b_exponent = vector_at(code, builder.add(right.exponents, b_place), kind, width, 1)
            exponent = (splat(builder, a_exponent, width) + b_exponent).to(I32)
        products.append(MatrixProduct(a, b, exponent))
    return add_group(how, total, products, special)

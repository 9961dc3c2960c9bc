"""Numbers in the code that is being written: vectors of lanes, of types that NumPy has as well."""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

_TYPES: dict[str, ir.Type] = {
    "b1": ir.IntType(1),
    **{f"{letter}{bits}": ir.IntType(bits) for letter in "ui" for bits in (8, 16, 32, 64)},
    "f16": ir.HalfType(),
    "f32": ir.FloatType(),
    "f64": ir.DoubleType(),
}
_SIGNED = {"i", "f"}


def element_of(kind: str) -> ir.Type:
    """LLVM's type of a number, such as `u32`."""
    return _TYPES[kind]


class VectorNumber:
    """A vector of one type in the code; a Python number beside it is one in each lane.

    `kind` is a letter, u, i, f or b, and a width. What is done with them means what NumPy's
    operation on arrays of that type does, bit for bit.
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, builder: ir.IRBuilder, value: ir.Value, kind: str) -> None:
        self.builder, self.value, self.kind = builder, value, kind
        self.count: int = value.type.count
        self.is_negated = False  # LLVM turns what is added into what is subtracted, NaNs as well

    @property
    def bits(self) -> int:
        """The width of the type."""
        return int(self.kind[1:])

    @property
    def is_float(self) -> bool:
        """Whether it is of a type of floats."""
        return self.kind[0] == "f"

    def same(self, value: ir.Value) -> VectorNumber:
        """A number of the same type."""
        return VectorNumber(self.builder, value, self.kind)

    def of(self, value: ir.Value, kind: str) -> VectorNumber:
        """A number of another type in the same code."""
        return VectorNumber(self.builder, value, kind)

    def constant(self, number: float, kind: str = "") -> VectorNumber:
        """A number in all lanes, of this type or another."""
        kind = kind or self.kind
        if kind[0] in "uib":
            number = int(number) & ((1 << int(kind[1:])) - 1)
        vector = ir.VectorType(element_of(kind), self.count)
        return self.of(ir.Constant(vector, [number] * self.count), kind)

    def _like(self, other: VectorNumber | float) -> VectorNumber:
        return other if isinstance(other, VectorNumber) else self.constant(other)

    def _integer(self, name: str, other: VectorNumber | float) -> VectorNumber:
        return self.same(getattr(self.builder, name)(self.value, self._like(other).value))

    # Arithmetic.

    def _floating(self, name: str, other: VectorNumber | float) -> VectorNumber:
        """The first NaN of the two is the result, as x86 has it in this order; LLVM may swap."""
        right = self._like(other)
        if self.kind == "f16":
            return self._floating_half(name, right)
        result = self.same(getattr(self.builder, name)(self.value, right.value))
        if right.is_negated:
            result = right.is_nan().choose(right.quieted(), result)
        return self.is_nan().choose(self.quieted(), result)

    def _floating_half(self, name: str, right: VectorNumber) -> VectorNumber:
        """NumPy computes in float32; of what commutes the second NaN comes first there."""
        left, other = self.to("f32"), right.to("f32")
        found = left.same(getattr(self.builder, name)(left.value, other.value)).to("f16")
        first, second = (self, right) if name == "fsub" else (right, self)
        nan = first.is_nan().choose(first.quieted(), second.quieted())
        return (self.is_nan() | right.is_nan()).choose(nan, found)

    def __add__(self, other: VectorNumber | float) -> VectorNumber:
        return self._floating("fadd", other) if self.is_float else self._integer("add", other)

    def __sub__(self, other: VectorNumber | float) -> VectorNumber:
        return self._floating("fsub", other) if self.is_float else self._integer("sub", other)

    def __mul__(self, other: VectorNumber | float) -> VectorNumber:
        return self._floating("fmul", other) if self.is_float else self._integer("mul", other)

    def __truediv__(self, other: VectorNumber | float) -> VectorNumber:
        return self._floating("fdiv", other)

    def plain(self, name: str, other: VectorNumber | float) -> VectorNumber:
        """An operation on floats that are no NaN."""
        return self.same(getattr(self.builder, name)(self.value, self._like(other).value))

    def quieted(self) -> VectorNumber:
        """A NaN made quiet."""
        quiet = 1 << {16: 9, 32: 22, 64: 51}[self.bits]
        return (self.pattern() | quiet).as_(self.kind)

    # Bits.

    def __and__(self, other: VectorNumber | int) -> VectorNumber:
        return self._integer("and_", other)

    def __or__(self, other: VectorNumber | int) -> VectorNumber:
        return self._integer("or_", other)

    def __xor__(self, other: VectorNumber | int) -> VectorNumber:
        return self._integer("xor", other)

    def __invert__(self) -> VectorNumber:
        return self._integer("xor", -1)

    def __lshift__(self, other: VectorNumber | int) -> VectorNumber:
        return self._integer("shl", other)

    def __rshift__(self, other: VectorNumber | int) -> VectorNumber:
        return self._integer("ashr" if self.kind[0] == "i" else "lshr", other)

    def pattern(self) -> VectorNumber:
        """The bits, as an unsigned number."""
        return self.as_(f"u{self.bits}")

    def as_(self, kind: str) -> VectorNumber:
        """The same bits as a number of another type of this width."""
        if kind[0] in "uib" and self.kind[0] in "uib":
            return self.of(self.value, kind)
        wanted = ir.VectorType(element_of(kind), self.count)
        return self.of(self.builder.bitcast(self.value, wanted), kind)

    def negated(self) -> VectorNumber:
        """The number with the other sign; of a float the sign bit only."""
        if self.is_float:
            found = (self.pattern() ^ (1 << self.bits - 1)).as_(self.kind)
            found.is_negated = True
            return found
        return self.constant(0) - self

    def absolute(self) -> VectorNumber:
        """The number without its sign; of a float the sign bit only."""
        if self.is_float:
            return (self.pattern() & (1 << self.bits - 1) - 1).as_(self.kind)
        return (self < 0).choose(self.negated(), self)

    # Relations, as masks of lanes.

    def _compare(self, relation: str, other: VectorNumber | float) -> VectorNumber:
        right = self._like(other).value
        if self.kind[0] == "i":
            found = self.builder.icmp_signed(relation, self.value, right)
        elif not self.is_float:
            found = self.builder.icmp_unsigned(relation, self.value, right)
        elif relation == "!=":
            found = self.builder.fcmp_unordered(relation, self.value, right)
        else:
            found = self.builder.fcmp_ordered(relation, self.value, right)
        return self.of(found, "b1")

    def __eq__(self, other: VectorNumber | float) -> VectorNumber:  # type: ignore[override]
        return self._compare("==", other)

    def __ne__(self, other: VectorNumber | float) -> VectorNumber:  # type: ignore[override]
        return self._compare("!=", other)

    def __lt__(self, other: VectorNumber | float) -> VectorNumber:
        return self._compare("<", other)

    def __le__(self, other: VectorNumber | float) -> VectorNumber:
        return self._compare("<=", other)

    def __gt__(self, other: VectorNumber | float) -> VectorNumber:
        return self._compare(">", other)

    def __ge__(self, other: VectorNumber | float) -> VectorNumber:
        return self._compare(">=", other)

    def is_nan(self) -> VectorNumber:
        """Where it is no number."""
        return self._compare("!=", self)

    def is_finite(self) -> VectorNumber:
        """Where it is neither infinite nor NaN."""
        exponent = {16: 0x7C00, 32: 0x7F80_0000, 64: 0x7FF << 52}[self.bits]
        return (self.pattern() & exponent) != exponent

    def choose(self, yes: VectorNumber | float, no: VectorNumber | float) -> VectorNumber:
        """`yes` where this mask holds, else `no`; one of the two is a number of the code."""
        known = yes if isinstance(yes, VectorNumber) else no
        assert isinstance(known, VectorNumber)
        chosen = self.builder.select(self.value, known._like(yes).value, known._like(no).value)
        return known.same(chosen)

    def minimum(self, other: VectorNumber | float) -> VectorNumber:
        """The smaller integer."""
        right = self._like(other)
        return (self < right).choose(self, right)

    def maximum(self, other: VectorNumber | float) -> VectorNumber:
        """The larger integer."""
        right = self._like(other)
        return (self > right).choose(self, right)

    # Other types.

    def to(self, kind: str) -> VectorNumber:
        """These numbers in another type: integers extended or cut, floats rounded to nearest even.

        From floats to integers there is `truncated`.
        """
        if kind == self.kind:
            return self
        wanted = ir.VectorType(element_of(kind), self.count)
        bits = int(kind[1:])
        builder = self.builder
        if not self.is_float and kind[0] != "f":
            if bits == self.bits:
                return self.of(self.value, kind)
            extend = builder.sext if self.kind[0] == "i" else builder.zext
            convert = extend if bits > self.bits else builder.trunc
        elif not self.is_float:
            convert = builder.sitofp if self.kind[0] == "i" else builder.uitofp
        elif bits == 16 and self.bits == 64:
            return self._to_odd_single().to("f16")
        else:
            convert = builder.fpext if bits > self.bits else builder.fptrunc
        found = self.of(convert(self.value, wanted), kind)
        if {self.kind, kind} == {"f16", "f32"}:
            found = self.is_nan().choose(self._nan(kind), found)
        found.is_negated = self.is_negated
        return found

    def _nan(self, kind: str) -> VectorNumber:
        """A NaN of 16 bits with 32 or the other way round, which stays signaling in NumPy."""
        bits = self.pattern()
        if kind == "f32":
            wide = bits.to("u32")
            return ((wide & 0x8000) << 16 | 0x7F80_0000 | (wide & 0x3FF) << 13).as_("f32")
        payload = bits >> 13 & 0x3FF
        payload = (payload == 0).choose(1, payload)
        return (bits >> 16 & 0x8000 | 0x7C00 | payload).to("u16").as_("f16")

    def _to_odd_single(self) -> VectorNumber:
        """Float64 as float32, so that rounding again is right: where it is cut, the last bit is 1.

        No processor rounds float64 to float16 at once.
        """
        near = self.to("f32")
        back = near.to("f64")
        beyond = back.absolute() > self.absolute()
        bits = near.pattern() - beyond.choose(near.pattern().constant(1), 0)
        inexact = (back < self) | (back > self)
        return (bits | inexact.choose(bits.constant(1), 0)).as_("f32")

    def truncated(self, kind: str) -> VectorNumber:
        """Floats toward zero, within the range of an integer type; NaN becomes 0."""
        bits, signed = int(kind[1:]), kind[0] == "i"
        lowest, above = (-(1 << bits - 1), 1 << bits - 1) if signed else (0, 1 << bits)
        inside = (self >= float(lowest)) & (self < float(above))
        safe = inside.choose(self, 0.0)  # of others LLVM says nothing
        convert = self.builder.fptosi if signed else self.builder.fptoui
        wanted = ir.VectorType(element_of(kind), self.count)
        found = self.of(convert(safe.value, wanted), kind)
        found = (self < float(lowest)).choose(lowest, found)
        return (self >= float(above)).choose(above - 1, found)

    def intrinsic(
        self, name: str, *others: VectorNumber, flags: Sequence[bool] = ()
    ) -> VectorNumber:
        """An intrinsic of LLVM that is overloaded for this type alone, and gives it."""
        values = [self.value, *(other.value for other in others)]
        values += [ir.Constant(ir.IntType(1), flag) for flag in flags]
        full = f"llvm.{name}.v{self.count}{_suffix(self.kind)}"
        return self.same(self._declared(full, self.value.type, values))

    def _declared(self, name: str, result: ir.Type, values: list[ir.Value]) -> ir.Value:
        return self.builder.call(declared(self.builder, name, result, values), values)

    def shuffled(self, lanes: Sequence[int], other: VectorNumber | None = None) -> VectorNumber:
        """The number of the lane that each lane names; those of `other` follow this one's."""
        mask = ir.Constant(ir.VectorType(ir.IntType(32), len(lanes)), [int(x) for x in lanes])
        second = self.value if other is None else other.value
        return self.same(self.builder.shuffle_vector(self.value, second, mask))


def _suffix(kind: str) -> str:
    return f"{'f' if kind[0] == 'f' else 'i'}{kind[1:]}"


def declared(
    builder: ir.IRBuilder, name: str, result: ir.Type, values: Sequence[ir.Value]
) -> ir.Function:
    """The declaration of an intrinsic that takes such values."""
    function = builder.module.globals.get(name)
    if function is None:
        kind = ir.FunctionType(result, [value.type for value in values])
        function = ir.Function(builder.module, kind, name)
    return function


def splat(builder: ir.IRBuilder, value: ir.Value, count: int, kind: str) -> VectorNumber:
    """A vector with one value in every lane."""
    empty = ir.Constant(ir.VectorType(value.type, count), ir.Undefined)
    first = builder.insert_element(empty, value, ir.Constant(ir.IntType(32), 0))
    if count == 1:
        return VectorNumber(builder, first, kind)
    lanes = ir.Constant(ir.VectorType(ir.IntType(32), count), [0] * count)
    return VectorNumber(builder, builder.shuffle_vector(first, empty, lanes), kind)

"""Vector instructions on floats in native code; their meaning is that of the rows of
`instructions/floating.py`, with which tests compare them, NaNs and zeros included."""

from __future__ import annotations

from mfmadsl.emulator.native.elementary import exp2, log2
from mfmadsl.emulator.native.integers import Compute
from mfmadsl.emulator.native.number import VectorNumber


def without_denormals(a: VectorNumber) -> VectorNumber:
    """Denormal floats made 0 of their sign; anything else as it is."""
    bits = a.pattern()
    exponent = {16: 0x7C00, 32: 0x7F80_0000, 64: 0x7FF << 52}[a.bits]
    sign = 1 << a.bits - 1
    return ((bits & exponent) == 0).choose(bits & sign, bits).as_(a.kind)


def flushing(compute: Compute, *kinds: str) -> Compute:
    """A function with denormals of some types made 0 in its sources and in its result."""

    def flush(a: VectorNumber) -> VectorNumber:
        return without_denormals(a) if a.kind in kinds else a

    return lambda *sources: flush(compute(*map(flush, sources)))


def fused(a: VectorNumber, b: VectorNumber, c: VectorNumber) -> VectorNumber:
    """a * b + c, rounded once."""
    if a.kind == "f16":
        product = a.to("f64") * b.to("f64")
        return sum_to_odd(product, c.to("f64")).to("f16")
    product = a * b  # its NaN comes before that of c
    found = a.intrinsic("fma", b, c)
    return product.is_nan().choose(product, c.is_nan().choose(c.quieted(), found))


def sum_to_odd(a: VectorNumber, b: VectorNumber) -> VectorNumber:
    """The sum rounded to odd, so that rounding again is right."""
    total = a + b
    part = total.plain("fsub", a)
    error = a.plain("fsub", total.plain("fsub", part)).plain("fadd", b.plain("fsub", part))
    bits = total.as_("i64")
    toward = ((error > 0.0) ^ (total > 0.0)).choose(bits - 1, bits + 1)
    inexact = (error != 0.0) & total.is_finite() & ((bits & 1) == 0)
    return inexact.choose(toward, bits).as_("f64")


def _is_signaling(a: VectorNumber) -> VectorNumber:
    quiet = 1 << {16: 9, 32: 22, 64: 51}[a.bits]
    return a.is_nan() & ((a.pattern() & quiet) == 0)


def extreme(is_maximum: bool) -> Compute:
    """v_max or v_min: -0 is below 0, and a quiet NaN gives way to a number."""

    def compute(a: VectorNumber, b: VectorNumber) -> VectorNumber:
        joined = a.pattern() & b.pattern() if is_maximum else a.pattern() | b.pattern()
        first = a > b if is_maximum else a < b
        chosen = b.is_nan().choose(a, first.choose(a, b))
        chosen = (a == b).choose(joined.as_(a.kind), chosen)
        nan = a.constant({16: 0x7E00, 32: 0x7FC0_0000, 64: 0x7FF8 << 48}[a.bits], f"u{a.bits}")
        return (_is_signaling(a) | _is_signaling(b)).choose(nan.as_(a.kind), chosen)

    return compute


largest, smallest = extreme(is_maximum=True), extreme(is_maximum=False)


def _median(a: VectorNumber, b: VectorNumber, c: VectorNumber) -> VectorNumber:
    top = largest(largest(a, b), c)
    middle = (top == b).choose(largest(a, c), largest(a, b))
    middle = (top == a).choose(largest(b, c), middle)
    nan = a.is_nan() | b.is_nan() | c.is_nan()
    return nan.choose(smallest(smallest(a, b), c), middle)


def _of_three(pick: Compute) -> Compute:
    def compute(a: VectorNumber, b: VectorNumber, c: VectorNumber) -> VectorNumber:
        nan = a.is_nan() | b.is_nan() | c.is_nan()
        return nan.choose(a + b + c, pick(pick(a, b), c))

    return compute


def _whole(name: str) -> Compute:
    def compute(a: VectorNumber) -> VectorNumber:
        if a.kind == "f16":
            return a.to("f32").intrinsic(name).to("f16")
        return a.intrinsic(name)

    return compute


def _fraction(a: VectorNumber) -> VectorNumber:
    difference = a - _whole("floor")(a)
    below = {16: 0x3BFF, 32: 0x3F7F_FFFF, 64: (0x3FF << 52) - 1}[a.bits]
    one_below = a.constant(below, f"u{a.bits}").as_(a.kind)
    return (difference > one_below).choose(one_below, difference)


def _load_exponent(a: VectorNumber, b: VectorNumber) -> VectorNumber:
    """In float64, where nothing of that size is out of range, and so rounded once."""
    count = b.maximum(-400).minimum(400)
    power = ((count + 1023).to("i64") << 52).as_("f64")
    return (a.to("f64") * power).to("f32")


def _reciprocal(a: VectorNumber) -> VectorNumber:
    wide = a.to("f64")
    return (wide.constant(1.0) / wide).to(a.kind)


def _root(a: VectorNumber) -> VectorNumber:
    return a.to("f64").intrinsic("sqrt").to(a.kind)


def _reciprocal_root(a: VectorNumber) -> VectorNumber:
    root = a.to("f64").intrinsic("sqrt")
    return (root.constant(1.0) / root).to(a.kind)


def _legacy_product(a: VectorNumber, b: VectorNumber) -> VectorNumber:
    return ((a == 0.0) | (b == 0.0)).choose(0.0, a * b)


def _fix_division(
    quotient: VectorNumber, denominator: VectorNumber, numerator: VectorNumber
) -> VectorNumber:
    """Special cases of numerator / denominator; elsewhere the quotient so far."""
    special = ~(denominator.is_finite() & numerator.is_finite())
    special = special | (denominator == 0.0) | (numerator == 0.0)
    sign_bit = 1 << quotient.bits - 1
    infinity = {16: 0x7C00, 32: 0x7F80_0000, 64: 0x7FF << 52}[quotient.bits]
    size = quotient.is_nan().choose(
        quotient.constant(infinity, f"u{quotient.bits}"), quotient.absolute().pattern()
    )
    sign = (denominator.pattern() ^ numerator.pattern()) & sign_bit
    return special.choose(numerator / denominator, (size | sign).as_(quotient.kind))


_BOTH: dict[str, Compute] = {
    "add": lambda a, b: a + b,
    "mul": lambda a, b: a * b,
    "max": largest,
    "min": smallest,
    "fma": fused,
    "fmac": fused,
    "fract": _fraction,
    "trunc": _whole("trunc"),
    "ceil": _whole("ceil"),
    "floor": _whole("floor"),
    "rndne": _whole("rint"),
}
_NARROW: dict[str, Compute] = {
    "sub": lambda a, b: a - b,
    "subrev": lambda a, b: b - a,
    "max3": lambda a, b, c: largest(largest(a, b), c),
    "min3": lambda a, b, c: smallest(smallest(a, b), c),
    "med3": _median,
    "mad": lambda a, b, c: a * b + c,
    "mac": lambda a, b, c: a * b + c,
    "fmamk": fused,
    "fmaak": fused,
    "madmk": lambda a, k, b: a * k + b,
    "madak": lambda a, b, k: a * b + k,
    "minimum3": _of_three(smallest),
    "maximum3": _of_three(largest),
}
_SINGLE: dict[str, Compute] = {
    "ldexp": _load_exponent,
    "rcp": _reciprocal,
    "rcp_iflag": _reciprocal,
    "rsq": _reciprocal_root,
    "sqrt": _root,
    "exp": lambda a: exp2(a.to("f64")).to("f32"),
    "log": lambda a: log2(a.to("f64")).to("f32"),
    "div_fixup": _fix_division,
}
_FLUSHING = ("exp", "log", "rcp", "rcp_iflag", "rsq", "sqrt", "mad", "mac", "madmk", "madak")

FLOATS: dict[str, Compute] = {}
for _kind, _tables in {"f16": (_BOTH, _NARROW), "f32": (_BOTH, _NARROW, _SINGLE)}.items():
    for _table in _tables:
        for _name, _compute in _table.items():
            _flushes = _kind == "f32" and _name in _FLUSHING
            FLOATS[f"v_{_name}_{_kind}"] = flushing(_compute, "f32") if _flushes else _compute
for _name in ("fmac", "fmamk", "fmaak"):  # no chip has them
    del FLOATS[f"v_{_name}_f16"]
for _name in ("add", "mul", "max", "min", "trunc", "ceil", "floor", "rndne"):
    FLOATS[f"v_{_name}_f64"] = _BOTH[_name]
for _base in ("mad", "fma"):
    FLOATS[f"v_{_base}_legacy_f16"] = FLOATS[f"v_{_base}_f16"]
for _base in ("exp", "log"):
    FLOATS[f"v_{_base}_legacy_f32"] = FLOATS[f"v_{_base}_f32"]
FLOATS |= {
    "v_mul_legacy_f32": _legacy_product,
    "v_mad_legacy_f32": flushing(lambda a, b, c: _legacy_product(a, b) + c, "f32"),
}

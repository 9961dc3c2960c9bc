"""Vector instructions on floats."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction

from tests.emulator.instructions.manual.bits import (
    FORMATS,
    arithmetic,
    is_nan,
    nan,
    number,
    rounded,
    signed,
)

Model = Callable[..., int]


def _extreme(kind: str, largest: bool) -> Model:
    """Of two numbers, or the one that is a number; but a signaling NaN gives NaN."""
    sign, quiet = sum(FORMATS[kind]), FORMATS[kind][1] - 1

    def model(a: int, b: int) -> int:
        if any(is_nan(bits, kind) and not bits >> quiet & 1 for bits in (a, b)):
            return nan(kind)
        if is_nan(a, kind) or is_nan(b, kind):
            return b if is_nan(a, kind) else a
        x, y = number(a, kind), number(b, kind)
        if x == y:  # +0 is above -0
            return a if (a >> sign & 1 == 0) == largest else b
        return a if (x > y) == largest else b

    return model


def _strict(kind: str, largest: bool) -> Model:
    """NaN if one of them is."""
    pick = _extreme(kind, largest)

    def model(a: int, b: int, c: int) -> int:
        if any(is_nan(x, kind) for x in (a, b, c)):
            return nan(kind)
        return pick(pick(a, b), c)

    return model


def _median(kind: str) -> Model:
    low, high = _extreme(kind, largest=False), _extreme(kind, largest=True)

    def model(a: int, b: int, c: int) -> int:
        if any(is_nan(x, kind) for x in (a, b, c)):
            return low(low(a, b), c)
        top = number(high(high(a, b), c), kind)
        if top == number(a, kind):
            return high(b, c)
        return high(a, c) if top == number(b, kind) else high(a, b)

    return model


def _of_one(kind: str, function: Callable[[float], float]) -> Model:
    def model(a: int) -> int:
        try:
            return rounded(function(number(a, kind)), kind)
        except (ValueError, OverflowError):
            return nan(kind)

    return model


def _kept(function: Callable[[float], int]) -> Callable[[float], float]:
    """Rounding to an integer keeps infinities, NaN and the sign of zero."""

    def whole(x: float) -> float:
        if not math.isfinite(x):
            return x
        return math.copysign(float(function(x)), x)

    return whole


def _reciprocal(x: float) -> float:
    if x == 0:
        return math.copysign(math.inf, x)
    return 1 / x


def _reciprocal_root(x: float) -> float:
    if x == 0:
        return math.copysign(math.inf, x)
    return 0.0 if x == math.inf else 1 / math.sqrt(x)


def _power(x: float) -> float:
    try:
        return 2.0**x if math.isfinite(x) else {math.inf: math.inf, -math.inf: 0.0}.get(x, x)
    except OverflowError:
        return math.inf


def _logarithm(x: float) -> float:
    return -math.inf if x == 0 else math.log2(x)


def _fraction(kind: str) -> Model:
    def model(a: int) -> int:
        x = number(a, kind)
        if not math.isfinite(x):
            return nan(kind)
        largest = rounded(1.0, kind) - 1
        return min(rounded(Fraction(x) - math.floor(x), kind), largest)

    return model


def _scaled(kind: str, bits: int) -> Model:
    def model(a: int, b: int) -> int:
        x, power = number(a, kind), signed(b, bits)
        if not math.isfinite(x) or x == 0:
            return rounded(x, kind)
        power = max(-5000, min(5000, power))
        return rounded(Fraction(x) * Fraction(2) ** power, kind)

    return model


def _split(kind: str) -> Model:
    def model(a: int) -> int:
        x = number(a, kind)
        return rounded(math.frexp(x)[0] if math.isfinite(x) else x, kind)

    return model


def _power_of(kind: str) -> Model:
    def model(a: int) -> int:
        x = number(a, kind)
        return math.frexp(x)[1] if math.isfinite(x) else 0

    return model


def _fixed_division(kind: str) -> Model:
    """v_div_fixup: (quotient so far, denominator, numerator)."""

    def model(quotient: int, below: int, above: int) -> int:
        q, d, n = (number(x, kind) for x in (quotient, below, above))
        negative = (math.copysign(1, d) < 0) != (math.copysign(1, n) < 0)
        if math.isnan(d) or math.isnan(n):
            return nan(kind)
        if (d == 0 and n == 0) or (math.isinf(d) and math.isinf(n)):
            return nan(kind)
        if d == 0 or math.isinf(n):
            return rounded(-math.inf if negative else math.inf, kind)
        if n == 0 or math.isinf(d):
            return rounded(-0.0 if negative else 0.0, kind)
        size = math.inf if math.isnan(q) else abs(q)
        return rounded(-size if negative else size, kind)

    return model


def flushed(model: Model, kind: str) -> Model:
    """The same where denormals are taken for 0, and 0 given for them."""
    exponent, mantissa = FORMATS[kind]
    sign = 1 << (exponent + mantissa)

    def flush(bits: int) -> int:
        return bits if bits >> mantissa & ((1 << exponent) - 1) else bits & sign

    return lambda *sources: flush(model(*map(flush, sources)))


def _turn(kind: str, function: Callable[[float], float]) -> Model:
    """sin or cos of a part of a turn: out of the range of the instruction, as if it were 0."""

    def in_range(x: float) -> float:
        return 0.0 if math.isfinite(x) and abs(x) > 256 else x

    return _of_one(kind, lambda x: function(2 * math.pi * in_range(x)))


def _legacy_product(a: int, b: int) -> int:
    x, y = number(a, "f32"), number(b, "f32")
    return 0 if x == 0 or y == 0 else FLOATS["v_mul_f32"](a, b)


def _face(x: int, y: int, z: int) -> int:
    """The face of a cube that a vector goes through: +x, -x, +y, -y, +z, -z."""
    a, b, c = (number(v, "f32") for v in (x, y, z))
    if abs(c) >= abs(a) and abs(c) >= abs(b):
        return 4 + (c < 0)
    if abs(b) >= abs(a):
        return 2 + (b < 0)
    return int(a < 0)


def _opposite(x: int) -> int:
    return x ^ 1 << 31


def _twice(x: int) -> int:
    return rounded(2 * number(x, "f32"), "f32")


FLOATS: dict[str, Model] = {}
TRANSCENDENTAL: set[str] = set()
"""Those that a chip only approximates; the emulator gives the nearest number, or its neighbour."""

for _kind in ("f16", "f32", "f64"):
    _add = arithmetic(_kind, lambda a, b: a + b, lambda a, b: a + b)
    _multiply = arithmetic(_kind, lambda a, b: a * b, lambda a, b: a * b)
    _fused = arithmetic(_kind, lambda a, b, c: a * b + c, lambda a, b, c: a * b + c)
    _rows: dict[str, Model] = {
        "add": _add,
        "mul": _multiply,
        "fma": _fused,
        "fmac": _fused,
        "max": _extreme(_kind, largest=True),
        "min": _extreme(_kind, largest=False),
        "trunc": _of_one(_kind, _kept(math.trunc)),
        "ceil": _of_one(_kind, _kept(math.ceil)),
        "floor": _of_one(_kind, _kept(math.floor)),
        "rndne": _of_one(_kind, _kept(round)),
        "fract": _fraction(_kind),
        "rcp": _of_one(_kind, _reciprocal),
        "rsq": _of_one(_kind, _reciprocal_root),
        "sqrt": _of_one(_kind, math.sqrt),
        "ldexp": _scaled(_kind, 16 if _kind == "f16" else 32),
        "frexp_mant": _split(_kind),
        "div_fixup": _fixed_division(_kind),
    }
    TRANSCENDENTAL |= {f"v_{_name}_{_kind}" for _name in ("rcp", "rsq", "sqrt")}
    if _kind != "f64":
        # A product and a sum, each rounded.
        _mad: Model = lambda a, b, c, m=_multiply, s=_add: s(m(a, b), c)  # noqa: E731
        _largest, _smallest = _rows["max"], _rows["min"]
        _rows |= {
            "sub": arithmetic(_kind, lambda a, b: a - b, lambda a, b: a - b),
            "subrev": arithmetic(_kind, lambda a, b: b - a, lambda a, b: b - a),
            "max3": lambda a, b, c, f=_largest: f(f(a, b), c),
            "min3": lambda a, b, c, f=_smallest: f(f(a, b), c),
            "med3": _median(_kind),
            "minimum3": _strict(_kind, largest=False),
            "maximum3": _strict(_kind, largest=True),
            "exp": _of_one(_kind, _power),
            "log": _of_one(_kind, _logarithm),
            "sin": _turn(_kind, math.sin),
            "cos": _turn(_kind, math.cos),
            "fmamk": _fused,
            "fmaak": _fused,
            "madmk": _mad,
            "madak": _mad,
            "mad": _mad,
            "mac": _mad,
        }
        if _kind == "f16":
            _rows |= {f"{_name}_legacy": _rows[_name] for _name in ("mad", "fma", "div_fixup")}
        if _kind == "f32":
            # "Denormals are flushed", say the manuals of these.
            for _name in ("exp", "log", "rcp", "rsq", "sqrt", "mad", "mac", "madmk", "madak"):
                _rows[_name] = flushed(_rows[_name], _kind)
            _rows["rcp_iflag"] = _rows["rcp"]
            _rows |= {f"{_name}_legacy": _rows[_name] for _name in ("exp", "log")}
            TRANSCENDENTAL |= {"v_rcp_iflag_f32", "v_exp_legacy_f32", "v_log_legacy_f32"}
        TRANSCENDENTAL |= {f"v_{_name}_{_kind}" for _name in ("exp", "log", "sin", "cos")}
    FLOATS |= {f"v_{_name}_{_kind}": _model for _name, _model in _rows.items()}
FLOATS |= {
    "v_mul_legacy_f32": _legacy_product,
    "v_mad_legacy_f32": flushed(
        lambda a, b, c: FLOATS["v_add_f32"](_legacy_product(a, b), c), "f32"
    ),
    "v_cubeid_f32": lambda x, y, z: rounded(Fraction(_face(x, y, z)), "f32"),
    "v_cubesc_f32": lambda x, y, z: (_opposite(z), z, x, x, x, _opposite(x))[_face(x, y, z)],
    "v_cubetc_f32": lambda x, y, z: (
        _opposite(y),
        _opposite(y),
        z,
        _opposite(z),
        _opposite(y),
        _opposite(y),
    )[_face(x, y, z)],
    "v_cubema_f32": lambda x, y, z: _twice((x, x, y, y, z, z)[_face(x, y, z)]),
    "v_frexp_exp_i32_f32": _power_of("f32"),
    "v_frexp_exp_i32_f64": _power_of("f64"),
    "v_frexp_exp_i16_f16": _power_of("f16"),
}


def _two_over_pi() -> int:
    """Its first 1201 bits, by the recipe for pi of Python's documentation of `decimal`."""
    with localcontext() as context:
        context.prec = 420
        three = Decimal(3)
        lasts, t, s, n, na, d, da = Decimal(0), three, three, 1, 0, 0, 24
        while s != lasts:
            lasts = s
            n, na = n + na, na + 8
            d, da = d + da, da + 32
            t = (t * n) / d
            s += t
        return int(Decimal(2) / s * (1 << 1201))


_DIGITS = _two_over_pi()


def _piece(a: int, segment: int) -> int:
    """V_TRIG_PREOP_F64: 53 bits of 2/pi from a place on, the first 1201 of which there are."""
    exponent = a >> 52 & 0x7FF
    place = 53 * (segment & 31) + max(0, exponent - 1077)
    digits = f"{_DIGITS:01201b}".ljust(place + 53, "0")[place : place + 53]
    scale = -53 - place + (128 if exponent >= 1968 else 0)
    return rounded(Fraction(int(digits, 2)) * Fraction(2) ** scale, "f64")


FLOATS["v_trig_preop_f64"] = _piece


def apart(a: int, b: int, kind: str) -> int:
    """How many floats lie between two, by their bits."""
    exponent, mantissa = FORMATS[kind]

    def place(x: int) -> int:
        magnitude = x & ((1 << (exponent + mantissa)) - 1)
        return -magnitude if x >> (exponent + mantissa) else magnitude

    return abs(place(a) - place(b))

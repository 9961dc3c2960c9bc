"""exp of float32 as arithmetic: no call of a library, so that LLVM makes vectors of it.

With n the integer next to x / ln 2, e^x = 2^n * e^r, where r = x - n ln 2 and |r| < 0.3467:

- x is clamped to [-104, 89] first. Below, e^x rounds to 0, above to infinity, so nothing changes.
  A NaN fails both comparisons and passes.
- n is what 1.5 * 2^23 + x / ln 2 leaves in the low bits of a float32, whose unit there is 1.
- ln 2 has two parts. The first has 15 bits, so that n (8 bits) times it is exact. x minus that is
  exact, too: it is below 1/2, and where n is not 0 a multiple of 2^-25. Only r itself is rounded.
- e^r is 1 + (r + r^2 q(r)), with q of degree 4.
- 2^n is two factors, 2^h and 2^(n - h) with h about half of n: each is a normal number where 2^n
  need not be. The first product is exact; the second rounds where the result is subnormal, and
  overflows to infinity.

Nothing depends on how LLVM contracts: x - n * first is exact with an FMA and without, and the bound
has room for each rounding that an FMA leaves out. Flags that let LLVM reassociate are not allowed;
TVM sets none unless the target asks for `fast-math`.

The error is below BOUND units in the last place of the exact value, subnormal ones included. The
remainder of the polynomial is below REMAINDER * e^r: its coefficients are rational numbers, and the
tests enclose it in intervals of exact fractions. With it the roundings are, in u = 2^-24:

                                             r < 0                    r >= 0
    1 + s                                    0.5                      1
    s = r + r^2 q(r), below 1/2              0.25                     0.25
    r, below 1/2, times e^r                  0.25 * 0.78              0.25 * 1.4144
    r^2, q and r^2 * q, 3 u of r^2 q(r),     3 * 0.0546               3.4 * 0.0682
      3.4 u where q is above 1/2
    n times the second part of ln 2          0.001                    0.001
    the remainder                            0.053                    0.053 * 1.4144
                                             < 1.17                   < 1.92

The unit of e^r is u for r < 0, 2 u for r >= 0, so that these are 1.17 and 0.96 units. What is
subnormal has a unit at least twice that of e^r 2^n, and is rounded once more: 1.17 / 2 + 0.5.
`python -m benchmarks.exponential` compares all 2^32 floats with float64.
"""

from __future__ import annotations

import tvm
from tvm import tirx
from tvm.tirx import Expr, Let, PrimFunc, Select, Var

from mfmadsl.passes.tir.device import called
from mfmadsl.passes.tir.error import LoweringError
from mfmadsl.passes.tir.rewrite import dtype_of, with_body
from mfmadsl.passes.tir.walk import mapped

BOUND = 1.2
"""Units in the last place of the exact value."""

REMAINDER = 0.053 * 2**-24
"""The polynomial's error as a part of e^r, for |r| < LARGEST."""

LARGEST = 0.3467
"""|r|: half of ln 2, and what the rounding of x / ln 2 may add."""

LEAST, MOST = -104.0, 89.0
LOG2_E = 1.44269502162933349609375
LN_2 = 0.693145751953125, 1.42860676533018704503775e-06
UNIT_IS_ONE = 1.5 * 2**23
COEFFICIENTS = (
    float.fromhex("0x1.fffffcp-2"),
    float.fromhex("0x1.555492p-3"),
    float.fromhex("0x1.5558aep-5"),
    float.fromhex("0x1.123988p-7"),
    float.fromhex("0x1.6a4f88p-10"),
)
"""Coefficients of q, the constant first: float32 near 1/2, 1/6, 1/24, 1/120, 1/720."""

_BITS = 0x4B400000
"""Those of UNIT_IS_ONE."""

_EXP = "exp"


def exponential(x: Expr) -> Expr:
    """e^x of a float32 expression, or of a vector of float32, within BOUND.

    NaN of NaN, infinity of infinity and of what overflows, 0 of minus infinity; underflow is
    gradual. Raises LoweringError for another type.
    """
    dtype = str(x.ty.dtype)
    if dtype_of(x) != "float32":
        raise LoweringError(f"the polynomial exp is of float32, not of {dtype}")
    integer = dtype.replace("float", "int")

    def number(value: float) -> Expr:
        return tirx.const(value, dtype)

    def whole(value: int) -> Expr:
        return tirx.const(value, integer)

    def power_of_two(biased: Expr) -> Expr:
        return tirx.reinterpret(dtype, tirx.shift_left(biased, whole(23)))

    given, raised, clamped, shifted, n, r = (
        Var(name, dtype) for name in ("x", "raised", "clamped", "shifted", "n", "r")
    )
    biased, half = Var("biased", integer), Var("half", integer)
    q = number(COEFFICIENTS[-1])
    for coefficient in reversed(COEFFICIENTS[:-1]):
        q = q * r + number(coefficient)
    bound: tuple[tuple[Var, Expr], ...] = (
        (given, x),
        (raised, Select(given < number(LEAST), number(LEAST), given)),
        (clamped, Select(raised > number(MOST), number(MOST), raised)),
        (shifted, clamped * number(LOG2_E) + number(UNIT_IS_ONE)),
        (n, shifted - number(UNIT_IS_ONE)),
        (r, clamped - n * number(LN_2[0]) - n * number(LN_2[1])),
        # Both exponents have a bias of 127.
        (biased, tirx.reinterpret(integer, shifted) - whole(_BITS - 2 * 127)),
        (half, tirx.shift_right(biased, whole(1))),
    )
    value = number(1.0) + (r + r * r * q)
    value = value * power_of_two(half) * power_of_two(biased - half)
    for variable, bound_value in reversed(bound):
        value = Let(variable, bound_value, value)
    return value


def expand_exponentials() -> tvm.transform.Pass:
    """The pass that puts `exponential` in place of each exp of float32, scalar or vector.

    It is for CPUs: functions with another target (an attribute that TVM's pipeline sets) are left
    alone. It stands before `tvm.compile`, which would make calls of expf; a loop of kind vectorized
    around the exp may still be one or be made one later. exp of other types stays what it is.
    """

    def of_function(function: PrimFunc, module: object, context: object) -> PrimFunc:
        target = (function.attrs or {}).get("target")
        if target is not None and str(target.kind) != "llvm":
            return function
        return with_body(function, mapped(function.body, (tvm.ir.Call, _expanded)))

    made: tvm.transform.Pass = tirx.transform.prim_func_pass(
        of_function, opt_level=0, name="mfmadsl.expand_exponentials"
    )
    return made


def _expanded(call: tvm.ir.Call) -> Expr:
    if called(call) == _EXP and dtype_of(call) == "float32":
        return exponential(call.args[0])
    return call

"""Computing with bfloat16 on a CPU, which has float32 and integers.

TVM's BF16ComputeLegalize would make float32 of the buffers that only a kernel sees, also of those
that an instruction loads as they lie. Here what is computed becomes float32 and is rounded after
each operation, to nearest, ties to even; what is moved stays as it is.
"""

from __future__ import annotations

from tvm import tirx
from tvm.tirx import Expr, PrimFunc

from mfmadsl.passes.tir.rewrite import of_lanes, rewrite
from mfmadsl.passes.types.float32 import Conversions

_NAN = 0x7FC0


def compute_bfloats(function: PrimFunc) -> PrimFunc:
    """The function with what it computes in bfloat16, also of vectors, computed in float32."""
    conversions = Conversions(frozenset({"bfloat16"}), _wide, _narrow)
    return rewrite(function, conversions.computes, conversions.computed, vectors=True)


def _wide(value: Expr) -> Expr:
    word, half = of_lanes("uint32", value), of_lanes("uint16", value)
    bits = tirx.Cast(word, tirx.reinterpret(half, value))
    return tirx.reinterpret(of_lanes("float32", value), bits << tirx.const(16, word))


def _narrow(value: Expr, _: str) -> Expr:
    """A float32, rounded: half of the last place and more is carried into it."""
    word, half = of_lanes("uint32", value), of_lanes("uint16", value)

    def number(of: int) -> Expr:
        return tirx.const(of, word)

    bits = tirx.reinterpret(word, value)
    high, low = bits >> number(16), bits & number(0xFFFF)
    # TVM tells LLVM that no sum of these wraps around: `bits` plus something might.
    carried = high + (low + number(0x7FFF) + (high & number(1)) >> number(16))
    is_nan = (bits & number(0x7FFFFFFF)) > number(0x7F800000)
    chosen = tirx.Select(is_nan, number(_NAN), carried)
    return tirx.reinterpret(of_lanes("bfloat16", value), tirx.Cast(half, chosen))

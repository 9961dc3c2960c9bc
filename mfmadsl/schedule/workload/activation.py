"""Activations of a network, as expressions in the type of what they are computed of."""

from __future__ import annotations

from math import sqrt

from tvm import tirx
from tvm.te.tensor import TensorSlice
from tvm.tirx import Expr


def relu(x: TensorSlice) -> Expr:
    """The larger of x and 0."""
    return tirx.max(x, _constant(0, x))


def silu(x: TensorSlice) -> Expr:
    """x * sigmoid(x)."""
    return x * tirx.sigmoid(x)


def gelu(x: TensorSlice) -> Expr:
    """x times the normal distribution's part below it."""
    half, one, root = (_constant(value, x) for value in (0.5, 1, sqrt(0.5)))
    return x * half * (tirx.erf(x * root) + one)


ACTIVATIONS = {"silu": silu, "gelu": gelu, "relu": relu}


def _constant(value: float, like: TensorSlice) -> Expr:
    return tirx.const(value, like.dtype)

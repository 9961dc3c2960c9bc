"""What can follow a product by name: each step for the kernel, and for NumPy to compare with.

A step is one record of `STEPS`. TVM is imported when an expression is made, so that whoever lists
the names does not wait for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import erf, sqrt
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from tvm import te
    from tvm.te.tensor import TensorSlice
    from tvm.tirx import Expr

Values = npt.NDArray[np.float64]


@dataclass(frozen=True)
class EpilogueStep:
    """One step, element by element.

    `takes` says what it reads beside the element: nothing, a `vector` with an element for each
    column of C, or a `matrix` of C's shape. `slope` bounds how an error in the element grows; None
    stands for the size of what it reads.
    """

    takes: str
    expression: Callable[[TensorSlice, TensorSlice], Expr]
    model: Callable[[Values, Values], Values]
    slope: float | None = 1
    integers: bool = True


def _activation(name: str) -> Callable[[TensorSlice, TensorSlice], Expr]:
    def expression(x: TensorSlice, _: TensorSlice) -> Expr:
        from mfmadsl.schedule.workload.activation import ACTIVATIONS

        return ACTIVATIONS[name](x)

    return expression


def _gelu_model(x: Values) -> Values:
    return np.asarray(0.5 * x * (1 + np.vectorize(erf, otypes=[np.float64])(x * sqrt(0.5))))


STEPS = {
    "bias": EpilogueStep("vector", lambda x, y: x + y, lambda x, y: x + y),
    "scale": EpilogueStep("vector", lambda x, y: x * y, lambda x, y: x * y, None, integers=False),
    "residual": EpilogueStep("matrix", lambda x, y: x + y, lambda x, y: x + y),
    "relu": EpilogueStep("", _activation("relu"), lambda x, _: np.maximum(x, 0)),
    "gelu": EpilogueStep(
        "", _activation("gelu"), lambda x, _: _gelu_model(x), 1.13, integers=False
    ),
    "silu": EpilogueStep(
        "",
        _activation("silu"),
        lambda x, _: x / (1 + np.exp(-x)),
        1.1,
        integers=False,
    ),
}
_STEP_ROUNDINGS = 16  # what the kernel's erf and exp are off by, and a few operations


def check_steps(names: Sequence[str], sum_dtype: str) -> None:
    """Raise ScheduleError for a name that there is not, or a step that integers do not have."""
    from mfmadsl.schedule import ScheduleError

    for name in names:
        if name not in STEPS:
            raise ScheduleError(f"epilogue: there is no `{name}`, but: {', '.join(STEPS)}")
        if sum_dtype.startswith("int") and not STEPS[name].integers:
            raise ScheduleError(f"epilogue: `{name}` is of floats, and the sums are {sum_dtype}")
        if STEPS[name].takes and names.count(name) > 1:
            raise ScheduleError(f"epilogue: `{name}` can stand there once only")


def fused(
    product: te.Tensor, names: Sequence[str], dtype: str
) -> tuple[list[te.Tensor], te.Tensor]:
    """The placeholders that the steps read, and C in its type."""
    from tvm import te

    shape, value = list(product.shape), product
    operands = []
    for name, block in zip(names, fused_blocks(names), strict=True):
        step = STEPS[name]
        operand = None
        if step.takes:
            own = shape if step.takes == "matrix" else shape[-1:]
            operand = te.placeholder(own, name=name, dtype=product.dtype)
            operands.append(operand)
        value = _stage(value, step, operand, block)
    last = value
    return operands, te.compute(shape, lambda *i: last[i].astype(dtype), name="C")


def fused_blocks(names: Sequence[str]) -> list[str]:
    """What the blocks of the steps are called, before that of C."""
    return [f"{name}_{number}" for number, name in enumerate(names)]


def _stage(value: te.Tensor, step: EpilogueStep, operand: te.Tensor | None, name: str) -> te.Tensor:
    from tvm import te

    def compute(*place: Expr) -> Expr:
        own = place if step.takes == "matrix" else place[-1:]
        return step.expression(value[place], value[place] if operand is None else operand[own])

    return te.compute(list(value.shape), compute, name=name)


def model(
    names: Sequence[str], values: Values, errors: Values, operands: Sequence[Values],
    rounding: float,
) -> tuple[Values, Values]:  # fmt: skip
    """What the steps make of the product in float64, and how far a kernel may be off.

    `errors` bounds how far the product may be off. The kernel computes in the type of the sums,
    which rounds to `rounding` of a number.
    """
    given = iter(operands)
    for name in names:
        step = STEPS[name]
        operand = next(given) if step.takes else np.zeros(0)
        slope = np.abs(operand) if step.slope is None else step.slope
        before = np.abs(values)
        values = step.model(values, operand)
        size = before * slope + np.abs(values)  # of a sum, no less than what is added
        errors = errors * slope + _STEP_ROUNDINGS * rounding * size
    return values, errors

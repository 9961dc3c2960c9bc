"""Element-wise expressions of a workload, as code for one element in a register.

Two things differ from what the workload says. Of the types that the vector ALU does not compute
with (bfloat16, fp8, bf8) values are float32, rounded after each operation as the workload would.
And there is no device library: functions are those that LLVM expands by itself, or are written out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tvm
from tvm import tirx
from tvm.ir import TensorLoad
from tvm.tirx.script.builder import ir as T

from mfmadsl.passes import LoweringError
from mfmadsl.passes.functions import FUNCTIONS, expanded
from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.writer import emit
from mfmadsl.schedule.writer.match import substitute

NARROW = {
    "bfloat16": "i16", "float8_e4m3fnuz": "i8", "float8_e5m2fnuz": "i8", "float8_e4m3fn": "i8",
    "float8_e5m2": "i8",
}  # fmt: skip
"""Types that are computed as float32, and the device function that loads their bits."""

_BINARY = (
    tirx.Add, tirx.Sub, tirx.Mul, tirx.Div, tirx.Max, tirx.Min, tirx.EQ, tirx.NE, tirx.LT, tirx.LE,
    tirx.GT, tirx.GE, tirx.And, tirx.Or, tirx.FloorDiv, tirx.FloorMod, tirx.Mod,
)  # fmt: skip


class Evaluator:
    """Turns expressions into code, at one place of C.

    `places` says what the axis variables are there, inside of the matrix; `values` what the buffers
    of the product and of earlier stages hold, under the names of their buffers.
    """

    def __init__(self, block: str, places: Mapping[Any, Any], values: Mapping[str, Any]) -> None:
        self._block = block
        self._places = places
        self._values = values

    def value(self, expression: Any) -> Any:
        """The expression's value, as float32 where its type is a narrow one."""
        dtype = dtype_of(expression)
        if isinstance(expression, TensorLoad):
            return self._load(expression)
        if isinstance(expression, tirx.IntImm):
            return expression
        if isinstance(expression, tirx.FloatImm):
            return tirx.const(float(expression.value), "float32" if dtype in NARROW else dtype)
        if isinstance(expression, tirx.Var):
            return T.cast(substitute(expression, self._places), dtype)
        if isinstance(expression, tirx.Cast):
            return self._cast(expression)
        if isinstance(expression, _BINARY):
            result = type(expression)(self.value(expression.a), self.value(expression.b))
            return rounded(result, dtype)
        if isinstance(expression, tirx.Not):
            return tirx.Not(self.value(expression.a))
        if isinstance(expression, tirx.Select):
            return tirx.Select(
                self.value(expression.condition), self.value(expression.true_value),
                self.value(expression.false_value),
            )  # fmt: skip
        if isinstance(expression, tvm.ir.Call):
            return self._call(expression, dtype)
        raise self._cannot(f"`{expression}`")

    def _cannot(self, what: str) -> ScheduleError:
        return ScheduleError(
            f"workload: block `{self._block}` uses {what}, which cannot be fused: compute it in a "
            "kernel of its own"
        )

    def _load(self, expression: Any) -> Any:
        name, dtype = str(expression.source.name), dtype_of(expression)
        if name in self._values:
            return self._values[name]
        indices = [substitute(index, self._places) for index in expression.indices]
        if dtype not in NARROW:
            return expression.source[tuple(indices)] if indices else expression.source[()]
        flat: Any = 0
        for index, extent in zip(indices, expression.source.shape, strict=True):
            flat = flat * extent + index
        bits = emit.device("int32", f"load.{NARROW[dtype]}", expression.source.data,
                           emit.wide(flat))  # fmt: skip
        return from_bits(bits, dtype)

    def _cast(self, expression: Any) -> Any:
        value, dtype = self.value(expression.value), dtype_of(expression)
        if dtype in NARROW:
            return rounded(T.cast(value, "float32"), dtype)
        return T.cast(value, dtype)

    def _call(self, expression: Any, dtype: str) -> Any:
        name = str(getattr(expression.op, "name", expression.op)).rpartition(".")[2]
        arguments = [self.value(argument) for argument in expression.args]
        if name == "if_then_else":
            return tirx.Select(*arguments)
        if name in FUNCTIONS:
            try:
                result = expanded(name, "float32" if dtype in NARROW else dtype, arguments)
            except LoweringError:
                raise self._cannot(f"`{name}` of {dtype}") from None
            return rounded(result, dtype)
        raise self._cannot(f"`{name}`")


def dtype_of(expression: Any) -> str:
    return str(expression.ty.dtype)


def rounded(value: Any, dtype: str) -> Any:
    """A float32 that a narrow type can hold; of other types the value itself."""
    if dtype not in NARROW:
        return value
    return from_bits(emit.device("int32", f"bits.{dtype}", value), dtype)


def from_bits(bits: Any, dtype: str) -> Any:
    """The float32 that the bits of a narrow type stand for."""
    if dtype == "bfloat16":
        return emit.reinterpret(T.shift_left(bits, T.int32(16)), "float32")
    return emit.device("float32", f"value.{dtype}", bits)

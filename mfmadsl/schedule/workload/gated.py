"""A workload whose result is gated, as between the products of a language model's MLP."""

from __future__ import annotations

from collections.abc import Sequence

from tvm import te
from tvm.tirx import Expr, PrimFunc

from mfmadsl.argument import check_choice
from mfmadsl.prim_func import prim_func
from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.product.nest import nests
from mfmadsl.schedule.workload.activation import ACTIVATIONS
from mfmadsl.schedule.workload.dense import TYPES
from mfmadsl.schedule.workload.followed import followed
from mfmadsl.schedule.workload.result import float32_result


def gated(workload: PrimFunc, activation: str = "silu", out_dtype: str = "float32") -> PrimFunc:
    """The workload with activation(gate) * up in the place of its float32 result [..., n].

    Columns 2 * g and 2 * g + 1 of the result are gate and up: B has the weights of both, row by row
    in turn. C becomes [..., n / 2] of `out_dtype`. The activation is "silu" (SwiGLU), "gelu"
    (GeGLU) or "relu" (ReGLU), computed in float32.

    Raises ArgumentError for another activation or type, and ScheduleError for a workload with
    another result than a last parameter of float32, whose n is even.
    """
    check_choice("activation", activation, ACTIVATIONS)
    check_choice("out_dtype", out_dtype, TYPES)
    function = prim_func("workload", workload, ScheduleError)
    result = float32_result(function, "a gated output", 2, "a gate and what it gates")
    *_, last = function.params
    every = nests(function)
    if not result.same_as(last) or not every or not every[-1].store.buffer.same_as(result):
        raise ScheduleError(
            f"workload: its result `{result.name}` has to be its last parameter, which its last"
            " block writes"
        )

    def after(product: te.Tensor) -> tuple[Sequence[te.Tensor], te.Tensor]:
        *rows, columns = product.shape

        def element(*place: Expr) -> Expr:
            *at, pair = place
            gate, up = product[(*at, pair * 2)], product[(*at, pair * 2 + 1)]
            return (ACTIVATIONS[activation](gate) * up).astype(out_dtype)

        name = str(result.name)
        return [], te.compute([*rows, columns // 2], element, name=name)

    return followed(function, after)

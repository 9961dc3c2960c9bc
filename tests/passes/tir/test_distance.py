"""How far apart two places are: by their constants, or else simplified."""

from __future__ import annotations

import pytest
from tvm import tirx
from tvm.sym import Analyzer
from tvm.tirx import Expr

from mfmadsl.passes.tir.expression import distance

X, Y = tirx.Var("x", "int32"), tirx.Var("y", "int32")


@pytest.mark.parametrize(
    ("one", "other", "wanted"),
    [
        (X * 4 + 3, X * 4 + 1, 2),
        (X * 4, X * 4 + 1, -1),
        ((X + 1) * 4, X * 4 + 1, 3),
        (X * 4 + 3, Y * 4 + 3, None),
        (tirx.const(7, "int32"), tirx.const(2, "int32"), 5),
    ],
)
def test_distances(one: Expr, other: Expr, wanted: int | None) -> None:
    assert distance(one, other, Analyzer()) == wanted

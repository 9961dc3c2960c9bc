"""Walks are those of `tvm_ffi`: the same nodes in the same order, and the same replacements."""

from __future__ import annotations

import tvm_ffi
from tvm import tirx

from mfmadsl.passes.tir.walk import mapped, walk

X, Y = tirx.Var("x", "int32"), tirx.Var("y", "int32")
SUM = (X * 4 + Y) // 8 - X % 3
ARITHMETIC = (tirx.Mul, tirx.Add)


def test_each_node_of_a_kind_is_met_as_tvm_ffi_meets_it() -> None:
    seen: tuple[list[object], list[object]] = ([], [])
    walk(SUM, (ARITHMETIC, seen[0].append), (tirx.Var, seen[0].append))
    tvm_ffi.structural_walk(SUM, [(ARITHMETIC, seen[1].append), (tirx.Var, seen[1].append)])
    assert list(map(str, seen[0])) == list(map(str, seen[1]))
    assert list(map(str, seen[0])) == ["x", "x * 4", "y", "x * 4 + y", "x"]


def test_an_interrupt_ends_a_walk() -> None:
    seen: list[tirx.Var] = []

    def first(variable: tirx.Var) -> tvm_ffi.VisitInterrupt:
        seen.append(variable)
        return tvm_ffi.VisitInterrupt(True)

    assert walk(SUM, (tirx.Var, first)) is not None
    assert len(seen) == 1
    assert walk(SUM, (tirx.Sub, lambda _: None)) is None


def test_what_is_replaced_is_replaced_everywhere_and_the_rest_stays_itself() -> None:
    found = mapped(SUM, (tirx.Var, lambda v: Y if v.same_as(X) else v))
    assert str(found) == "(y * 4 + y) // 8 - y % 3"
    assert mapped(SUM, (tirx.Max, lambda _: X)).same_as(SUM)

"""Blocks with parts exchanged: what is not given stays."""

from __future__ import annotations

import pytest
from tvm.s_tir import SBlockRealize
from tvm.tirx import PrimFunc

import mfmadsl
from mfmadsl.passes.tir.block import in_sequence, statements, with_parts, with_root


@pytest.fixture
def function() -> PrimFunc:
    return mfmadsl.matmul(16, 16, 16, "float16", "float32")


def test_what_is_given_is_exchanged_and_all_else_stays(function: PrimFunc) -> None:
    assert isinstance(function.body, SBlockRealize)
    root = function.body.block
    named = with_parts(root, name="mole")
    assert (str(named.name_hint), named.body) == ("mole", root.body)
    annotated = with_parts(root, annotations={"mole": 7}, allocated=[])
    assert (str(annotated.name_hint), dict(annotated.annotations)) == ("root", {"mole": 7})
    assert annotated.body.same_as(root.body)


def test_a_function_runs_what_its_root_does(function: PrimFunc) -> None:
    (loops,) = statements(function)
    assert isinstance(function.body, SBlockRealize)
    twice = with_parts(function.body.block, body=in_sequence([loops, loops]))
    found = statements(with_root(function, twice))
    assert len(found) == 2
    assert all(each.same_as(loops) for each in found)
    assert in_sequence([loops]).same_as(loops)

"""What a launch has to hold: kept through a schedule and TVMScript, and asserted by the host."""

from __future__ import annotations

import pytest
import tvm
import tvm_ffi
from tvm import te, tirx
from tvm.s_tir import SBlockRealize, Schedule
from tvm.tirx import AssertStmt, PrimFunc, SeqStmt

import mfmadsl
from mfmadsl.backend.gpu.lower import split
from mfmadsl.backend.gpu.names import named_apart
from mfmadsl.model import architecture
from mfmadsl.passes.kernel.requirement import (
    REQUIRES,
    asserted,
    requirements_of,
    with_requirements,
)
from mfmadsl.passes.tir.expression import numbers
from tests.schedule.product.multiples import product

s = te.var("s", "int32")
MULTIPLE = "s_times_4 has to be a multiple of 4"


def scheduled() -> PrimFunc:
    function = product(4 * s, 48, 96, 3, lambda i: i % s % 3)
    return mfmadsl.gemm_schedule(function, arch="gfx942").mod["main"]


def test_a_schedule_keeps_them() -> None:
    assert list(requirements_of(scheduled())) == [MULTIPLE]


def test_they_are_read_back_from_script() -> None:
    function = scheduled()
    back = tvm.script.from_source(function.script())
    ((said, expression),) = requirements_of(back).items()
    assert said == MULTIPLE
    (symbol,) = (v for v in tirx.analysis.undefined_vars(expression, []))
    assert any(symbol.same_as(extent) for p in back.params for extent in p.shape)


def test_several_are_added_up() -> None:
    function = product(s, 48, 96)
    twice = with_requirements(with_requirements(function, {"a": s - 1}), {"b": s - 2})
    assert list(requirements_of(twice)) == ["a", "b"]
    assert with_requirements(function, {}) is function


def test_other_annotations_stay() -> None:
    sch = Schedule(product(s, 48, 96))
    sch.annotate(sch.get_sblock("root"), "mole", 7)
    function = with_requirements(sch.mod["main"], {"a": s - 1})
    for each in (function, asserted(function)):
        assert isinstance(each.body, SBlockRealize)
        assert int(each.body.block.annotations["mole"]) == 7


def test_without_any_nothing_is_changed() -> None:
    function = product(s, 48, 96)
    assert asserted(function) is function


def test_assertions_take_the_place_of_the_annotation() -> None:
    function = asserted(scheduled())
    assert requirements_of(function) == {}
    assert isinstance(function.body, SBlockRealize)
    root = function.body.block
    assert REQUIRES not in root.annotations
    assert isinstance(root.body, SeqStmt)
    (check, *_) = root.body.seq
    assert isinstance(check, AssertStmt)


@pytest.mark.parametrize(("extent", "holds"), [(8, True), (6, False), (1, False)])
def test_the_host_checks_them_before_it_launches(extent: int, holds: bool) -> None:
    host = split(named_apart(scheduled()), architecture("gfx942")).host
    found: list[AssertStmt] = []
    tvm_ffi.structural_walk(host.body, (AssertStmt, found.append))
    (check,) = (each for each in found if MULTIPLE in str(each.message_parts[0]))
    assert str(check.error_kind.value) == "ValueError"
    assert bool(numbers(check.condition.a, {"s_times_4": extent}) == 0) is holds
    text = str(host)
    assert text.index(MULTIPLE) < text.index("call_ffi_kernel")

"""Which functions are attentions of TVM's KV cache: those that its frontend makes, no others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import tvm
import tvm_ffi
from tvm import tirx
from tvm.ir import Call
from tvm.relax.frontend.nn.llm import kv_cache
from tvm.tirx import PrimFunc

import mfmadsl
from mfmadsl.passes.tir.expression import name_of
from mfmadsl.relax.kv_cache.form import CacheKind
from mfmadsl.relax.kv_cache.recognise import recognised
from mfmadsl.relax.kv_cache.replace import with_cache_kernels
from tests.relax.kv_cache.functions import DEPTH, HEADS, SHARED, Form

TARGET = mfmadsl.target("gfx942")
LLAMA = {
    "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}  # fmt: skip
FORMS = [
    Form(CacheKind.DECODE), Form(CacheKind.DECODE, slides=True), Form(CacheKind.PREFILL),
    Form(CacheKind.PREFILL, slides=True, window=77), Form(CacheKind.RAGGED), Form(CacheKind.LATENT),
    Form(CacheKind.LATENT, slides=True), Form(CacheKind.PREFILL, dtype="float32"),
]  # fmt: skip


@pytest.mark.parametrize("rope", [{}, LLAMA, {"rope_type": "gptj"}], ids=["plain", "llama", "gptj"])
@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_what_the_frontend_makes_is_known_by_any_name(form: Form, rope: dict[str, Any]) -> None:
    function = form.function(TARGET, rope).with_attr("global_symbol", "anything")
    found = recognised(function, TARGET)
    assert found is not None
    assert (found.kind, found.slides, found.window) == (form.kind, form.slides, form.window)
    assert str(found.array("q").dtype) == form.dtype


def test_one_for_more_threads_is_known() -> None:
    wide = tvm.target.Target({"kind": "rocm", "mcpu": "gfx942", "max_num_threads": 1024})
    assert recognised(Form(CacheKind.DECODE).function(wide), TARGET) is not None


def test_sizes_that_tvm_has_no_function_for_are_no_mistake() -> None:
    module = tvm.IRModule({"f": Form(CacheKind.DECODE).function(TARGET)})
    parameters = list(module["f"].params)
    for place, shape in ((0, (4, HEADS, 1)), (1, (8, 2, SHARED, 16, 1))):
        dtype = str(parameters[place].dtype)
        parameters[place] = tirx.decl_buffer(shape, dtype, parameters[place].name)
    narrow = PrimFunc(parameters, tirx.Evaluate(0), attrs=module["f"].attrs)
    assert recognised(narrow, TARGET) is None


def with_other_numbers(function: PrimFunc) -> PrimFunc:
    """The least score is another one."""

    def number(node: tirx.FloatImm) -> tirx.FloatImm:
        return tirx.FloatImm("float32", -6e4) if float(node.value) == -5e4 else node

    return function.with_body(tvm_ffi.structural_map(function.body, (tirx.FloatImm, number)))


def with_a_longer_last_page(function: PrimFunc) -> PrimFunc:
    """It counts a key more."""

    def difference(node: tirx.Sub) -> Any:
        return node.a if isinstance(node.b, tirx.IntImm) and int(node.b.value) == 1 else node

    return function.with_body(tvm_ffi.structural_map(function.body, (tirx.Sub, difference)))


def with_another_power(function: PrimFunc) -> PrimFunc:
    """Exponentials have another base."""

    def power(node: Call) -> Call:
        if name_of(node) != "exp2":
            return node
        other: Call = tirx.exp(node.args[0])
        return other

    return function.with_body(tvm_ffi.structural_map(function.body, (Call, power)))


def rotated_by_another_mode(function: PrimFunc) -> PrimFunc:
    """Rotary embeddings are for another mode than 1."""

    def question(node: tirx.EQ) -> tirx.EQ:
        is_one = isinstance(node.b, tirx.IntImm) and int(node.b.value) == 1
        return tirx.EQ(node.a, tirx.const(2, "int32")) if is_one else node

    return function.with_body(tvm_ffi.structural_map(function.body, (tirx.EQ, question)))


CHANGES = [
    with_other_numbers, with_a_longer_last_page, with_another_power, rotated_by_another_mode,
]  # fmt: skip


@pytest.mark.parametrize("changed", CHANGES, ids=lambda change: change.__name__)
@pytest.mark.parametrize("form", FORMS[:1] + FORMS[2:3], ids=lambda form: form.name)
def test_a_changed_function_stays_as_it_is(
    form: Form, changed: Callable[[PrimFunc], PrimFunc]
) -> None:
    function = changed(form.function(TARGET))
    assert not tvm_ffi.structural_equal(function, form.function(TARGET))
    assert recognised(function, TARGET) is None
    module = tvm.IRModule({"f": function})
    after, (line,) = with_cache_kernels(module, TARGET)
    assert after["f"].same_as(module["f"])
    assert (line.function, line.rule, line.is_ours) == ("f", "TVM", False)
    assert line.reason == "is none of those attentions of TVM's KV cache that become ours"


def test_other_attentions_of_tvm_are_named_in_the_report_and_stay() -> None:
    tree = kv_cache.tree_attn(SHARED, HEADS, DEPTH, "float16", {}, TARGET)
    wide = Form(CacheKind.PREFILL, dtype="float32").function(TARGET)
    module = tvm.IRModule({"tree": tree, "wide": wide})
    after, lines = with_cache_kernels(module, TARGET)
    assert {line.function: line.is_ours for line in lines} == {"tree": False, "wide": False}
    assert all(after[name].same_as(module[name]) for name in ("tree", "wide"))
    assert "float32" in next(line.reason for line in lines if line.function == "wide")
    rule = mfmadsl.relax.MatrixCore()
    rule.with_cache(module, TARGET)
    assert len(rule.report.functions) == 2

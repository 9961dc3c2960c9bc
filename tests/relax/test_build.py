"""What `tvm.compile` gives: an executable that holds our code as TVM's runtime loads it."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
import tvm
import tvm_ffi
from tvm import te

import mfmadsl
from mfmadsl.relax import Pipeline
from mfmadsl.relax import build as relax_build
from mfmadsl.relax.lowering import lowered
from tests.relax.elf import CodeObject, code_objects
from tests.relax.models import Mlp, exported

TARGET = mfmadsl.target("gfx942")


def twice() -> Any:
    """A kernel of a few instructions."""
    x = te.placeholder((256,), "float32", name="x")
    y = te.compute((256,), lambda i: x[i] + x[i], name="y")
    schedule = tvm.s_tir.Schedule(te.create_prim_func([x, y]))
    block, thread = schedule.split(schedule.get_loops(schedule.get_sblock("y"))[0], [None, 64])
    schedule.bind(block, "blockIdx.x")
    schedule.bind(thread, "threadIdx.x")
    return schedule.mod["main"].with_attr("global_symbol", "twice")


def compiled(module: Any) -> Any:
    return tvm.compile(module, TARGET, tir_pipeline="mfmadsl")


@pytest.mark.thorough
def test_an_exported_model_holds_one_code_object_with_the_code_of_build(tmp_path: Path) -> None:
    module, _ = exported(Mlp(), "float16")
    pipeline = Pipeline()
    executable = tvm.compile(module, TARGET, relax_pipeline=pipeline, tir_pipeline="mfmadsl")
    path = tmp_path / "model.so"
    executable.export_library(str(path))
    (code_object,) = code_objects(path.read_bytes())
    assert code_object.version == 5
    names = [each.function for each in pipeline.report.functions]
    with TARGET:
        kernels = Pipeline()(module)
    # Several of a function: the length is a symbol.
    built = [each for name in names for each in mfmadsl.build(kernels[name], "gfx942").chain()]
    assert {each.symbol for each in built} == set(code_object.functions)
    assert {f"{name}_kernel" for name in names} < set(code_object.functions)
    for alone in built:
        symbol = alone.symbol
        assert alone.code_object is not None
        assert code_object.functions[symbol] == CodeObject(alone.code_object).functions[symbol]
        assert symbol.encode() in code_object.metadata


def test_the_device_module_is_of_the_kind_that_tvms_runtime_loads() -> None:
    (device,) = compiled(twice()).mod.imports
    assert device.kind == "hip"


def test_version_6_by_option() -> None:
    kernel = mfmadsl.build(twice(), "gfx942", code_object_version=6)
    assert kernel.code_object is not None
    assert (kernel.code_object_version, CodeObject(kernel.code_object).version) == (6, 6)
    module = tvm.IRModule({"twice": twice()}).with_attr("mfmadsl.code_object_version", 6)
    module = lowered(tvm.tirx.transform.BindTarget(TARGET)(module))
    kernels = tvm.IRModule({"twice_kernel": module["twice_kernel"]})
    code = relax_build.code_object_of(kernels, "gfx942")
    assert CodeObject(code).version == 6


def test_other_threads_get_their_own_answers_and_this_one_afterwards() -> None:
    name, found = "mfmadsl.asked", []
    tvm.register_global_func(name, lambda: "theirs")
    try:
        with relax_build.answered_here({name: lambda: "ours"}):
            found.append(tvm.get_global_func(name)())
            thread = threading.Thread(target=lambda: found.append(tvm.get_global_func(name)()))
            thread.start()
            thread.join()
        found.append(tvm.get_global_func(name)())
    finally:
        tvm_ffi.registry.remove_global_func(name)
    assert found == ["ours", "theirs", "theirs"]


def test_tvms_own_linker_is_in_its_place_after_a_build() -> None:
    names = ("tvm_callback_rocm_link", "tvm_callback_rocm_bitcode_path")
    before = [tvm.get_global_func(name).__chandle__() for name in names]
    compiled(twice())
    assert [tvm.get_global_func(name).__chandle__() for name in names] == before


def test_a_name_that_nobody_had_is_nobodys_afterwards() -> None:
    with relax_build.answered_here({"mfmadsl.nobodys": lambda: 1}):
        assert tvm.get_global_func("mfmadsl.nobodys")() == 1
    assert tvm.get_global_func("mfmadsl.nobodys", allow_missing=True) is None


def test_what_others_have_lowered_tvm_builds() -> None:
    module, seen = tvm.IRModule({"twice": twice()}), []
    relax_build.build_module(module, TARGET, lambda *given: seen.append(given))
    assert seen == [(module, TARGET)]


def test_what_we_have_scheduled_others_must_not_lower() -> None:
    module = tvm.IRModule({"twice": twice()}).with_attr(relax_build.SCHEDULED, True)
    with pytest.raises(mfmadsl.LoweringError, match='say tir_pipeline="mfmadsl", too'):
        relax_build.build_module(module, TARGET, lambda *_: None)


def test_without_a_linker_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relax_build, "link", lambda _: None)
    with pytest.raises(mfmadsl.LinkError, match="install lld, or `pip install ziglang`"):
        compiled(twice())

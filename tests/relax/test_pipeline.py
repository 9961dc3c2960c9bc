"""`relax_pipeline="mfmadsl"`: products are ours, the rest is dlight's, and all is right."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
from tvm import relax

import mfmadsl
from mfmadsl.relax import Pipeline
from mfmadsl.relax.pipeline import fused, scheduled
from tests.relax.emulated import kernels_of, machine
from tests.relax.models import DTYPES, WIDTH, Block, Mlp, expected, exported, weights

UNITS = {"float16": 2.0**-11, "bfloat16": 2.0**-8}
"""Of a rounding, of the largest value."""


@pytest.mark.parametrize(
    ("arch", "dtype", "lengths"),
    [("gfx942", "float16", (17, 1, 40)), ("gfx950", "bfloat16", (6,))],
)
def test_a_block_of_a_model_is_right_at_any_length(
    arch: str, dtype: str, lengths: tuple[int, ...]
) -> None:
    target = mfmadsl.target(arch)
    module, parameters = exported(Block(dtype), dtype)
    with target:
        module, report = scheduled(fused(module, target), target)
    products = {each.function for each in report.functions if "matmul" in each.function}
    assert {each.function for each in report.ours} == products
    assert len(products) == 7
    kernels = kernels_of(module, arch)
    run = machine(module, kernels)["forward"]
    given = weights(parameters, dtype)
    generator = np.random.default_rng(3)
    for length in lengths:
        x = generator.standard_normal((1, length, WIDTH)).astype(DTYPES[dtype])
        found = run(*(tvm.runtime.tensor(each) for each in (x, *given.values()))).numpy()
        wanted = expected(x, given)
        # Results are rounded some ten times on the way.
        assert np.abs(found - wanted).max() < 10 * UNITS[dtype] * np.abs(wanted).max(), length


def test_the_report_says_who_took_what_and_why_not_we() -> None:
    target = mfmadsl.target("gfx942")
    with target:
        _, report = scheduled(fused(exported(Block(), "float16")[0], target), target)
    by_name = {each.function: each for each in report.functions}
    ours = by_name["fused_NT_matmul1_divide_cast"]
    assert (ours.rule, ours.reason) == ("mfmadsl", "")
    assert ours.tiling is not None
    norm = by_name["rms_norm"]
    assert (norm.rule, norm.tiling) == ("Reduction", None)
    assert "which is no product of two elements" in norm.reason
    assert by_name["transpose"].rule == "Fallback"
    lines = str(report).splitlines()
    assert lines[0].split() == ["FUNCTION", "BY", "TILING,", "OR", "WHY", "NOT", "MFMADSL"]
    (line,) = (line for line in lines if line.startswith("fused_NT_matmul1_divide_cast "))
    m, n = ours.tiling.block
    assert f"{m}x{n}x{ours.tiling.k_step} of {ours.tiling.instruction}" in line


def test_the_pipeline_keeps_the_report_and_compiles_by_name_as_well() -> None:
    module, _ = exported(Mlp(), "float16")
    pipeline, target = Pipeline(), mfmadsl.target("gfx942")
    assert pipeline.report.functions == ()
    with target:
        lowered = pipeline(module)
        by_name = relax.get_pipeline("mfmadsl")(module)
    assert len(pipeline.report.ours) == 2
    names = [{v.name_hint for v in each.get_global_vars()} for each in (lowered, by_name)]
    assert names[0] == names[1]


def test_the_target_is_one_for_rocm() -> None:
    module, _ = exported(Mlp(), "float16")
    with pytest.raises(mfmadsl.ArgumentError, match=r"one of `mfmadsl\.target`, not llvm"):
        tvm.compile(module, "llvm", relax_pipeline="mfmadsl", tir_pipeline="mfmadsl")
    with pytest.raises(mfmadsl.ArgumentError, match="not None"):
        Pipeline()(module)
    with pytest.raises(mfmadsl.ArgumentError, match="code_object_version: there are 5 and 6"):
        Pipeline(code_object_version=4)


def test_sorts_and_sums_that_tvm_schedules_itself_are_lowered() -> None:
    """Their host code launches kernels in a loop, whose grids are shifts of its variable."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((2, 300), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            values = builder.emit(relax.op.topk(x, 4, ret_type="values"))
            sums = builder.emit(relax.op.cumsum(x, axis=-1))
            result = builder.emit_output(relax.Tuple([values, sums]))
        builder.emit_func_output(result)
    target = mfmadsl.target("gfx942")
    executable = tvm.compile(
        builder.get(), target, relax_pipeline="mfmadsl", tir_pipeline="mfmadsl"
    )
    assert [device.kind for device in executable.mod.imports[0].imports] == ["hip"]

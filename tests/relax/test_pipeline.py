"""`relax_pipeline="mfmadsl"`: products are ours, the rest is dlight's, and all is right."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
from tvm import relax
from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import op, spec

import mfmadsl
from mfmadsl.model import Tiling
from mfmadsl.relax import Pipeline
from mfmadsl.relax.pipeline import fused, scheduled
from tests.relax.emulated import kernels_of, machine
from tests.relax.models import DTYPES, WIDTH, Block, Mlp, expected, exported, weights

UNITS = {"float16": 2.0**-11, "bfloat16": 2.0**-8}
"""Of a rounding, of the largest value."""


@pytest.mark.parametrize(
    ("arch", "dtype", "lengths"),
    [
        pytest.param("gfx942", "float16", (17, 1), marks=pytest.mark.thorough),
        ("gfx950", "bfloat16", (3,)),
    ],
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
    assert isinstance(ours.tiling, Tiling)
    norm = by_name["rms_norm"]
    assert (norm.rule, norm.tiling) == ("rows", None)
    assert "which is no product of two elements" in norm.reason
    assert by_name["transpose"].rule == "Fallback"
    lines = str(report).splitlines()
    assert lines[0].split() == ["FUNCTION", "BY", "TILING,", "OR", "WHY", "NOT", "MFMADSL"]
    (first,) = (n for n, line in enumerate(lines) if line.startswith("fused_NT_matmul1_divide_ca"))
    assert "  s <= " in lines[first]
    m, n = ours.tiling.block
    last = lines[first + len(ours.cases) - 1]
    assert f"s > {ours.cases[-1][0].partition(' > ')[2]}: {m}x{n}x{ours.tiling.k_step}" in last


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


class Flat(nn.Module):  # type: ignore[misc]
    """Two products of rows of all batches together, as exports of PyTorch have them."""

    def __init__(self) -> None:
        self.up = nn.Linear(WIDTH, 96, bias=True, dtype="float16")
        self.down = nn.Linear(96, WIDTH, bias=False, dtype="float16")

    def forward(self, x: nn.Tensor) -> nn.Tensor:
        batch, length, width = x.shape
        y = self.down(op.relu(self.up(op.reshape(x, (batch * length, width)))))
        return op.reshape(y, (batch, length, width))


@pytest.mark.parametrize("batch", [2, 3, 4, 8])
def test_products_of_several_batches_of_any_length_are_ours(batch: int) -> None:
    target = mfmadsl.target("gfx942")
    shape = {"forward": {"x": spec.Tensor([batch, "s", WIDTH], "float16")}}
    module, _ = Flat().export_tvm(shape)
    with target:
        _, report = scheduled(fused(module, target), target)
    products = [each for each in report.functions if "matmul" in each.function]
    assert len(products) == 2
    assert all(each.rule == "mfmadsl" for each in products), report


def test_a_normalised_batch_stands_behind_its_convolution() -> None:
    """TVM's passes make it element-wise, and part of the product."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((1, 16, 8, 8), "float16"))
    w = relax.Var("w", relax.TensorType((16, 16, 3, 3), "float16"))
    of_channels = [relax.Var(name, relax.TensorType((16,), "float16")) for name in "gbmv"]
    with builder.function("main", [x, w, *of_channels]):
        with builder.dataflow():
            y = builder.emit(relax.op.nn.conv2d(x, w, padding=(1, 1)))
            y = relax.op.nn.batch_norm(y, *of_channels, axis=1, training=False)
            y = builder.emit(builder.emit(y)[0])
            result = builder.emit_output(relax.op.nn.relu(y))
        builder.emit_func_output(result)
    target = mfmadsl.target("gfx942")
    with target:
        module, report = scheduled(fused(builder.get(), target), target)
    assert [each.rule for each in report.functions] == ["mfmadsl"]
    generator = np.random.default_rng(4)
    shapes = (1, 16, 8, 8), (16, 16, 3, 3)
    given = [generator.uniform(-1, 1, shape).astype(np.float16) for shape in shapes]
    scale, bias, mean = (generator.uniform(-1, 1, 16).astype(np.float16) for _ in range(3))
    variance = generator.uniform(0.5, 2, 16).astype(np.float16)
    arguments = [*given, scale, bias, mean, variance]
    run = machine(module, kernels_of(module, "gfx942"))["main"]
    found = run(*map(tvm.runtime.tensor, arguments)).numpy()
    padded = np.pad(given[0].astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    y = np.einsum("ncxyij,ocij->noxy", windows, given[1].astype(np.float64))
    s, b, m, v = (each.astype(np.float64)[:, None, None] for each in arguments[2:])
    wanted = np.maximum((y - m) / np.sqrt(v + 1e-5) * s + b, 0)
    assert np.abs(found - wanted).max() < 8 * UNITS["float16"] * np.abs(wanted).max()


def test_what_is_for_another_target_is_left_alone() -> None:
    product = mfmadsl.matmul(64, 64, 64, "float16", "float32")
    own = {"host": product.with_attr("target", tvm.target.Target("llvm")), "ours": product}
    found, report = scheduled(tvm.IRModule(own), mfmadsl.target("gfx942"))
    assert [line.function for line in report.functions] == ["ours"]
    tvm.ir.assert_structural_equal(found["host"], own["host"])

"""Dequantised weights become part of the products that take them, in modules of Relax."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tvm
from tvm import relax, te, tirx
from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import op

import mfmadsl
from mfmadsl.gemm.quantised import random_weights, weights_of
from mfmadsl.relax.pipeline import fused, scheduled
from mfmadsl.relax.prologue import dequantises
from mfmadsl.schedule.workload.quantised import FORMATS
from tests.relax.emulated import kernels_of, machine

N, K = 48, 64
TARGET = mfmadsl.target("gfx942")


def tensor(name: str, shape: tuple[Any, ...], dtype: str) -> relax.Var:
    return relax.Var(name, relax.TensorType(shape, dtype))


def dequantised(words: Any, scale: Any) -> Any:
    """Nibbles of K in words, with a scale for 32 of them, as MLC-LLM has them."""

    def value(j: Any, k: Any) -> Any:
        down = ((k % 8) * 4).astype("uint32")
        nibble = (words[j, k // 8] >> down) & tirx.const(15, "uint32")
        return (nibble.astype("float16") - tirx.const(7, "float16")) * scale[j, k // 32]

    return te.compute((N, K), value, name="dequantised")


def module(also: bool = False) -> tvm.IRModule:
    """relu(x times the weights transposed, and a bias); `also` the weights are a result."""
    builder = relax.BlockBuilder()
    x = tensor("x", (1, tirx.Var("s", "int64"), K), "float16")
    words, scale = tensor("words", (N, K // 8), "uint32"), tensor("scale", (N, K // 32), "float16")
    bias = tensor("bias", (N,), "float16")
    with builder.function("main", [x, words, scale, bias]):
        with builder.dataflow():
            weight = builder.emit_te(dequantised, words, scale, primfunc_name_hint="dequantise")
            y = builder.emit(relax.op.matmul(x, relax.op.permute_dims(weight)))
            result: Any = builder.emit(relax.op.nn.relu(relax.op.add(y, bias)))
            if also:
                result = builder.emit(relax.Tuple([result, weight]))
            result = builder.emit_output(result)
        builder.emit_func_output(result)
    found: tvm.IRModule = builder.get()
    return found


def functions(given: tvm.IRModule) -> set[str]:
    return {str(v.name_hint) for v in given.get_global_vars()}


def test_one_kernel_reads_the_weights_as_they_are_stored_and_is_right() -> None:
    with TARGET:
        lowered, report = scheduled(fused(module(), TARGET), TARGET)
    (line,) = report.functions
    assert line.is_ours
    assert line.function.startswith("fused_dequantise")
    kernels = kernels_of(lowered, "gfx942")
    assert not kernels[line.function].workspaces
    assert "uint32" in [a.dtype for a in kernels[line.function].arguments]
    run = machine(lowered, kernels)["main"]
    generator = np.random.default_rng(2)
    words = generator.integers(0, 2**32, (N, K // 8), dtype=np.uint32)
    scale = generator.uniform(0.01, 0.1, (N, K // 32)).astype(np.float16)
    bias = generator.standard_normal(N).astype(np.float16)
    nibbles = words[:, :, None] >> np.arange(0, 32, 4, dtype=np.uint32) & 15
    weight = (nibbles.reshape(N, K).astype(np.float16) - np.float16(7)) * np.repeat(scale, 32, 1)
    for length in (3, 20):
        x = generator.standard_normal((1, length, K)).astype(np.float16)
        given = [tvm.runtime.tensor(each) for each in (x, words, scale, bias)]
        wanted = np.maximum(x.astype(np.float64) @ weight.T.astype(np.float64) + bias, 0)
        assert np.allclose(run(*given).numpy(), wanted, rtol=2**-9, atol=2**-9)


class GptqLayers(nn.Module):  # type: ignore[misc]
    """x and two layers of weights of few bits behind each other, K x N and back."""

    def __init__(self) -> None:
        self.layers = nn.ModuleList([_Gptq(K, N), _Gptq(N, K)])

    def forward(self, x: nn.Tensor) -> nn.Tensor:
        first, second = self.layers
        return x + second(op.relu(first(x)))


class _Gptq(nn.Module):  # type: ignore[misc]
    def __init__(self, k: int, n: int) -> None:
        self.n, self.k = n, k
        self.qweight = nn.Parameter((k // 8, n), "int32")
        self.qzeros = nn.Parameter((k // 16, n // 8), "int32")
        self.scales = nn.Parameter((k // 16, n), "float16")

    def forward(self, x: nn.Tensor) -> nn.Tensor:
        (rows, _), own = x.shape, [self.qweight, self.qzeros, self.scales]
        m = rows if isinstance(rows, int) else te.var("m")
        product = mfmadsl.quantised_matmul(m, self.n, self.k, "gptq", out_dtype="float16", group=16)
        result = nn.Tensor.placeholder((rows, self.n), "float16")
        return op.tensor_ir_op(product.without_attr("global_symbol"), "gptq", [x, *own], result)


@pytest.mark.parametrize("rows", [3, "length"])
def test_a_workload_is_a_layer_of_a_module(rows: Any) -> None:
    whole, _ = GptqLayers().export_tvm({"forward": {"x": nn.spec.Tensor([rows, K], "float16")}})
    with TARGET:
        joined = fused(whole, TARGET)
        assert functions(joined) == {"fused_gptq_relu", "fused_gptq1_add", "forward"}
        if rows == "length":
            return
        lowered, report = scheduled(joined, TARGET)
    assert len(report.ours) == 2
    generator = np.random.default_rng(5)
    stored = [
        random_weights(generator, FORMATS["gptq"], n, k, 16, "float16") for n, k in ((N, K), (K, N))
    ]
    x = generator.standard_normal((rows, K)).astype(np.float16)
    given = [tvm.runtime.tensor(each) for each in (x, *stored[0], *stored[1])]
    found = machine(lowered, kernels_of(lowered, "gfx942"))["forward"](*given).numpy()
    first, second = (
        weights_of(FORMATS["gptq"], arrays, 16, "float16").astype(float) for arrays in stored
    )
    hidden = np.maximum(x.astype(float) @ first.T, 0).astype(np.float16)
    wanted = x + hidden.astype(float) @ second.T
    assert np.allclose(found, wanted, rtol=2**-9, atol=2**-6)


def test_weights_that_are_wanted_elsewhere_are_computed_there_as_well() -> None:
    with TARGET:
        found = functions(fused(module(also=True), TARGET))
    assert any(name.startswith("fused_dequantise") for name in found)
    assert "dequantise" in found


def test_products_of_layers_that_are_alike_are_one_function() -> None:
    builder = relax.BlockBuilder()
    x = tensor("x", (8, K), "float16")
    layers = [
        (tensor(f"w{n}", (N, K // 8), "uint32"), tensor(f"s{n}", (N, K // 32), "float16"))
        for n in range(3)
    ]
    with builder.function("main", [x, *(each for layer in layers for each in layer)]):
        with builder.dataflow():
            sums = []
            for words, scale in layers:
                weight = builder.emit_te(dequantised, words, scale, primfunc_name_hint="dequantise")
                sums.append(builder.emit(relax.op.matmul(x, relax.op.permute_dims(weight))))
            result = builder.emit_output(relax.Tuple(sums))
        builder.emit_func_output(result)
    with TARGET:
        found = functions(fused(builder.get(), TARGET))
    assert sum("matmul" in name for name in found) == 1


def test_a_quantised_product_feeds_another_one() -> None:
    def quantised(name: str, n: int, k: int) -> tuple[relax.Var, relax.Var]:
        return tensor(f"w{name}", (n, k), "int8"), tensor(f"s{name}", (n,), "float16")

    def weights(words: te.Tensor, scale: te.Tensor) -> te.Tensor:
        return te.compute(
            words.shape, lambda j, k: words[j, k].astype("float16") * scale[j], "weights"
        )

    builder = relax.BlockBuilder()
    x, first, second = tensor("x", (4, K), "float16"), quantised("1", N, K), quantised("2", K, N)
    with builder.function("main", [x, *first, *second]):
        with builder.dataflow():
            y: Any = x
            for layer in (first, second):
                weight = builder.emit_te(weights, *layer, primfunc_name_hint="dequantise")
                y = builder.emit(relax.op.matmul(y, relax.op.permute_dims(weight)))
            result = builder.emit_output(y)
        builder.emit_func_output(result)
    with TARGET:
        lowered, report = scheduled(fused(builder.get(), TARGET), TARGET)
    assert [line.is_ours for line in report.functions] == [True, True]
    run = machine(lowered, kernels_of(lowered, "gfx942"))["main"]
    generator = np.random.default_rng(5)
    given = [generator.integers(-1, 2, (4, K)).astype("float16")]
    exact = given[0].astype("float64")
    for n, k in ((N, K), (K, N)):
        words, scale = generator.integers(-2, 3, (n, k)), 2.0 ** -(np.arange(n) % 4)
        given += [words.astype("int8"), scale.astype("float16")]
        exact = exact @ (words * scale[:, None]).T
    found = run(*map(tvm.runtime.tensor, given)).numpy()
    assert np.allclose(found, exact, rtol=2**-8, atol=2**-4)


def test_where_the_product_would_not_be_ours_they_stay_apart() -> None:
    target = tvm.target.Target({"kind": "rocm", "mcpu": "gfx1100"}, host="llvm")
    with target:
        found = functions(fused(module(), target))
    assert "dequantise" in found


@pytest.mark.parametrize(
    ("stored", "made", "yes"),
    [("int8", "float16", True), ("float16", "float16", False), ("float32", "float16", False)],
)
def test_dequantising_is_what_makes_more_bytes_of_fewer(stored: str, made: str, yes: bool) -> None:
    w = te.placeholder((N, K), stored, name="w")
    cast = te.compute((N, K), lambda j, k: w[j, k].astype(made), name="cast")
    assert dequantises(te.create_prim_func([w, cast])) is yes


def test_sums_tables_and_extents_that_are_not_known_are_no_dequantising() -> None:
    n = te.var("n", "int64")
    w = te.placeholder((n, K), "int8", name="w")
    cast = te.compute((n, K), lambda j, k: w[j, k].astype("float16"), name="cast")
    assert not dequantises(te.create_prim_func([w, cast]))
    table, which = (
        te.placeholder((4,), "float16", name="t"),
        te.placeholder((N, K), "int8", name="i"),
    )
    taken = te.compute((N, K), lambda j, k: table[which[j, k].astype("int32")], name="taken")
    assert not dequantises(te.create_prim_func([table, which, taken]))
    v = te.placeholder((N, K), "int8", name="v")
    r = te.reduce_axis((0, K), "r")
    total = te.compute((N, K), lambda j, k: te.sum(v[j, r].astype("int32"), axis=[r]), name="sum")
    assert not dequantises(te.create_prim_func([v, total]))

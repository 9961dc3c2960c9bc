"""`relax.nn.attention`: it is one kernel of ours, or both of its products are, and it is NumPy's in
float64."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
from tvm import relax, tirx

import mfmadsl
from mfmadsl.model import AttentionTiling
from mfmadsl.relax.attention import part_attention
from mfmadsl.relax.pipeline import fused, scheduled
from tests.relax.emulated import Array, kernels_of, machine

HEADS, DEPTH = 2, 32
TARGET = mfmadsl.target("gfx942")


def module(
    mask: str | None, with_bias: bool = False, window: int | None = None, dtype: str = "float16"
) -> tvm.IRModule:
    """Attention of two lengths that are not known."""
    s, t = (tirx.Var(name, "int64") for name in "st")
    q, k, v = (
        relax.Var(name, relax.TensorType((1, length, HEADS, DEPTH), dtype))
        for name, length in (("q", s), ("k", t), ("v", t))
    )
    bias = relax.Var("bias", relax.TensorType((1, HEADS, s, t), dtype))
    given = [q, k, v, *([bias] if with_bias else [])]
    builder = relax.BlockBuilder()
    with builder.function("main", given):
        with builder.dataflow():
            attention = relax.op.nn.attention(
                *given, causal_mask=mask, scale=0.25 if with_bias else None, window_size=window
            )
            result = builder.emit_output(attention)
        builder.emit_func_output(result)
    found: tvm.IRModule = builder.get()
    return found


def expected(q: Array, k: Array, v: Array, kept: Array, bias: Array | None) -> Array:
    queries, keys, values = (a.astype(np.float64).transpose(0, 2, 1, 3) for a in (q, k, v))
    scores = queries @ keys.transpose(0, 1, 3, 2) * (DEPTH**-0.5 if bias is None else 0.25)
    scores = np.where(kept, scores + (0 if bias is None else bias), -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    result: Array = (weights @ values).transpose(0, 2, 1, 3)
    return result


CASES = [("TopLeft", True), ("BottomRight", False), (None, True)]


@pytest.mark.parametrize(("mask", "with_bias"), CASES)
def test_it_is_one_kernel_of_ours(mask: str | None, with_bias: bool) -> None:
    with TARGET:
        lowered, report = scheduled(fused(module(mask, with_bias), TARGET), TARGET)
    (attention,) = report.functions
    assert isinstance(attention.tiling, AttentionTiling)
    assert str(report).splitlines()[1].split()[:5] == ["attention", "mfmadsl", "4", "waves", "of"]
    check(lowered, mask, with_bias, "float16", 4 * 2.0**-11)


@pytest.mark.parametrize(("mask", "with_bias"), CASES[:2])
def test_in_float32_it_is_two_products_of_ours_and_a_softmax(mask: str, with_bias: bool) -> None:
    with TARGET:
        given = module(mask, with_bias, dtype="float32")
        lowered, report = scheduled(fused(given, TARGET), TARGET)
    assert len(report.ours) == 2
    assert len(report.functions) == 3  # nothing is transposed
    check(lowered, mask, with_bias, "float32", 2.0**-18)


def check(
    lowered: tvm.IRModule, mask: str | None, with_bias: bool, dtype: str, tolerance: float
) -> None:
    """Run it for some lengths, and compare."""
    run = machine(lowered, kernels_of(lowered, "gfx942"))["main"]
    generator = np.random.default_rng(5)
    for queries, keys in ((5, 5), (7, 40), (9, 4)):
        lengths = (queries, keys, keys)
        arrays = [generator.standard_normal((1, n, HEADS, DEPTH)).astype(dtype) for n in lengths]
        bias = generator.standard_normal((1, HEADS, queries, keys)).astype(dtype)
        given = [*arrays, *([bias] if with_bias else [])]
        found = run(*(tvm.runtime.tensor(each) for each in given)).numpy()
        ahead = {"BottomRight": abs(keys - queries), "TopLeft": 0, None: keys}[mask]
        kept = np.arange(keys) <= np.arange(queries)[:, None] + ahead
        q, k, v = arrays
        wanted = expected(q, k, v, kept, bias if with_bias else None)
        assert np.abs(found - wanted).max() < tolerance * np.abs(wanted).max()


def test_a_window_is_left_to_tvm() -> None:
    given = module("BottomRight", window=8)
    tvm.ir.assert_structural_equal(part_attention(given, TARGET), given)

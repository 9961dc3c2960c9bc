"""`MatrixCore`, a rule of dlight: what it takes, and what it says of what it leaves."""

from __future__ import annotations

from typing import Any

import pytest
import tvm
from tvm import relax, te
from tvm.s_tir import dlight
from tvm.target import Target

import mfmadsl
from mfmadsl.relax import MatrixCore
from tests.relax.models import Mlp, exported

PRODUCT = mfmadsl.matmul(64, 48, 32, "float16", "float32", b_transposed=True)


def dots() -> Any:
    """Sums of products of which none shares a factor with another."""
    a, b = (te.placeholder((40, 64), "float16", name=name) for name in "ab")
    k = te.reduce_axis((0, 64), "k")
    products = te.compute(
        (40,),
        lambda i: te.sum(a[i, k].astype("float32") * b[i, k].astype("float32"), axis=[k]),
        name="dots",
    )
    return te.create_prim_func([a, b, products])


@pytest.mark.parametrize("arch", ["gfx90a", "gfx950"])
def test_a_product_is_scheduled_with_the_default_tiling(arch: str) -> None:
    rule = MatrixCore()
    schedule = rule.apply(PRODUCT, mfmadsl.target(arch), False)
    assert schedule is not None
    tvm.ir.assert_structural_equal(schedule.mod, mfmadsl.gemm_schedule(PRODUCT, arch=arch).mod)
    (line,) = rule.report.functions
    assert (line.function, line.tiling) == ("main", mfmadsl.gemm_tiling(PRODUCT, arch=arch))


@pytest.mark.parametrize(
    ("function", "target", "why"),
    [
        (dots(), mfmadsl.target("gfx942"), "block `dots` computes dot products"),
        (PRODUCT, Target("llvm"), "it is for llvm, and not for rocm"),
        (PRODUCT, Target({"kind": "rocm", "mcpu": "gfx1100"}), "'gfx1100' is an RDNA chip"),
        (
            mfmadsl.matmul(64, 64, 64, "int16", "int32"),
            mfmadsl.target("gfx942"),
            "gfx942 has no matrix instruction for int16",
        ),
    ],
)
def test_what_it_leaves_it_has_a_reason_for(function: Any, target: Target, why: str) -> None:
    rule = MatrixCore()
    assert rule.apply(function, target, False) is None
    (line,) = rule.report.functions
    assert (line.rule, line.tiling) == ("", None)
    assert why in line.reason


def test_in_a_pipeline_of_ones_own_it_stands_before_dlights_rules() -> None:
    module, _ = exported(Mlp(), "float16")
    rule, transform = MatrixCore(), relax.transform
    passes = [
        transform.FuseTransposeMatmul(), transform.LegalizeOps(),
        transform.AnnotateTIROpPattern(), transform.FuseOps(), transform.FuseTIR(),
        dlight.ApplyDefaultSchedule(rule, dlight.gpu.Fallback()),
    ]  # fmt: skip
    with mfmadsl.target("gfx942"):
        tvm.transform.Sequential(passes)(module)
    assert all(each.function.startswith("NT_matmul") for each in rule.report.ours)
    assert len(rule.report.ours) == 2

"""A normalisation of one token is in the kernel of the product behind it, in modules of Relax."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tvm
from tvm.relax.frontend import nn

import mfmadsl
from mfmadsl.relax.pipeline import fused, scheduled
from mfmadsl.relax.report import with_reasons
from tests.relax.emulated import kernels_of, machine

N, K = 96, 256
TARGET = mfmadsl.target("gfx942")


class Model(nn.Module):  # type: ignore[misc]
    """A linear layer, or two, behind a normalisation."""

    def __init__(self, kind: str, columns: int = N, also: str = "") -> None:
        self.norm = nn.RMSNorm(K, -1, bias=False) if kind == "rms" else nn.LayerNorm(K)
        self.layer = nn.Linear(K, columns, bias=False)
        self.other = nn.Linear(K, columns, bias=False)
        self.also = also

    def forward(self, x: nn.Tensor) -> Any:
        normal = self.norm(x)
        if self.also == "product":
            return self.layer(normal) + self.other(normal)
        return (self.layer(normal), normal) if self.also == "result" else self.layer(normal)


def lowered(model: Model, rows: Any) -> tuple[tvm.IRModule, Any]:
    model.to("float16")
    module, _ = model.export_tvm({"forward": {"x": nn.spec.Tensor([1, rows, K], "float16")}})
    apart: dict[str, str] = {}
    with TARGET:
        module, report = scheduled(fused(module, TARGET, apart), TARGET)
    return module, with_reasons(report, apart)


@pytest.mark.parametrize("rows", [1, 4])
def test_the_result_is_right(rows: int) -> None:
    module, report = lowered(Model("rms"), rows)
    (function,) = report.functions
    assert function.is_ours
    run = machine(module, kernels_of(module, "gfx942"))["forward"]
    generator = np.random.default_rng(7)
    x = generator.standard_normal((1, rows, K)).astype("float16")
    norm = (1 + 0.2 * generator.standard_normal(K)).astype("float16")
    weight = generator.standard_normal((N, K)).astype("float16")
    found = run(*map(tvm.runtime.tensor, (x, norm, weight, weight))).numpy()
    wide = x.astype("float64")
    normal = wide / np.sqrt((wide * wide).mean(-1, keepdims=True) + 1e-5) * norm
    exact, size = normal @ weight.T.astype("float64"), np.abs(normal) @ np.abs(weight).T
    assert (np.abs(found - exact) <= 2.0**-9 * size).all()


@pytest.mark.parametrize(
    ("model", "rows", "reason"),
    [
        (Model("rms"), 5, "apart from NT_matmul: it has 5 rows: up to 4 are"),
        (Model("rms"), "length", "apart from NT_matmul: its number of rows is a symbol: up to 4 "),
        (Model("rms", also="product"), 1, "its result is read elsewhere, too"),
        (Model("rms", also="result"), 1, "its result is read elsewhere, too"),
        (Model("rms", columns=304 * 256 + 16), 1, "the product has 77840 columns, whose workgro"),
    ],
)
def test_others_stay_a_kernel_of_their_own_and_the_report_says_why(
    model: Model, rows: Any, reason: str
) -> None:
    _, report = lowered(model, rows)
    (norm,) = (each for each in report.functions if each.rule == "rows")
    assert reason in norm.apart
    assert norm.apart in str(report)
    assert all("norm_" not in each.function for each in report.functions if each.is_ours)


def test_a_layer_normalisation_is_compiled_either_way() -> None:
    _, report = lowered(Model("layer"), 1)
    assert any(each.is_ours for each in report.functions)

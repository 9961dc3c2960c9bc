"""What is made of pairs of a product's columns is in its kernel, in modules of Relax."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tvm
from tvm import te, tirx
from tvm.relax.frontend import nn

import mfmadsl
from mfmadsl.relax.pipeline import fused, scheduled
from tests.relax.emulated import kernels_of, machine

N, K = 96, 64
TARGET = mfmadsl.target("gfx942")


def gate(y: te.Tensor) -> te.Tensor:
    *rows, columns = y.shape

    def element(*place: Any) -> Any:
        *at, pair = place
        return te.max(y[(*at, pair * 2)], tirx.const(0, y.dtype)) * y[(*at, pair * 2 + 1)]

    return te.compute([*rows, columns // 2], element, name="gated")


def gate_of_halves(y: te.Tensor) -> te.Tensor:
    *rows, columns = y.shape
    half = columns // 2

    def element(*place: Any) -> Any:
        *at, column = place
        return te.max(y[(*at, column)], tirx.const(0, y.dtype)) * y[(*at, column + half)]

    return te.compute([*rows, half], element, name="gated")


class Gated(nn.Module):  # type: ignore[misc]
    """A linear layer, and relu(gate) * up of its columns."""

    def __init__(self, made: Any = gate, also: bool = False) -> None:
        self.layer = nn.Linear(K, N, bias=False)
        self.made, self.also = made, also

    def forward(self, x: nn.Tensor) -> Any:
        y = self.layer(x)
        made = nn.tensor_expr_op(self.made, "gate", [y])
        return (made, y) if self.also else made


def lowered(model: Gated) -> tuple[tvm.IRModule, Any]:
    spec = {"forward": {"x": nn.spec.Tensor([1, "length", K], "float16")}}
    model.to("float16")
    module, _ = model.export_tvm(spec)
    with TARGET:
        return scheduled(fused(module, TARGET), TARGET)


@pytest.mark.parametrize("made", [gate, gate_of_halves])
def test_the_result_is_right_at_each_length(made: Any) -> None:
    module, report = lowered(Gated(made))
    assert len(report.functions) == (1 if made is gate else 2)  # halves are no neighbours
    assert report.functions[0].is_ours
    run = machine(module, kernels_of(module, "gfx942"))["forward"]
    generator = np.random.default_rng(7)
    weight = generator.integers(-1, 2, (N, K)).astype("float16")
    for length in (1, 20, 75):
        x = (np.arange(length)[:, None] % 3 * generator.integers(-1, 2, (length, K))).astype("f2")
        y = x.astype("float64") @ weight.T.astype("float64")
        gates, up = (y[:, ::2], y[:, 1::2]) if made is gate else np.split(y, 2, axis=1)
        found = run(tvm.runtime.tensor(x[None]), tvm.runtime.tensor(weight)).numpy()
        np.testing.assert_array_equal(found[0], (np.maximum(gates, 0) * up).astype("float16"))


def test_a_product_that_is_wanted_itself_stays_a_kernel_of_its_own() -> None:
    _, report = lowered(Gated(also=True))
    assert len(report.functions) == 2


def test_what_is_twice_made_of_a_product_stays_apart() -> None:
    class Twice(Gated):
        def forward(self, x: nn.Tensor) -> Any:
            y = self.layer(x)
            return [nn.tensor_expr_op(made, "gate", [y]) for made in (gate, gate_of_halves)]

    _, report = lowered(Twice())
    assert len(report.functions) == 3


def test_layers_that_are_alike_are_one_function() -> None:
    class Layers(Gated):
        def __init__(self) -> None:
            super().__init__()
            self.other = nn.Linear(K, N, bias=False)

        def forward(self, x: nn.Tensor) -> Any:
            return [nn.tensor_expr_op(gate, "gate", [y(x)]) for y in (self.layer, self.other)]

    _, report = lowered(Layers())
    assert len(report.functions) == 1

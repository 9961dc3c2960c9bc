"""Small models of Relax, and what they compute in NumPy's float64."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import tvm
from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import op, spec

Array = npt.NDArray[Any]

WIDTH, HEADS, HIDDEN = 64, 2, 96
DTYPES = {"float16": np.dtype(np.float16), "bfloat16": np.dtype(ml_dtypes.bfloat16)}


class Mlp(nn.Module):  # type: ignore[misc]
    """Two products with a gelu between them."""

    def __init__(self, dtype: str = "float16") -> None:
        self.up = nn.Linear(WIDTH, HIDDEN, bias=True, dtype=dtype)
        self.down = nn.Linear(HIDDEN, WIDTH, bias=True, dtype=dtype)

    def forward(self, x: nn.Tensor) -> nn.Tensor:
        return self.down(op.gelu(self.up(x)))


class Block(nn.Module):  # type: ignore[misc]
    """RMSNorm, attention, RMSNorm, gated MLP: as in a Llama, of a length known at run time."""

    def __init__(self, dtype: str = "float16") -> None:
        self.dtype_ = dtype
        norm = {"axes": -1, "epsilon": 1e-5, "bias": False, "dtype": dtype}
        linear = {"bias": False, "dtype": dtype}
        self.norm1, self.norm2 = nn.RMSNorm(WIDTH, **norm), nn.RMSNorm(WIDTH, **norm)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, **linear)
        self.out = nn.Linear(WIDTH, WIDTH, **linear)
        self.gate = nn.Linear(WIDTH, HIDDEN, **linear)
        self.up = nn.Linear(WIDTH, HIDDEN, **linear)
        self.down = nn.Linear(HIDDEN, WIDTH, **linear)

    def attention(self, x: nn.Tensor) -> nn.Tensor:
        batch, length, _ = x.shape
        shape = (batch, length, HEADS, WIDTH // HEADS)
        q, k, v = (
            op.permute_dims(op.reshape(each, shape), [0, 2, 1, 3])
            for each in op.split(self.qkv(x), 3, axis=-1)
        )
        scores = op.matmul(q, op.permute_dims(k, [0, 1, 3, 2])) / float(np.sqrt(WIDTH // HEADS))
        weights = op.softmax(scores.astype("float32"), axis=-1).astype(self.dtype_)
        y = op.permute_dims(op.matmul(weights, v), [0, 2, 1, 3])
        return self.out(op.reshape(y, (batch, length, WIDTH)))

    def forward(self, x: nn.Tensor) -> nn.Tensor:
        x = x + self.attention(self.norm1(x))
        y = self.norm2(x)
        return x + self.down(op.silu(self.gate(y)) * self.up(y))


def exported(model: nn.Module, dtype: str) -> tuple[tvm.IRModule, dict[str, Any]]:
    """The module of Relax, of which `s` is not known, and its parameters by their names."""
    module, parameters = model.export_tvm({"forward": {"x": spec.Tensor([1, "s", WIDTH], dtype)}})
    return module, dict(parameters)


def weights(parameters: dict[str, Any], dtype: str) -> dict[str, Array]:
    """Random parameters, of such a size that sums are about as large as what goes in."""
    generator = np.random.default_rng(7)
    found = {}
    for name, parameter in parameters.items():
        shape = [int(extent) for extent in parameter.shape]
        values = generator.standard_normal(shape) * 0.1
        found[name] = (values + 1 if "norm" in name else values).astype(DTYPES[dtype])
    return found


def expected(x: Array, given: dict[str, Array]) -> npt.NDArray[np.float64]:
    """What a `Block` computes."""
    p = {name: array.astype(np.float64) for name, array in given.items()}
    x = x.astype(np.float64)
    (_, length, _), shape = x.shape, (1, x.shape[1], HEADS, WIDTH // HEADS)
    qkv = _norm(x, p["norm1.weight"]) @ p["qkv.weight"].T
    q, k, v = (each.reshape(shape).transpose(0, 2, 1, 3) for each in np.split(qkv, 3, -1))
    scores = q @ k.transpose(0, 1, 3, 2) / np.sqrt(WIDTH // HEADS)
    of_each = np.exp(scores - scores.max(-1, keepdims=True))
    of_each /= of_each.sum(-1, keepdims=True)
    attention = (of_each @ v).transpose(0, 2, 1, 3).reshape(1, length, WIDTH)
    x = x + attention @ p["out.weight"].T
    y = _norm(x, p["norm2.weight"])
    gate = y @ p["gate.weight"].T
    result: npt.NDArray[np.float64] = (
        x + (gate / (1 + np.exp(-gate)) * (y @ p["up.weight"].T)) @ p["down.weight"].T
    )
    return result


def _norm(x: npt.NDArray[np.float64], weight: npt.NDArray[np.float64]) -> Any:
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * weight

"""What the block computes, in NumPy's float64, and random numbers to compute with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from examples.llama_block.model import Sizes

Array = npt.NDArray[Any]
Wide = npt.NDArray[np.float64]

DTYPES = {"float16": np.dtype(np.float16), "bfloat16": np.dtype(ml_dtypes.bfloat16)}


def weights(shapes: Mapping[str, tuple[int, ...]], dtype: str) -> dict[str, Array]:
    """Random parameters, of such a size that sums are about as large as what goes in."""
    generator = np.random.default_rng(7)
    found = {}
    for name, shape in shapes.items():
        values = generator.standard_normal(shape) / np.sqrt(shape[-1])
        found[name] = 1 + 0.1 * generator.standard_normal(shape) if "norm" in name else values
    return {name: values.astype(DTYPES[dtype]) for name, values in found.items()}


def tokens(sizes: Sizes, count: int, dtype: str, seed: int) -> Array:
    """So many random tokens, of shape [1, count, width]."""
    shape = (1, count, sizes.width)
    return np.random.default_rng(seed).standard_normal(shape).astype(DTYPES[dtype])


def expected(
    sizes: Sizes, x: Array, parameters: Mapping[str, Array], cache: tuple[Array, Array] | None
) -> tuple[Wide, Wide, Wide]:
    """y[1, new, width], and keys and values [1, known + new, heads, head], as `model.py` has it."""
    p = {name: array.astype(np.float64) for name, array in parameters.items()}
    wide = x.astype(np.float64)
    new = x.shape[1]
    qkv = _norm(wide, p["norm1.weight"]) @ p["qkv.weight"].T
    q, k, v = (each.reshape(1, new, sizes.heads, sizes.head) for each in np.split(qkv, 3, -1))
    if cache is not None:
        k, v = (
            np.concatenate([before.astype(np.float64), own], 1)
            for before, own in zip(cache, (k, v), strict=True)
        )
    scores = np.einsum("bihd,bjhd->bhij", q, k) * sizes.head**-0.5
    seen = np.tri(new, k.shape[1], k.shape[1] - new, dtype=bool)
    of_each = np.exp(np.where(seen, scores, -np.inf) - scores.max(-1, keepdims=True))
    of_each /= of_each.sum(-1, keepdims=True)
    attended = np.einsum("bhij,bjhd->bihd", of_each, v).reshape(1, new, sizes.width)
    wide = wide + attended @ p["out.weight"].T
    y = _norm(wide, p["norm2.weight"])
    gate = y @ p["gate.weight"].T
    hidden = gate / (1 + np.exp(-gate)) * (y @ p["up.weight"].T)
    return wide + hidden @ p["down.weight"].T, k, v


def _norm(x: Wide, weight: Wide) -> Any:
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * weight

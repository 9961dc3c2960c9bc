"""What a step computes, in NumPy without rounding to 16 bits, and numbers to compute with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from examples.llama_block.decode.model import GROUP, PER_WORD, ZERO, Sizes

Array = npt.NDArray[Any]
_ROWS = 4096  # of weights that are dequantised at once


def arguments(sizes: Sizes, known: int) -> dict[str, Array]:
    """Random ones of `step`, by name: sums are about as large as what goes in."""
    generator = np.random.default_rng(11)
    angle = np.arange(known)[:, None] * 500000.0 ** (-np.arange(sizes.head // 2) * 2 / sizes.head)
    cache = (known, sizes.key_heads, sizes.head)
    found: dict[str, Array] = {
        "x": generator.standard_normal((1, sizes.width)).astype(np.float16),
        "table": np.stack([np.cos(angle), np.sin(angle)], axis=1).astype(np.float32),
        "keys": generator.standard_normal(cache).astype(np.float16),
        "values": generator.standard_normal(cache).astype(np.float16),
    }
    for name, (shape, dtype) in sizes.parameters.items():
        if dtype == "uint32":
            found[name] = generator.integers(0, 2**32, shape, dtype=np.uint32)
        elif "norm" in name:
            found[name] = (1 + 0.1 * generator.standard_normal(shape)).astype(np.float16)
        else:
            spread = 0.2 / np.sqrt(shape[1] * GROUP)
            found[name] = (spread * generator.uniform(0.5, 1.5, shape)).astype(np.float16)
    return found


def expected(sizes: Sizes, given: Mapping[str, Array]) -> tuple[Array, Array, Array]:
    """y[width], and the key and the value [key heads, head] that a step adds to the cache."""
    x = given["x"][0].astype(np.float64)
    heads, key_heads, head = sizes.heads, sizes.key_heads, sizes.head
    qkv = _product(given, "qkv", _norm(x, given["norm1"])).reshape(-1, head)
    q, key, value = np.split(qkv, [heads, heads + key_heads])
    q, key = (_turned(each, *given["table"][-1].astype(np.float64)) for each in (q, key))
    keys, values = (given[name].astype(np.float64) for name in ("keys", "values"))
    keys[-1], values[-1] = key, value
    grouped = q.reshape(key_heads, heads // key_heads, head)
    scores = np.einsum("bid,tbd->bit", grouped, keys) * head**-0.5
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    attended = np.einsum("bit,tbd->bid", weights, values).reshape(-1)
    x = x + _product(given, "out", attended)
    gate, up = _product(given, "gate_up", _norm(x, given["norm2"])).reshape(-1, 2).T
    return x + _product(given, "down", gate / (1 + np.exp(-gate)) * up), key, value


def _norm(x: Array, weight: Array) -> Array:
    found: Array = x / np.sqrt((x * x).mean() + 1e-5) * weight
    return found


def _turned(heads: Array, cosine: Array, sine: Array) -> Array:
    """Pairs as complex numbers, times those of the angles."""
    turned = (heads[:, ::2] + 1j * heads[:, 1::2]) * (cosine + 1j * sine)
    return np.stack([turned.real, turned.imag], axis=-1).reshape(heads.shape)


def _product(given: Mapping[str, Array], name: str, x: Array) -> Array:
    words, scales = given[f"{name}.words"], given[f"{name}.scales"]
    parts = []
    for start in range(0, len(words), _ROWS):
        rows = slice(start, start + _ROWS)
        nibbles = words[rows, :, None] >> np.arange(0, 32, 32 // PER_WORD, dtype=np.uint32) & 15
        exact = nibbles.reshape(len(nibbles), -1, GROUP).astype(np.float32) - ZERO
        exact *= scales[rows, :, None]
        parts.append(exact.reshape(len(exact), -1) @ x.astype(np.float32))
    return np.concatenate(parts).astype(np.float64)

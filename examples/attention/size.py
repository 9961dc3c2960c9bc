"""An attention's size, its arguments, and what NumPy makes of them."""

from __future__ import annotations

import re
from argparse import ArgumentTypeError
from dataclasses import dataclass

import numpy as np

from examples.product import Array

_SIZE = re.compile(r"(\d{1,6})x(\d{1,6})x(\d{1,6})x(\d{1,6})")


@dataclass(frozen=True)
class Size:
    """O = softmax(Q x K^T / sqrt(depth)) x V in each of so many heads."""

    heads: int
    queries: int
    keys: int
    depth: int

    @property
    def elements(self) -> int:
        """Of all scores, times the depth; 0 if there is nothing to do."""
        return self.heads * self.queries * self.keys * self.depth

    def operations(self, causal: bool) -> int:
        """Of both products, two for each multiply-add. A masked score is no work."""
        seen = self.keys * self.queries
        if causal:
            ends = np.arange(self.queries) + 1 + self.keys - self.queries
            seen = int(np.clip(ends, 0, self.keys).sum())
        return 4 * self.heads * seen * self.depth

    def zeros(self) -> list[Array]:
        """Q, K, V and O for a profile, whose times depend on places and not on values."""
        return [
            np.zeros((1, self.heads, length, self.depth), "float16")
            for length in (self.queries, self.keys, self.keys, self.queries)
        ]

    def arrays(self) -> list[Array]:
        """Q, K and V of normally distributed numbers, and an O of NaN."""
        generator = np.random.default_rng(2048)
        q, k, v, o = self.zeros()
        q, k, v = (generator.standard_normal(each.shape).astype("float16") for each in (q, k, v))
        return [q, k, v, np.full_like(o, np.nan)]

    def __str__(self) -> str:
        return f"{self.heads}x{self.queries}x{self.keys}x{self.depth}"


def parsed_size(text: str, example: Size) -> Size:
    """HEADS x QUERIES x KEYS x DEPTH of an option. Raises ArgumentTypeError for any other text."""
    found = _SIZE.fullmatch(text)
    size = Size(*map(int, found.groups())) if found else None
    if size is None or not size.elements:
        raise ArgumentTypeError(f"`{text}` is no size such as {example}")
    return size


def attended(q: Array, k: Array, v: Array, causal: bool) -> Array:
    """O in float64. The last query stands at the last key; one that sees no key has zeros."""
    q, k, v = (each.astype(np.float64) for each in (q, k, v))
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    if causal:
        queries, keys = scores.shape[-2:]
        seen = np.arange(keys) <= np.arange(queries)[:, None] + keys - queries
        scores = np.where(seen, scores, -np.inf)
    largest = scores.max(axis=-1, keepdims=True)
    weights = np.exp(scores - np.where(np.isfinite(largest), largest, 0))
    total = weights.sum(axis=-1, keepdims=True)
    return np.asarray(weights @ v / np.where(total > 0, total, 1))

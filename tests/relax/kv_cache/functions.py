"""Attentions of TVM's paged KV cache: the functions, calls of them, and results in float64."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
from tvm.relax.frontend.nn.llm import kv_cache
from tvm.target import Target
from tvm.tirx import PrimFunc

from mfmadsl.relax.kv_cache.form import CacheKind

Array = npt.NDArray[Any]

HEADS, SHARED, DEPTH, COLUMNS, PAGE = 8, 2, 64, 64, 16
LATENT = 192, 128  # depth and columns of it
LEAST = -5e4 * np.log(2)
COUNTS = (37, 0, 64, 1, 100)
"""Keys of each batch."""

QUERIES = (3, 0, 40, 1, 33)
"""Queries of each, but for those of a batch to decode."""


@dataclass(frozen=True)
class Form:
    """One of the functions."""

    kind: CacheKind
    slides: bool = False
    window: int | None = None
    dtype: str = "float16"

    @property
    def name(self) -> str:
        return f"{self.kind.name.lower()}{'_slides' * self.slides}_{self.dtype}"

    def function(self, target: Target, rope: dict[str, Any] | None = None) -> PrimFunc:
        """TVM's, with some rotary embedding in it."""
        sizes: tuple[Any, ...] = SHARED, HEADS, DEPTH
        rope = rope or {}
        made: PrimFunc
        if self.kind is CacheKind.DECODE:
            made = kv_cache._attention_decode(*sizes, self.dtype, self.slides, rope, target)
        elif self.kind is CacheKind.PREFILL:
            window = {} if self.window is None else {"sliding_window_size": self.window}
            own = self.dtype, self.slides, rope, target
            made = kv_cache._attention_prefill(*sizes, *own, **window)
        elif self.kind is CacheKind.RAGGED:
            made = kv_cache._attention_prefill_ragged(*sizes, COLUMNS, self.dtype, rope, target)
        else:
            depth, columns = LATENT
            latent = HEADS, columns, depth - columns, self.dtype, self.slides
            made = kv_cache._attention_prefill_mla(*latent, target)
        return made.with_attr("global_symbol", self.name)


@dataclass(frozen=True)
class Call:
    """A call of one, in which arrays begin `offset` elements behind their pointers, and pages 8."""

    form: Form
    causal: bool = True
    rotary: int = 0
    offset: int = 3
    seed: int = 0

    @cached_property
    def _random(self) -> np.random.Generator:
        return np.random.default_rng(self.seed)

    @property
    def queries(self) -> Array:
        is_decode = self.form.kind is CacheKind.DECODE
        return np.ones(len(COUNTS), int) if is_decode else np.array(QUERIES)

    @cached_property
    def arrays(self) -> dict[str, Array]:
        """What the function takes, in its order."""
        depth, columns = LATENT if self.form.kind is CacheKind.LATENT else (DEPTH, COLUMNS)
        rows, batches = int(self.queries.sum()), len(COUNTS)
        found = {
            "q": self._numbers(rows, HEADS, depth),
            "q_starts": _starts(self.queries),
            "k_rope": np.arange(batches, dtype="int32"),
            "q_rope": np.arange(rows, dtype="int32"),
            "o": np.full((rows, HEADS, columns), 7, self.dtype),
            "l": np.full((rows, HEADS), 7, "float32"),
        }
        found |= self._ragged() if self.form.kind is CacheKind.RAGGED else self._paged(depth)
        return {name: found[name] for name in self.form.kind.value if name in found}

    @property
    def dtype(self) -> Any:
        return ml_dtypes.bfloat16 if self.form.dtype == "bfloat16" else np.dtype(self.form.dtype)

    @property
    def numbers(self) -> list[float]:
        known = {
            "causal": int(self.causal), "rotary_mode": self.rotary, "rope_scale": 1.0,
            "rope_theta": 1e4, "sm_scale": 0.2,
        }  # fmt: skip
        return [known[name] for name in self.form.kind.value if name in known]

    @property
    def offsets(self) -> list[int]:
        """Of each array."""
        plain = {"q", "k", "v", "o", "l"}
        return [
            0 if name in plain else 8 * (self.offset > 0) if name == "pages" else self.offset + n
            for n, name in enumerate(self.arrays)
        ]

    @property
    def kept(self) -> tuple[Array, Array]:
        """(how many of the first keys are there, how many are gone behind them), of each batch."""
        if not self.form.slides:
            return np.zeros(len(COUNTS), int), np.zeros(len(COUNTS), int)
        return np.array([4, 0, 0, 0, 5]), np.array([19, 0, 0, 0, 34])

    def expected(self) -> tuple[Array, Array]:
        """O and L, in float64."""
        o, logarithm = [], []
        rows = _starts(self.queries)
        for batch, (first, last) in enumerate(pairwise(rows)):
            q = self.arrays["q"][first:last].astype(np.float64)
            k, v = self._keys(batch)
            own = _attended(q, k, v, 0.2, self._seen(batch))
            o.append(own[0])
            logarithm.append(own[1])
        return np.concatenate(o), np.concatenate(logarithm)

    def _seen(self, batch: int) -> Array:
        queries, keys = int(self.queries[batch]), COUNTS[batch]
        i, j = np.arange(queries)[:, None], np.arange(keys)
        if self.form.kind is CacheKind.DECODE or not self.causal:
            return np.ones((queries, keys), bool)
        if self.form.window is not None:
            seen: Array = j > keys - self.form.window + i
            return seen
        return j <= i + keys - queries

    def _keys(self, batch: int) -> tuple[Array, Array]:
        """K and V of a batch, [key, kv_head, ...]."""
        arrays, count = self.arrays, COUNTS[batch]
        if self.form.kind is CacheKind.RAGGED:
            first, last = arrays["k_starts"][batch : batch + 2]
            return arrays["k"][first:last], arrays["v"][first:last]
        kept, gone = (each[batch] for each in self.kept)
        place = np.arange(count)
        place = np.where(place < kept, place, place + gone)
        page = arrays["page_numbers"][arrays["page_starts"][batch] + place // PAGE]
        pages, own = arrays["pages"], place % PAGE
        if self.form.kind is CacheKind.LATENT:
            return pages[page, own][:, None], pages[page, own][:, None, : LATENT[1]]
        return pages[page, 0, :, own], pages[page, 1, :, own]

    def _ragged(self) -> dict[str, Array]:
        count = sum(COUNTS)
        k, v = self._numbers(count, SHARED, DEPTH), self._numbers(count, SHARED, COLUMNS)
        return {"k": k, "v": v, "k_starts": _starts(np.array(COUNTS))}

    def _paged(self, depth: int) -> dict[str, Array]:
        kept, gone = self.kept
        counts = np.array(COUNTS) + gone
        pages = -(-counts // PAGE)
        pool = int(pages.sum()) + 3
        last = np.where(pages > 0, counts - (pages - 1) * PAGE, 0)
        lengths = np.stack([last, kept + gone, kept]) if self.form.slides else last
        own = (PAGE, depth) if self.form.kind is CacheKind.LATENT else (2, SHARED, PAGE, depth)
        return {
            "pages": self._numbers(pool, *own),
            "page_starts": _starts(pages),
            "page_numbers": self._random.permutation(pool)[: pages.sum()].astype("int32"),
            "lengths": lengths.astype("int32"),
        }

    def _numbers(self, *shape: int) -> Array:
        numbers: Array = self._random.standard_normal(shape).astype(self.dtype)
        return numbers


def _starts(counts: Array) -> Array:
    return np.concatenate([[0], np.cumsum(counts)]).astype("int32")


def _attended(q: Array, k: Array, v: Array, scale: float, seen: Array) -> tuple[Array, Array]:
    """O [query, head, column], and logarithms of the base 2; one more key has the least score."""
    k, v = (np.repeat(each.astype(np.float64), q.shape[1] // each.shape[1], 1) for each in (k, v))
    scores = np.einsum("nhd,mhd->nhm", q, k) * scale
    scores = np.where(seen[:, None], scores, -np.inf)
    largest = np.maximum(scores.max(-1, initial=-np.inf), LEAST)
    weights = np.exp(scores - largest[..., None])
    total = weights.sum(-1) + np.exp(LEAST - largest)
    o = np.einsum("nhm,mhc->nhc", weights, v) / total[..., None]
    return o, (largest + np.log(total)) / np.log(2)

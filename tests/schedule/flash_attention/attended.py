"""Attentions, what NumPy makes of them in float64, and kernels of them under the sanitizer."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import ml_dtypes  # noqa: F401 - NumPy knows bfloat16 by it
import numpy as np
import numpy.typing as npt
from tvm import tirx
from tvm.tirx import PrimFunc

import mfmadsl
from mfmadsl.model import EIGHT_BIT_FLOATS

Array = npt.NDArray[Any]


_ROUNDING = {
    "float16": 2.0**-11, "bfloat16": 2.0**-8, "float8_e4m3fn": 2.0**-4, "float8_e4m3fnuz": 2.0**-4,
    "float8_e5m2": 2.0**-3, "float8_e5m2fnuz": 2.0**-3,
}  # fmt: skip
"""How far a number may be off that is rounded to a type, as a part of it."""


@dataclass(frozen=True)
class Case:
    """An attention of these numbers; `symbolic` names the lengths that the launch tells.

    `lengths` are how many keys each batch has, and `page_size` those of a page.
    """

    batch: int = 1
    heads: int = 1
    queries: int = 64
    keys: int = 64
    depth: int = 32
    dtype: str = "float16"
    out_dtype: str | None = None
    value_depth: int | None = None
    kv_heads: int | None = None
    layout: str = "bhsd"
    scale: float | None = None
    causal: bool = False
    window: int | None = None
    cap: float | None = None
    bias: bool = False
    log_sum: bool = True
    symbolic: str = ""
    index_type: str = "int64"
    lengths: tuple[int, ...] | None = None
    page_size: int | None = None
    kv_dtype: str | None = None
    scales: str | None = None

    def workload(self) -> PrimFunc:
        """It as `attention` writes it."""
        return mfmadsl.attention(**self.described())

    def described(self) -> dict[str, Any]:
        """The arguments of `attention`."""
        names = {field.name for field in fields(Case)} - {"symbolic", "index_type", "page_size"}
        own = {name: getattr(self, name) for name in names}
        for name in self.symbolic.split():
            own[name] = tirx.Var(name, self.index_type)
        own["lengths"] = self.lengths is not None
        if self.page_size is not None:
            own["pages"], own["page_size"] = self.pool, self.page_size
            if "keys" in self.symbolic:
                own["keys"] *= self.page_size
        return own

    @property
    def pool(self) -> int:
        """How many pages there are, more than are used."""
        return self.batch * (self.keys // (self.page_size or 1)) + 3

    @property
    def shared(self) -> int:
        """Heads of keys."""
        return self.heads if self.kv_heads is None else self.kv_heads

    @property
    def width(self) -> int:
        """Columns of V."""
        return self.depth if self.value_depth is None else self.value_depth

    @cached_property
    def given(self) -> list[Array]:
        """Q, K, V and the bias, [batch, head, place, column]: no two elements tell the same."""
        generator = np.random.default_rng(7)
        shapes = [
            (self.heads, self.queries, self.depth), (self.shared, self.keys, self.depth),
            (self.shared, self.keys, self.width),
        ]  # fmt: skip
        kinds = [self.dtype, *[self.dtype if self.kv_dtype is None else self.kv_dtype] * 2]
        arrays: list[Array] = [
            self._drawn(generator, (self.batch, *shape), dtype)
            for shape, dtype in zip(shapes, kinds, strict=True)
        ]
        if self.bias:
            shape = (self.batch, self.heads, self.queries, self.keys)
            arrays.append(generator.standard_normal(shape).astype(np.float32))
        return arrays

    def _drawn(self, generator: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Array:
        """Numbers of a type, about as large as those of others where they have their scales."""
        if dtype != "int8":
            return generator.standard_normal(shape).astype(dtype)
        most = 3 if self.scales is None else 127
        return generator.integers(-most, most + 1, shape, np.int8)

    @cached_property
    def factors(self) -> list[Array]:
        """Scales of Q, K and V, [batch, head, place, 1], of which axes may have length 1."""
        generator = np.random.default_rng(5)
        heads = (1, self.shared, 1, 1)
        each = heads if self.scales == "head" else (self.batch, self.shared, self.keys, 1)
        shapes = [(1, self.heads, 1, 1), each, each]
        # The product with a byte is about as large as that with a float.
        whole = [1.0, *[0.03 if self.kv_dtype == "int8" else 1.0] * 2]
        return [
            (generator.uniform(0.3, 1.5, shape) * size).astype(np.float32)
            for shape, size in zip(shapes, whole, strict=True)
        ]

    @property
    def multiplied(self) -> list[Array]:
        """Q, K and V in float64, as what they are."""
        arrays = [array.astype(np.float64) for array in self.given[:3]]
        if self.scales is None:
            return arrays
        used = [self.dtype in EIGHT_BIT_FLOATS, True, True]
        return [
            array * factor if use else array
            for array, factor, use in zip(arrays, self.factors, used, strict=True)
        ]

    @property
    def own_queries(self) -> Any:
        """How many queries each batch has."""
        return self.queries

    @property
    def seen(self) -> Array:
        """Which keys each query sees, [batch or 1, 1, query, key]."""
        lengths = np.array(self.lengths or [self.keys])[:, None, None, None]
        own = np.arange(self.queries)[:, None] + lengths - self.own_queries
        key = np.arange(self.keys)[None]
        seen = np.broadcast_to(key < lengths, (len(lengths), 1, self.queries, self.keys))
        if self.causal or self.window is not None:
            seen = seen & (key <= own)
        if self.window is not None:
            seen = seen & (key > own - self.window)
        return seen

    def expected(self) -> tuple[Array, Array, Array]:
        """O and L in float64, and sum(P |V|) / sum(P), of which errors are a part."""
        p, v, logarithm = self._weighted()
        return p @ v, logarithm, p @ np.abs(v)

    def _weighted(self) -> tuple[Array, Array, Array]:
        """Weights, which add up to 1 or, where no key is seen, to 0; V of each head; and L."""
        group = self.heads // self.shared
        q, *others = self.multiplied
        k, v = (np.repeat(array, group, axis=1) for array in others)
        scale = self.depth**-0.5 if self.scale is None else self.scale
        s = np.einsum("bhid,bhjd->bhij", q, k) * scale
        if self.cap is not None:
            s = self.cap * np.tanh(s / self.cap)
        if self.bias:  # in float32, as it is written: a large number leaves little of a score
            s = (s.astype(np.float32) + self.given[3]).astype(np.float64)
        s = np.where(self.seen, s, -np.inf)
        largest = s.max(-1, keepdims=True, initial=np.finfo(np.float32).min)
        p = np.exp(s - largest)
        total = p.sum(-1, keepdims=True)
        with np.errstate(divide="ignore"):
            logarithm = (largest + np.log(total))[..., 0]
        return p / np.where(total > 0, total, 1), v, logarithm

    def _tolerance(self) -> Array:
        """How far O may be off.

        The weights are rounded once, V with scales of its own too, and so is the result; float32
        sums are far more exact. Of eight bits errors are so large that one says how far those of
        many weights add up: five times what is to be expected, which is half of the largest.
        """
        p, v, _ = self._weighted()
        rounding = _ROUNDING[self.dtype]
        if self.dtype in EIGHT_BIT_FLOATS:
            own = 2.5 * rounding * np.sqrt(p**2 @ v**2)
            most: Array = np.minimum(own, rounding * (p @ np.abs(v)))
            return np.asarray(most + 2.0**-9 * np.abs(p @ v) + 2.0**-20)
        roundings = 3 if self.scales == "token" else 2
        own = _ROUNDING.get(self.out_dtype or self.dtype, 0) * np.abs(p @ v)
        return np.asarray(roundings * rounding * (p @ np.abs(v)) + own + 2.0**-20)

    def arguments(self) -> tuple[list[Array], Array, Array]:
        """All arguments of a kernel, in which no result is right yet; O and L among them."""
        arrays = self.arrays()
        given = [array for name, array in arrays.items() if name != "l" or self.log_sum]
        return given, arrays["o"], arrays["l"]

    def arrays(self) -> dict[str, Array]:
        """The arguments by name, in their order."""
        own = "float16" if self.dtype in EIGHT_BIT_FLOATS else self.dtype
        dtype = own if self.out_dtype is None else self.out_dtype
        q, k, v, *bias = self.given
        found = {"q": self.lying(q), **self._of_keys(k, v)}
        if self.lengths is not None:
            found["lengths"] = np.array(self.lengths, np.int32)
        if self.bias:
            (found["bias"],) = bias
        o = np.full((self.batch, self.heads, self.queries, self.width), 7).astype(dtype)
        found["o"] = self.lying(o)
        found["l"] = np.full((self.batch, self.heads, self.queries), 7, np.float32)
        return found

    def _of_keys(self, k: Array, v: Array) -> dict[str, Array]:
        """K, V, scales and the table of pages."""
        first = 0 if self.dtype in EIGHT_BIT_FLOATS else 1
        names = ["q_scale", "k_scale", "v_scale"][first:]
        of_places = (
            dict(zip(names, self.factors[1:], strict=True)) if self.scales == "token" else {}
        )
        arrays = {name: self._known(each) for name, each in {"k": k, "v": v, **of_places}.items()}
        table: dict[str, Array] = {}
        if self.page_size is not None:
            *paged, table["table"] = self._paged(*arrays.values())
            arrays = dict(zip(arrays, paged, strict=True))
        lying = {name: self.lying(array) for name, array in arrays.items()}
        lying |= {name: lying[name][..., 0] for name in of_places}
        if self.scales == "head":
            whole = [each.reshape(-1) for each in self.factors[first:]]
            lying |= dict(zip(names, whole, strict=True))
        return lying | table

    def _known(self, array: Array) -> Array:
        """Keys or values of which those that a batch does not have are no numbers, or large."""
        lengths = np.array(self.lengths or [self.keys])[:, None, None, None]
        return np.where(np.arange(self.keys)[:, None] < lengths, array, _no_number(array.dtype))

    def _paged(self, *arrays: Array) -> tuple[Array, ...]:
        """Keys and values in pages, [page, head, place, column], in no order, and where they are.

        What no batch has is in no page: its place in the table leads nowhere.
        """
        size = self.page_size
        assert size is not None
        columns = self.keys // size
        used = np.random.default_rng(3).permutation(self.pool)[: self.batch * columns]
        table = used.reshape(self.batch, columns).astype(np.int32)
        pools = []
        for array in arrays:
            pages = array.reshape(*array.shape[:2], columns, size, -1).swapaxes(1, 2)
            pool = np.full((self.pool, *pages.shape[2:]), _no_number(array.dtype))
            pool[table] = pages
            pools.append(pool)
        lengths = np.array(self.lengths or [self.keys])[:, None]
        table[np.broadcast_to(np.arange(columns) * size >= lengths, table.shape)] = 1 << 30
        return (*pools, table)

    def lying(self, array: Array) -> Array:
        """An array as the layout has it; and back."""
        turned = array if self.layout == "bhsd" else array.transpose(0, 2, 1, 3)
        return np.ascontiguousarray(turned)

    def check(self, arch: str = "gfx942", **tiling: Any) -> mfmadsl.Kernel:
        """Run the kernel under the sanitizer, and compare with float64."""
        workload = self.workload()
        chosen = mfmadsl.attention_tiling(workload, arch)
        schedule = mfmadsl.attention_schedule(workload, arch, replace(chosen, **tiling))
        kernel = mfmadsl.build(schedule, arch)
        arguments, o, logarithm = self.arguments()
        mfmadsl.sanitize(kernel, arguments)
        self.compare(self.lying(o), logarithm)
        return kernel

    def compare(self, o: Array, logarithm: Array) -> None:
        """Compare O and L, [batch, head, query, column], with float64."""
        wanted, sums, _ = self.expected()
        assert (np.abs(o.astype(np.float64) - wanted) <= self._tolerance()).all()
        if self.log_sum:
            none = np.isinf(sums)
            assert np.array_equal(np.isneginf(logarithm), none)
            assert np.abs(logarithm[~none] - sums[~none]).max(initial=0) < 1e-4


def _no_number(dtype: np.dtype[Any]) -> Any:
    """What is no number of a type, or where all are the largest."""
    return np.array(127 if dtype == np.int8 else np.nan).astype(dtype)

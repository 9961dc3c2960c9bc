"""Backward passes of attention, what NumPy makes of them in float64, and kernels of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import ml_dtypes  # noqa: F401 - NumPy knows bfloat16 by it
import numpy as np
import numpy.typing as npt
from tvm import tirx
from tvm.tirx import PrimFunc

import mfmadsl

Array = npt.NDArray[Any]

_ROUNDING = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 0.0}


@dataclass(frozen=True)
class BackwardCase:
    """A backward pass of these numbers; `symbolic` names the lengths that the launch tells."""

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
    symbolic: str = ""
    index_type: str = "int64"

    def workloads(self) -> tuple[PrimFunc, PrimFunc]:
        """dQ, and dK and dV, as `attention_backward` writes them."""
        own = {name: value for name, value in vars(self).items() if name in _ARGUMENTS}
        own |= {name: tirx.Var(name, self.index_type) for name in self.symbolic.split()}
        return mfmadsl.attention_backward(**own)

    @property
    def shared(self) -> int:
        """Heads of K and V."""
        return self.heads if self.kv_heads is None else self.kv_heads

    @property
    def factor(self) -> float:
        """What products are multiplied with."""
        return self.depth**-0.5 if self.scale is None else self.scale

    @property
    def seen(self) -> Array:
        """Which keys each query sees, [query, key]."""
        own = np.arange(self.queries)[:, None] + self.keys - self.queries
        key = np.arange(self.keys)[None]
        seen = np.ones((self.queries, self.keys), bool)
        if self.causal or self.window is not None:
            seen &= key <= own
        return seen if self.window is None else seen & (key > own - self.window)

    @cached_property
    def given(self) -> list[Array]:
        """Q, K, V and dO, [batch, head, place, column]: no two elements tell the same."""
        generator = np.random.default_rng(7)
        width = self.depth if self.value_depth is None else self.value_depth
        shapes = [
            (self.heads, self.queries, self.depth), (self.shared, self.keys, self.depth),
            (self.shared, self.keys, width), (self.heads, self.queries, width),
        ]  # fmt: skip
        return [
            generator.standard_normal((self.batch, *shape)).astype(self.dtype) for shape in shapes
        ]

    @cached_property
    def weights(self) -> tuple[Array, Array, Array, Array]:
        """P and W, [batch, head, query, key], and L and D, [batch, head, query], in float64."""
        group = self.heads // self.shared
        q, k, v, d_o = (array.astype(np.float64) for array in self.given)
        k, v = (np.repeat(array, group, axis=1) for array in (k, v))
        s = np.where(self.seen, np.einsum("bhid,bhjd->bhij", q, k) * self.factor, -np.inf)
        largest = s.max(-1, keepdims=True, initial=-1e30)
        e = np.exp(s - largest)
        total = e.sum(-1, keepdims=True)
        p = e / np.where(total > 0, total, 1)
        with np.errstate(divide="ignore"):
            log_sum = (largest + np.log(total))[..., 0]
        d = (d_o * (p @ v)).sum(-1)
        w = p * (np.einsum("bhic,bhjc->bhij", d_o, v) - d[..., None])
        return p, w, log_sum, d

    def expected(self) -> dict[str, tuple[Array, Array]]:
        """dQ, dK and dV in float64, and the sums of absolute terms, of which errors are a part."""
        p, w, _, _ = self.weights
        q, k, _, d_o = (array.astype(np.float64) for array in self.given)
        k = np.repeat(k, self.heads // self.shared, axis=1)

        def both(of: str, weight: Array, other: Array, scale: float) -> tuple[Array, Array]:
            sums = np.einsum(of, weight, other), np.einsum(of, np.abs(weight), np.abs(other))
            return sums[0] * scale, sums[1] * scale

        dk, dv = (
            both("bhij,bhid->bhjd", weight, other, scale)
            for weight, other, scale in ((w, q, self.factor), (p, d_o, 1.0))
        )
        return {
            "dQ": both("bhij,bhjd->bhid", w, k, self.factor),
            "dK": (self._of_groups(dk[0]), self._of_groups(dk[1])),
            "dV": (self._of_groups(dv[0]), self._of_groups(dv[1])),
        }

    def _of_groups(self, array: Array) -> Array:
        """Summed up over the heads that share keys."""
        group = self.heads // self.shared
        groups = array.reshape(self.batch, self.shared, group, *array.shape[2:])
        return np.asarray(groups.sum(2))

    def lying(self, array: Array) -> Array:
        """An array as the layout has it; and back."""
        turned = array if self.layout == "bhsd" else array.transpose(0, 2, 1, 3)
        return np.ascontiguousarray(turned)

    def check(self, arch: str = "gfx942", **tiling: Any) -> list[mfmadsl.Kernel]:
        """Run both kernels under the sanitizer, and compare with float64."""
        _, _, log_sum, d = self.weights
        arguments = [*map(self.lying, self.given), *(x.astype(np.float32) for x in (log_sum, d))]
        kernels = []
        expected = self.expected()
        for workload, names in zip(self.workloads(), (["dQ"], ["dK", "dV"]), strict=True):
            chosen = replace(mfmadsl.attention_tiling(workload, arch), **tiling)
            kernel = mfmadsl.build(mfmadsl.attention_schedule(workload, arch, chosen), arch)
            dtype = self.dtype if self.out_dtype is None else self.out_dtype
            results = [
                self.lying(np.full(expected[name][0].shape, 7)).astype(dtype) for name in names
            ]
            mfmadsl.sanitize(kernel, [*arguments, *results])
            for name, result in zip(names, results, strict=True):
                wanted, sums = expected[name]
                error = np.abs(self.lying(result).astype(np.float64) - wanted)
                assert (error <= self._tolerance(sums, wanted, dtype)).all(), name
            kernels.append(kernel)
        return kernels

    def _tolerance(self, sums: Array, wanted: Array, dtype: str) -> Array:
        """Weights are rounded once, and so are results; D was rounded to float32.

        Scores and L of float32 are off by some 2^-20, which a weight is then, too; the difference
        in W cancels, so that it may be off by more. Denormal halves are off by 2^-25.
        """
        rounding = 1.5 * _ROUNDING[self.dtype] + 2.0**-14
        return np.asarray(rounding * sums + _ROUNDING[dtype] * np.abs(wanted) + 2.0**-16)


_ARGUMENTS = {
    "batch", "heads", "queries", "keys", "depth", "dtype", "out_dtype", "value_depth", "kv_heads",
    "layout", "scale", "causal", "window",
}  # fmt: skip

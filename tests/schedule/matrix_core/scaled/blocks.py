"""Products of eight-bit floats in scaled blocks: how they are written, and what they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray
from tvm import te
from tvm.tirx import PrimFunc

import mfmadsl
from mfmadsl import Tiling
from mfmadsl.backend import Kernel

FLOATS = {
    "gfx942": ("float8_e4m3fnuz", "float8_e5m2fnuz"),
    "gfx950": ("float8_e4m3fn", "float8_e5m2"),
}
CHIPS = tuple(FLOATS)


@dataclass(frozen=True)
class Blocks:
    """How a product is written: what blocks of A and B share a scale, its type, and where all lie.

    A block is of so many rows and k; None is for no scale. What is `turned` lies with rows last.
    """

    a: tuple[int, int] | None = (1, 128)
    b: tuple[int, int] | None = (128, 128)
    dtype: str = "float32"
    turned: str = ""
    before: bool = True
    batch: int | None = None

    def workload(self, shape: tuple[Any, int, int], types: Sequence[str]) -> PrimFunc:
        m, n, k = shape
        lead = () if self.batch is None else (self.batch,)
        given, values = [], []
        for name, rows, block, dtype in zip("AB", (m, n), (self.a, self.b), types, strict=True):
            elements, scales = self._placeholders(name, lead, (rows, k), block, dtype)
            given += [elements] if scales is None else [elements, scales]
            values.append(self._value(name, elements, scales, block))
        if self.before:
            wide = [
                te.compute((*lead, rows, k), value, f"{name}_scaled")
                for name, rows, value in zip("AB", (m, n), values, strict=True)
            ]
            values = [lambda *place, own=own: own[place] for own in wide]
        r = te.reduce_axis((0, k), "k")

        def product(*place: Any) -> Any:
            *which, i, j = place
            return te.sum(values[0](*which, i, r) * values[1](*which, j, r), axis=[r])

        return te.create_prim_func([*given, te.compute((*lead, m, n), product, "C")])

    def _placeholders(
        self, name: str, lead: Any, shape: tuple[int, int], block: tuple[int, int] | None,
        dtype: str,
    ) -> tuple[Any, Any]:  # fmt: skip
        elements = te.placeholder((*lead, *self._turned(name, shape)), dtype, name)
        if block is None:
            return elements, None
        scales = self._turned(f"S{name}", scales_shape(shape, block))
        return elements, te.placeholder((*lead, *scales), self.dtype, f"S{name}")

    def _value(self, name: str, elements: Any, scales: Any, block: tuple[int, int] | None) -> Any:
        def value(*place: Any) -> Any:
            *which, row, k = place
            element = elements[(*which, *self._turned(name, (row, k)))].astype("float32")
            if block is None:
                return element
            at = self._turned(f"S{name}", (row // block[0], k // block[1]))
            scale = scales[(*which, *at)]
            return element * (scale if self.dtype == "float32" else scale.astype("float32"))

        return value

    def _turned(self, name: str, pair: tuple[Any, Any]) -> tuple[Any, Any]:
        return pair[::-1] if name in self.turned.split() else pair

    def array(self, name: str, values: NDArray[Any]) -> NDArray[Any]:
        """As it lies in memory."""
        return (
            np.ascontiguousarray(values.swapaxes(-1, -2)) if name in self.turned.split() else values
        )


def scales_shape(shape: tuple[int, int], block: tuple[int, int]) -> tuple[int, int]:
    return -(-shape[0] // block[0]), -(-shape[1] // block[1])


def built(workload: PrimFunc, arch: str, tiling: Tiling | None = None) -> Kernel:
    kernel = mfmadsl.build(mfmadsl.gemm_schedule(workload, arch=arch, tiling=tiling), arch)
    assert kernel.remarks == (), kernel.remarks
    return kernel


def check(
    kernel: Kernel, blocks: Blocks, shape: tuple[int, int, int], types: Sequence[str]
) -> None:
    """Run it under the sanitizer beside float64, with values and scales that name their place."""
    m, n, k = shape
    rng = np.random.default_rng(m + 3 * n + 7 * k)
    lead = () if blocks.batch is None else (blocks.batch,)
    arrays: dict[str, NDArray[Any]] = {}
    values = []
    for name, rows, block, dtype in zip("AB", (m, n), (blocks.a, blocks.b), types, strict=True):
        elements = rng.standard_normal((*lead, rows, k)).astype(getattr(ml_dtypes, dtype))
        arrays[name], wide = blocks.array(name, elements), elements.astype(np.float64)
        if block is not None:
            own = rng.uniform(0.5, 2, (*lead, *scales_shape((rows, k), block)))
            scales = own.astype(getattr(ml_dtypes, blocks.dtype, blocks.dtype))
            arrays[f"S{name}"] = blocks.array(f"S{name}", scales)
            each = scales.astype(np.float64)
            of_rows, of_k = (np.arange(x) // size for x, size in zip((rows, k), block, strict=True))
            wide = wide * each[..., of_rows[:, None], of_k]
        values.append(wide)
    c = np.full((*lead, m, n), np.nan, np.float32)
    mfmadsl.sanitize(kernel, [*(arrays[each.name] for each in kernel.arguments[:-1]), c])
    x, y = values
    bound = 2.0**-23 * (k + 3) * (np.abs(x) @ np.abs(y).swapaxes(-1, -2))
    assert (np.abs(c - x @ y.swapaxes(-1, -2)) <= bound).all()

"""Products of eight-bit floats in scaled blocks with a matrix for each expert."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray
from tvm import te
from tvm.tirx import PrimFunc

import mfmadsl
from mfmadsl.backend import Kernel
from mfmadsl.schedule.workload.grouped import rows_of_groups
from tests.schedule.matrix_core.scaled.blocks import Blocks, scales_shape

Array = NDArray[Any]
After = Callable[[te.Tensor], te.Tensor]


@dataclass(frozen=True)
class Experts:
    """How such a product is written: its scales, how many experts and, if A has those, tokens."""

    blocks: Blocks = field(default_factory=Blocks)
    experts: int = 4
    tokens: int | None = None

    def workload(
        self, shape: tuple[int, int, int], types: Sequence[str], after: After | None = None
    ) -> PrimFunc:
        """The product, and a result that is made of it."""
        m, n, k = shape
        rows = rows_of_groups(m, k, self.experts, self.tokens, types[0], "experts")
        given, own = m if self.tokens is None else self.tokens, self.blocks
        a, of_a = own._placeholders("A", (), (given, k), own.a, types[0])
        b, of_b = own._placeholders("B", (self.experts,), (n, k), own.b, types[1])
        values = own._value("A", a, of_a, own.a), own._value("B", b, of_b, own.b)
        if own.before:
            left = te.compute((given, k), values[0], "A_scaled")
            right = te.compute((self.experts, n, k), values[1], "B_scaled")
            values = (lambda *at: left[at]), (lambda *at: right[at])
        r = te.reduce_axis((0, k), "k")

        def product(i: Any, j: Any) -> Any:
            return te.sum(values[0](rows.row(i), r) * values[1](rows.group[i], j, r), axis=[r])

        c = te.compute((m, n), product, "C")
        made = c if after is None else after(c)
        operands = [each for each in (a, of_a, b, of_b) if each is not None]
        return te.create_prim_func([*operands, *rows.parameters[1:], made])

    def arrays(
        self, rng: np.random.Generator, shape: tuple[int, int, int], types: Sequence[str],
        ends: Sequence[int],
    ) -> tuple[dict[str, Array], Array, Array]:  # fmt: skip
        """(the arguments by name, the product in float64, the sum of the products' magnitudes)."""
        m, n, k = shape
        given = m if self.tokens is None else self.tokens
        own, found, wide = self.blocks, {"ENDS": np.array(ends, np.int32)}, []
        sides = ("A", (), given, own.a), ("B", (self.experts,), n, own.b)
        for (name, lead, rows, block), dtype in zip(sides, types, strict=True):
            elements = rng.standard_normal((*lead, rows, k)).astype(getattr(ml_dtypes, dtype))
            found[name], value = own.array(name, elements), elements.astype(np.float64)
            if block is not None:
                scales = rng.uniform(0.5, 2, (*lead, *scales_shape((rows, k), block)))
                scales = scales.astype(getattr(ml_dtypes, own.dtype, own.dtype))
                found[f"S{name}"] = own.array(f"S{name}", scales)
                places = zip((rows, k), block, strict=True)
                of_rows, of_k = (np.arange(x) // size for x, size in places)
                value = value * scales.astype(np.float64)[..., of_rows[:, None], of_k]
            wide.append(value)
        which = np.arange(m) if self.tokens is None else rng.integers(0, given, m)
        found["ROWS"] = which.astype(np.int32)
        expert = (np.array(ends[:-1]) <= np.arange(m)[:, None]).sum(axis=1)
        x, y = wide[0][which], wide[1][expert]
        return found, *(np.einsum("ik,ijk->ij", *both) for both in ((x, y), (abs(x), abs(y))))


def check(
    kernel: Kernel, experts: Experts, shape: tuple[int, int, int], types: Sequence[str],
    ends: Sequence[int],
) -> None:  # fmt: skip
    """Run it under the sanitizer beside float64."""
    rng = np.random.default_rng(sum(shape) + sum(ends))
    arrays, exact, magnitude = experts.arrays(rng, shape, types, ends)
    c = np.full(shape[:2], np.nan, np.float32)
    mfmadsl.sanitize(kernel, [*(arrays[each.name] for each in kernel.arguments[:-1]), c])
    assert (np.abs(c - exact) <= 2.0**-23 * (shape[2] + 3) * magnitude).all()

"""What a GEMM workload computes: `match` finds it, the kernel is built from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from tvm import tirx

Extent: TypeAlias = Any
"""A Python int, or an expression of TVM where the extent is known at run time only."""


@dataclass(frozen=True)
class Axis:
    """Some loops of the workload that are walked as one; variables and extents, outermost first."""

    variables: tuple[tirx.Var, ...]
    extents: tuple[Extent, ...]

    @property
    def extent(self) -> Extent:
        product: Extent = 1
        for extent in self.extents:
            product = product * extent
        return product

    def values(self, index: Any) -> dict[tirx.Var, Any]:
        """What the variables are at a place of the whole axis."""
        values = {}
        for variable, extent in zip(reversed(self.variables[1:]), reversed(self.extents[1:]),
                                    strict=True):  # fmt: skip
            values[variable] = index % extent
            index = index // extent
        if self.variables:
            values[self.variables[0]] = index
        return values


@dataclass(frozen=True)
class Matrix:
    """A matrix, or a batch of them, in a buffer: how many elements apart its neighbours lie.

    Rows and columns are those of the product: A is M x K, B is N x K, C is M x N. `batch` has a
    stride for each batch axis, 0 where all share one matrix.
    """

    buffer: Any
    row_stride: Extent
    column_stride: Extent
    batch: tuple[Extent, ...]

    @property
    def dtype(self) -> str:
        return str(self.buffer.dtype)

    @property
    def name(self) -> str:
        return str(self.buffer.name)


@dataclass(frozen=True)
class Stage:
    """An element-wise block after the product: the buffer that it writes, and the value.

    The value is an expression of the GEMM's axis variables, of elements of other arguments, and of
    the buffers of the product and of earlier stages at the same place.
    """

    name: str
    buffer: Any
    value: Any


@dataclass(frozen=True)
class Problem:
    """C[m, n] = epilogue(sum over k of A[m, k] * B[n, k]), for each place of the batch axes.

    `product` is the buffer that the workload accumulates into; the stages of the epilogue start
    from it, and the last of them writes `c`. Without stages `c` is the product itself.
    """

    parameters: tuple[Any, ...]
    name: str
    m: Axis
    n: Axis
    k: Axis
    batch: tuple[Axis, ...]
    a: Matrix
    b: Matrix
    c: Matrix
    product: Any
    epilogue: tuple[Stage, ...]

    @property
    def symbols(self) -> tuple[tirx.Var, ...]:
        """Variables of the shapes, known at run time only."""
        found: dict[str, tirx.Var] = {}
        for parameter in self.parameters:
            for extent in parameter.shape:
                if isinstance(extent, tirx.Var):
                    found[extent.name] = extent
        return tuple(found.values())


def constant(extent: Extent) -> int | None:
    """The number, where it is known."""
    if isinstance(extent, int):
        return extent
    return int(extent) if isinstance(extent, tirx.IntImm) else None

"""A unit that is no matrix core: tiles in memory scopes of its own, and a C function for them."""

from __future__ import annotations

from dataclasses import dataclass

from mfmadsl.model.types import ElementType


@dataclass(frozen=True)
class TileBuffer:
    """An operand: a tile of elements, with rows and columns named by `indices`, in `scope`."""

    name: str
    type: ElementType
    indices: tuple[str, str]
    scope: str


@dataclass(frozen=True)
class Accelerator:
    """C[m, n] += A x B on tiles in memory, done by a C function.

    `function` is called with pointers to C, A and B, then the strides of A, B and C: the number of
    elements from one row to the next, as `int`.
    """

    name: str
    doc: str
    m: int
    n: int
    k: int
    a: TileBuffer
    b: TileBuffer
    c: TileBuffer
    function: str

    def extent(self, index: str) -> int:
        """The number of values of i, j or k."""
        return {"i": self.m, "j": self.n, "k": self.k}[index]

"""What the time of a GEMM on a whole chip depends on, beside its tiling."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from mfmadsl.model import Architecture, GpuProduct, Intrinsic
from mfmadsl.schedule.matrix_core.tiling.reads import MemoryRead, k_bytes_of
from mfmadsl.schedule.matrix_core.tiling.resources import KBytes, Loads


@dataclass(frozen=True)
class GemmOnChip:
    """A product of matrices: extents, what is read, bytes of an element of C, and where it runs.

    An instruction of several blocks counts as many of `batches` at once. Each workgroup adds up
    statistics of some rows of A before its loop.
    """

    m: int
    n: int
    k: int
    batches: int
    reads: tuple[MemoryRead, ...]
    result_bytes: int
    intrinsic: Intrinsic
    chip: Architecture
    product: GpuProduct
    loads: Loads
    statistics_rows: int = 0

    @cached_property
    def k_bytes(self) -> KBytes:
        """The bytes of one k of A and B."""
        return k_bytes_of(self.reads)

    @cached_property
    def loaded(self) -> KBytes:
        """The bytes of one k of both sides that are loaded, of which elements may be made."""
        a, b = (sum(sum(r.sources) for r in self.reads if r.side == side) for side in (0, 1))
        return a, b

    @cached_property
    def made(self) -> frozenset[int]:
        """The sides of C whose elements are computed of what is loaded."""
        return frozenset(read.side for read in self.reads if read.work)

    @property
    def sum_bytes(self) -> int:
        """Bytes of a sum, of which a split K makes several for each element of C."""
        return self.intrinsic.c.type.bits // 8

"""A chip, a type and an order of B: what tests of main loops and benchmarks go through."""

from __future__ import annotations

from dataclasses import dataclass

from tests.schedule.matrix_core.gemm.workloads import FP8

CHIPS, TYPES, ORDERS = ("gfx942", "gfx950"), ("f16", "bf16", "i8", "fp8"), ("bt", "kn")
_DTYPES = {"f16": "float16", "bf16": "bfloat16", "i8": "int8"}


@dataclass(frozen=True)
class Case:
    """A chip, a type, and how B lies: as N x K (`bt`) or as K x N (`kn`)."""

    arch: str
    kind: str
    order: str

    def __str__(self) -> str:
        return f"{self.arch}.{self.kind}.{self.order}"

    @property
    def dtype(self) -> str:
        return _DTYPES.get(self.kind, FP8[self.arch])

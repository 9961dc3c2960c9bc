"""Our GEMM kernel for a product, nothing of it chosen by hand: what benchmarks compare."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import mfmadsl
from benchmarks.gemm.case import Case, Shape
from mfmadsl.backend import build
from mfmadsl.schedule import Tiling, gemm_schedule


@dataclass(frozen=True)
class Chosen:
    """The kernel of the tiling that `gemm_schedule` chooses."""

    tiling: Tiling
    kernel: Any

    def setting(self, case: Case) -> str:
        """The tiling, called as Triton's settings are."""
        one = self.tiling
        return (
            f"{one.block[0]}x{one.block[1]}x{one.k_step * case.element_bytes}B"
            f"-w{one.wave_count}-s{one.stages}-i{one.instruction.split('x')[1]}"
            f"-k{one.k_pack}" + (f"-parts{one.split_k}" if one.split_k > 1 else "")
        )


def chosen(case: Case, shape: Shape, output: str = "") -> Chosen:
    """The kernel for a product, whose C has another type than the case's with an `output`.

    A workgroup has one tile: one that walks over many takes minutes to emulate.
    """
    workload = case.workload(*shape, output)
    tiling = replace(mfmadsl.gemm_tiling(workload, arch=case.arch), persistent=False)
    return Chosen(tiling, build(gemm_schedule(workload, arch=case.arch, tiling=tiling), case.arch))

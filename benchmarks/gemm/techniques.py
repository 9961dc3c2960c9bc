"""What each technique of the GEMM kernel is worth: the kernel, and the kernel without it.

    python -m benchmarks.gemm.techniques

prints the tables of docs/gemm.md. `bound / cycles` is llvm-mca's, of the main loop of one wave, and
knows no bank conflicts and no other waves; `matrix cores busy` is our profiler's, of one compute
unit, and knows both (docs/emulator.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

import mfmadsl
from benchmarks.gemm.compare import ORDER_NAMES, Case
from benchmarks.gemm.loop import measure
from mfmadsl.model import architecture
from mfmadsl.schedule import Tiling
from mfmadsl.schedule.writer import emit, pipeline

STEPS = 16


@dataclass(frozen=True)
class Variant:
    """A kernel that lacks something: by its tiling, or because its maker is patched."""

    name: str
    tiling: Callable[[Tiling], Tiling] = lambda tiling: tiling
    patched: Callable[[], Any] = nullcontext


def in_a_burst(
    products: Sequence[emit.Piece], others: Sequence[emit.Piece], slack: int = 0
) -> None:
    """In place of `pipeline._spread`: all others first."""
    del slack
    for each in (*others, *products):
        each.write()


@contextmanager
def without_transposing_reads() -> Iterator[None]:
    def plain(name: str) -> Any:
        return replace(architecture(name), transposing_reads=False)

    with patch("mfmadsl.schedule.writer.schedule.architecture", plain):
        yield


def nothing() -> None:
    """In place of a hint to LLVM."""


FULL = Variant("the kernel")
COMMON = [
    Variant("LLVM orders the loop", patched=lambda: patch.object(emit, "keep_order", nothing)),
    Variant("reads and moves in a burst",
            patched=lambda: patch.object(pipeline, "_spread", in_a_burst)),
    Variant("LLVM waits before each use",
            patched=lambda: patch.multiple(emit, wait_for_lds=nothing, wait_for_memory=nothing)),
    Variant("no swizzle", lambda t: replace(t, swizzle=False)),
    Variant("64 bytes of K a step", lambda t: replace(t, k_step=t.k_step // 2)),
]  # fmt: skip
OF_CASE = {
    "gfx942.f16.bt": [
        Variant("no k-packing", lambda t: replace(t, k_pack=1)),
        Variant("128x128 tiles", lambda t: replace(t, block=(128, 128), waves=(2, 2))),
    ],
    "gfx942.f16.kn": [],
    "gfx950.f16.kn": [
        Variant("one tile in the LDS, through registers", lambda t: replace(t, stages=1)),
        Variant(
            "that, and no transposing reads",
            lambda t: replace(t, stages=1),
            without_transposing_reads,
        ),
    ],
}


def row(case: Case, variant: Variant) -> str:
    tiling = variant.tiling(mfmadsl.gemm_tiling(case.workload(4096, 4096, 4096), arch=case.arch))
    shape = (*tiling.block, STEPS * tiling.k_step)
    with variant.patched():
        schedule = mfmadsl.gemm_schedule(case.workload(*shape), arch=case.arch, tiling=tiling)
    return figures(case, variant.name, mfmadsl.build(schedule, case.arch), shape)


def simple_row(case: Case) -> str:
    """`mfma_schedule`, for what it is worth: TVM's interface, and no pipeline."""
    shape = 256, 256, 1024
    half = mfmadsl.find("mfma_f32_16x16x16_f16")
    gemm = mfmadsl.Gemm(half, case.arch, *shape, case.order == "bt", "shared")
    return figures(case, "`mfma_schedule`", gemm.build(), shape)


def figures(case: Case, name: str, kernel: mfmadsl.Kernel, shape: tuple[int, int, int]) -> str:
    loop = measure(kernel.assembly, case.arch)
    profile = mfmadsl.profile(kernel, case.arrays(*shape), full=True)
    assert profile.loop is not None
    efficiency = f"{loop.efficiency(case.per_cycle):.3f}" if loop.cycles else ""
    return (
        f"| {name} | {loop.per_unit:.2f} | {loop.registers} | {loop.spilled} "
        f"| {profile.loop.lds_conflict_cycles} | {efficiency} | {profile.matrix_use:.0%} |"
    )


def main() -> None:
    """Print a table for each case."""
    for name, own in OF_CASE.items():
        case = Case(*name.split("."))
        print(f"\n{case.arch}, {case.kind}, {ORDER_NAMES[case.order]}:\n")
        print("| | instructions / 65536 multiply-adds | registers | spilled | LDS conflict cycles "
              "| bound / cycles | matrix cores busy |")  # fmt: skip
        print("| --- | --- | --- | --- | --- | --- | --- |")
        print(row(case, FULL))
        for variant in (*COMMON, *own):
            print(row(case, variant), flush=True)
        if case.arch == "gfx942":
            print(simple_row(case), flush=True)


if __name__ == "__main__":
    main()

"""What each technique of the GEMM kernel is worth: the kernel, and the kernel without it.

    python -m benchmarks.gemm.techniques

prints the tables of docs/gemm-kernel.md. `bound / cycles` is llvm-mca's, of the main loop of one
wave, and knows no bank conflicts and no other waves; `matrix cores busy` is our profiler's, of one
compute unit, and knows both (docs/emulator.md).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

from tvm import tirx
from tvm.tirx import Evaluate

import mfmadsl
from benchmarks.call import command
from benchmarks.gemm.case import ORDER_NAMES, Case
from benchmarks.gemm.loop import measure, need_llvm_mca
from mfmadsl.passes.main_loop import pipeline
from mfmadsl.passes.main_loop.moves import landing, traffic
from mfmadsl.passes.tir import device
from mfmadsl.schedule import Tiling

SIZES = {"gfx942": (4096, 4864, 4096), "gfx950": (4096, 4096, 4096)}
"""Products of which tiles of 256x256 fill a chip."""
STEPS = 16


@dataclass(frozen=True)
class Variant:
    """A kernel that lacks something: by its tiling, or because its maker is patched."""

    name: str
    tiling: Callable[[Tiling], Tiling] = lambda tiling: tiling
    patched: Callable[[], Any] = nullcontext


def nothing(*_: Any) -> Evaluate:
    """In place of a hint to LLVM, or of a wait."""
    return Evaluate(tirx.const(0, "int32"))


def none(*_: Any) -> list[Any]:
    """In place of the sums that are filled ahead of the loop."""
    return []


def waits_of_llvm(straight: bool) -> ExitStack:
    """No waits of ours; but LLVM does not wait for what goes straight into the LDS."""
    stack = ExitStack()
    for name in ("wait_for_lds",) if straight else ("wait_for_lds", "wait_for_memory"):
        stack.enter_context(patch.object(device, name, nothing))
    return stack


def waits_for_all() -> Any:
    """Each wait for memory is one for all that is under way."""
    return patch.object(landing.Landing, "under_way", lambda *_: 0)


def no_halves() -> Any:
    """Register steps follow K, of all sums."""
    return patch.object(traffic, "in_halves", none)


FULL = Variant("the kernel")
COMMON = [
    Variant("LLVM orders the loop", lambda t: replace(t, overlap="fragments")),
    Variant("LLVM fills the sums", patched=lambda: patch.object(pipeline, "fills_at_end", none)),
    Variant("no swizzle", lambda t: replace(t, swizzle=False)),
    Variant("64 bytes of K a step", lambda t: replace(t, k_step=t.k_step // 2)),
]  # fmt: skip
OF_CASE = {
    "gfx942.f16.bt": [
        Variant("LLVM waits before each use", patched=lambda: waits_of_llvm(False)),
        Variant("no k-packing", lambda t: replace(t, k_pack=1)),
        Variant("only loads ahead", lambda t: replace(t, overlap="loads")),
        Variant("nothing ahead", lambda t: replace(t, overlap="nothing")),
        Variant("128x128 tiles", lambda t: replace(t, block=(128, 128), waves=(2, 2))),
    ],
    "gfx942.f16.kn": [
        Variant("LLVM waits before each use", patched=lambda: waits_of_llvm(False)),
    ],
    "gfx950.f16.kn": [
        Variant("LLVM waits for fragments", patched=lambda: waits_of_llvm(True)),
        Variant("waits for all loads", patched=waits_for_all),
        Variant("all sums in each register step", patched=no_halves),
        Variant("one tile in the LDS, through registers", lambda t: replace(t, stages=1)),
        Variant(
            "that, and no transposing reads",
            lambda t: replace(t, stages=1, transposing_reads=False),
        ),
    ],
}


def row(case: Case, variant: Variant) -> str:
    tiling = variant.tiling(mfmadsl.gemm_tiling(case.workload(*SIZES[case.arch]), arch=case.arch))
    shape = (*tiling.block, STEPS * tiling.k_step)
    with variant.patched():
        schedule = mfmadsl.gemm_schedule(case.workload(*shape), arch=case.arch, tiling=tiling)
        kernel = mfmadsl.build(schedule, case.arch)
    return figures(case, variant.name, kernel, shape)


def simple_row(case: Case) -> str:
    """`mfma_schedule`, with the tiles that it takes by itself."""
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
    command(__doc__).parse_args()
    need_llvm_mca()
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

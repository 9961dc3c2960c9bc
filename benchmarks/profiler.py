"""The profiler's cycle model beside llvm-mca, on straight-line machine code of one wave.

    python -m benchmarks.profiler

needs `llvm-mca-22` (Debian's package llvm-22). llvm-mca knows no bank conflicts, no cache lines and
no other waves; so the model runs twice, once with LLVM's latencies and free memory, once with its
own.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace

import numpy as np

from benchmarks.call import command
from benchmarks.gemm.loop import need_llvm_mca
from mfmadsl import Gemm, Kernel, find
from mfmadsl.emulator.profiler import chip_of
from mfmadsl.emulator.profiler.cost import SLOT
from mfmadsl.emulator.profiler.record import Recorder, Trace
from mfmadsl.emulator.profiler.timing import Timing, simulate
from mfmadsl.emulator.run import BUDGET, launch_of, run_launch
from mfmadsl.model import Architecture

CASES = [
    ("mfma_f32_16x16x16_f16", "gfx942"),
    ("mfma_f32_32x32x8_f16", "gfx942"),
    ("mfma_i32_32x32x16_i8", "gfx942"),
    ("mfma_f32_16x16x16_f16", "gfx90a"),
    ("mfma_f32_32x32x8_f16", "gfx90a"),
    ("mfma_f32_16x16x32_f16", "gfx950"),
    ("mfma_f32_32x32x16_f16", "gfx950"),
]
MCA = ["llvm-mca-22", "-mtriple=amdgcn", "-iterations=1", "-instruction-info=0",
       "-resource-pressure=0"]  # fmt: skip
LEFT_OUT = ("s_barrier", "s_endpgm")


def as_llvm_has_it(chip: Architecture) -> Architecture:
    """The same chip with the latencies of LLVM's scheduling model: LDS 5, memory 80, scalar 5."""
    return replace(chip, lds_latency=4 * SLOT, l2_latency=79 * SLOT, scalar_latency=5 * SLOT)


def modelled(
    kernel: Kernel, args: list[np.ndarray], chip: Architecture, free: bool
) -> tuple[Timing, str]:
    """One wave alone, and the text of what it executes; with `free`, memory costs nothing."""
    launch = launch_of(kernel, None, None, None)
    recorder = Recorder(chip)
    run_launch(launch, [a.copy() for a in args], BUDGET, recorder, np.arange(1))
    program, trace = launch.program.instructions, recorder.traces[0]
    steps = [
        (place, 0 if free else cost, trace.lines.get(step))
        for step, (place, cost) in enumerate(zip(trace.places, trace.costs, strict=True))
        if program[place].name not in LEFT_OUT
    ]
    lines = {} if free else {at: touched for at, (*_, touched) in enumerate(steps) if touched}
    alone = Trace(0, [place for place, *_ in steps], [cost for _, cost, _ in steps], lines)
    timing = simulate(chip, program, recorder.operations, [alone], 1)
    return timing, "\n".join(program[place].text for place, *_ in steps)


def mca_cycles(text: str, arch: str) -> int:
    """What llvm-mca says; its cycle is four of the clock."""
    done = subprocess.run(
        [*MCA, f"-mcpu={arch}"], input=text, capture_output=True, text=True, check=True, timeout=60
    )
    found = re.search(r"Total Cycles:\s+(\d+)", done.stdout)
    assert found is not None
    return int(found[1])


def main() -> None:
    """Print the table."""
    command(__doc__).parse_args()
    need_llvm_mca()
    print("| kernel, 128x128x128 | bound | llvm-mca | model, LLVM's latencies | off by | model |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, arch in CASES:
        for b_transposed in (True, False):
            gemm = Gemm(find(name), arch, 128, 128, 128, b_transposed, "shared")
            kernel, args, chip = gemm.build(), list(gemm.operands()), chip_of(arch)
            like, text = modelled(kernel, args, as_llvm_has_it(chip), free=True)
            own, _ = modelled(kernel, args, chip, free=False)
            mca = mca_cycles(text, arch)
            order = "B^T" if b_transposed else "KxN"
            cycles = like.cycles // SLOT
            print(f"| {name}, {order}, {arch} | {like.busy['matrix'] // SLOT} | {mca} | {cycles} "
                  f"| {cycles / mca - 1:+.1%} | {own.cycles // SLOT} |")  # fmt: skip


if __name__ == "__main__":
    main()

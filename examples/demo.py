"""The whole path on one screen: a `.mfma` file, its module, a schedule, machine code, a result.

python examples/demo.py
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import mfmadsl
from mfmadsl.codegen import module_text

SPEC = Path(__file__).with_name("half.mfma")
ARCH = "gfx942"
M, N, K = 1000, 999, 998  # no multiples of anything: nobody has to pad


def excerpt(text: str, start: str, count: int) -> str:
    """`count` lines from the first one that contains `start`."""
    lines = text.splitlines()
    first = next(i for i, line in enumerate(lines) if start in line)
    rest = len(lines) - count
    shown = [line.replace("\t", "  ") for line in lines[first : first + count]]
    return "\n".join([*shown, f"... ({rest} lines more)"])


def narrow(text: str) -> str:
    """Lines of at most 100 characters, with half of their indent."""
    lines = (line.replace(" " * 4, "  ") for line in text.splitlines())
    return "\n".join(line if len(line) <= 100 else line[:97] + "..." for line in lines)


def section(title: str, text: str) -> None:
    """Print one step of the path."""
    print(f"=== {title}\n\n{text.rstrip()}\n")


def main() -> int:
    """Show every stage; 1 if the emulated result is wrong."""
    (intrinsic,) = mfmadsl.load(SPEC)
    section(f"1. The instruction, as written: {SPEC.name}", SPEC.read_text())

    module = module_text(intrinsic)
    section("2. The Python module that it compiles to", excerpt(module, "_a = mfma.Operand", 44))

    gemm = mfmadsl.Gemm(intrinsic, ARCH, M, N, K, b_transposed=True)
    schedule = gemm.schedule()
    section(
        "3. The GEMM schedule over its TensorIntrins, as a trace of TVM's primitives",
        narrow(excerpt(str(schedule.trace), "sch.blockize", 14)),
    )

    kernel = mfmadsl.build(schedule, ARCH)
    section(f"4. Its {ARCH} machine code", excerpt(kernel.assembly, "v_mfma", 14))
    section(
        "   and what it takes",
        f"grid {kernel.grid}, block {kernel.block}, {kernel.lds_bytes} bytes of LDS, "
        f"{kernel.registers.vector} vector registers, {kernel.registers.spilled} spilled",
    )

    a, b, c = gemm.operands()
    run = mfmadsl.emulate(kernel, [a, b, c])
    result = gemm.compare(a, b, c)
    mfmas = sum(n for name, n in run.instructions.items() if name.startswith("v_mfma"))
    section(
        "5. That very machine code, run without a GPU",
        f"{run.waves} waves, {run.total} instructions, {mfmas} of them MFMA\n"
        f"C[0, :4] = {np.array2string(c[0, :4], precision=3)}\n"
        f"largest error against NumPy in float64: {result.error:.1e} "
        f"(tolerance {result.tolerance:.1e}): {'agrees' if result.agrees else 'DIFFERS'}",
    )
    return 0 if result.agrees else 1


if __name__ == "__main__":
    sys.exit(main())

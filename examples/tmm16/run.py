"""An accelerator that is no matrix core: from its description to a matmul that runs on the CPU.

    python examples/tmm16/run.py

The C micro-kernel is compiled by the clang that the pip package `ziglang` carries, and linked into
the module as LLVM IR: no compiler of the system is asked for.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import tvm
from tvm.s_tir import Schedule
from tvm.target import Target
from tvm.target.codegen import llvm_get_system_cpu

from mfmadsl.language import load_entries
from mfmadsl.schedule import load_intrinsic, matmul

HERE = Path(__file__).parent
N = 1024


def micro_kernel() -> str:
    """The C function as LLVM IR that is still to be optimized, together with its caller."""
    if find_spec("ziglang") is None:
        sys.exit("this example compiles C with ziglang: pip install 'mfmadsl[linker]'")
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "tmm16.ll")
        options = ["-S", "-emit-llvm", "-O2", "-Xclang", "-disable-llvm-passes", "-ffast-math"]
        compiler = [sys.executable, "-m", "ziglang", "cc", "-fno-sanitize=all", "-g0", *options]
        command = [*compiler, "-o", str(output), str(HERE / "tmm16.c")]
        subprocess.run(command, check=True, capture_output=True)
        return output.read_text()


def tensorized(n: int) -> Schedule:
    """C = A x B^T with tiles of A and B brought to the unit, and its accumulator written back."""
    (description,) = load_entries(HERE / "tmm16.mfma").accelerators
    unit = load_intrinsic(description)
    sch = Schedule(matmul(n, n, n, unit.A_DTYPE, unit.OUT_DTYPE, b_transposed=True))
    block = sch.get_sblock("C")
    i, j, k = sch.get_loops(block)
    i0, i1 = sch.split(i, [None, unit.M])
    j0, j1 = sch.split(j, [None, unit.N])
    k0, k1 = sch.split(k, [None, unit.K])
    sch.reorder(i0, j0, k0, i1, j1, k1)
    outer = sch.blockize(i1)
    for operand, scope in enumerate((unit.A_SCOPE, unit.B_SCOPE)):
        sch.compute_at(sch.cache_read(outer, operand, scope), k0)
    sch.reverse_compute_at(sch.cache_write(outer, 0, unit.C_SCOPE), j0)
    sch.decompose_reduction(outer, k0)
    sch.tensorize(sch.get_loops(block)[-3], unit.COMPUTE)
    sch.annotate(i0, "pragma_import_llvm", micro_kernel())
    return sch


def main() -> int:
    """Build, run, compare with NumPy; 1 if they differ."""
    schedule = tensorized(N)
    target = Target({"kind": "llvm", "mcpu": llvm_get_system_cpu()})
    module = tvm.compile(schedule.mod, target=target)
    generator = np.random.default_rng(0)
    a, b = (generator.standard_normal((N, N)).astype(np.float32) for _ in "ab")
    c = tvm.runtime.tensor(np.zeros((N, N), np.float32))
    arguments = tvm.runtime.tensor(a), tvm.runtime.tensor(b), c
    start = time.perf_counter()
    module["main"](*arguments)
    duration = time.perf_counter() - start
    error = np.abs(c.numpy() - a.astype(np.float64) @ b.T.astype(np.float64))
    bound = np.abs(a) @ np.abs(b.T) * (N * 2.0**-24)
    agrees = bool((error <= bound).all())
    print(f"{N}x{N}x{N} in {duration:.2f} s, {2 * N**3 / duration / 1e9:.1f} GFLOP/s")
    print(f"largest error against NumPy {error.max():.1e}: {'agrees' if agrees else 'DIFFERS'}")
    return 0 if agrees else 1


if __name__ == "__main__":
    sys.exit(main())

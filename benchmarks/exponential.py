"""The polynomial exp beside float64, for all 2^32 floats, and beside NumPy's in time.

    python -m benchmarks.exponential [--mcpu x86-64]

An exact infinity counts as 2^128, the number that would come next, and so does a result of
infinity where the exact value is finite.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import tvm
from tvm import te
from tvm.s_tir import Schedule
from tvm.target import Target
from tvm.target.codegen import llvm_get_system_cpu

from mfmadsl.passes.cpu.exponential import BOUND, expand_exponentials

Floats: TypeAlias = npt.NDArray[np.float32]
Exp: TypeAlias = Callable[[Floats], Floats]
BLOCK = 1 << 22
TIMED = 1 << 20
RUNS = 200


@dataclass(frozen=True)
class Worst:
    """The largest error in units in the last place, and the number that has it."""

    error: float
    x: float


def compiled_exp(elements: int, mcpu: str, lanes: int = 16) -> tuple[Any, Exp]:
    """What TVM makes of exp with the pass, for so many floats; and a call with NumPy's arrays."""
    x = te.placeholder((elements,), name="x", dtype="float32")
    y = te.compute((elements,), lambda i: te.exp(x[i]), name="y")
    sch = Schedule(te.create_prim_func([x, y]))
    _, lane = sch.split(sch.get_loops(sch.get_sblock("y"))[0], [None, lanes])
    sch.vectorize(lane)
    target = Target({"kind": "llvm", "mcpu": mcpu})
    executable = tvm.compile(expand_exponentials()(sch.mod), target=target)
    result = tvm.runtime.empty((elements,), "float32")

    def exp(values: Floats) -> Floats:
        executable["main"](tvm.runtime.tensor(values), result)
        found: Floats = result.numpy()
        return found

    return executable, exp


def errors(x: Floats, y: Floats) -> npt.NDArray[np.float64]:
    """|y - e^x| in units in the last place of e^x, subnormal ones included.

    A NaN of a NaN is right; of a number, or for a NaN none, it is infinitely wrong.
    """
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        exact = np.minimum(np.exp(x.astype(np.float64)), 2.0**128)
        unit = np.ldexp(1.0, np.clip(np.frexp(exact)[1] - 1, -126, 127) - 23)
        error = np.abs(np.minimum(y.astype(np.float64), 2.0**128) - exact) / unit
    right_nan = np.isnan(x) & np.isnan(y)
    return np.where(right_nan, 0, np.where(np.isnan(error), np.inf, error))


def worst(exp: Exp, x: Floats) -> Worst:
    found = errors(x, exp(x))
    at = int(np.argmax(found))
    return Worst(float(found[at]), float(x[at]))


def exhaustive(mcpu: str) -> Worst:
    """The worst of all floats."""
    _, exp = compiled_exp(BLOCK, mcpu)
    blocks = (
        np.arange(start, start + BLOCK, dtype=np.uint32).view(np.float32)
        for start in range(0, 1 << 32, BLOCK)
    )
    return max((worst(exp, x) for x in blocks), key=lambda found: found.error)


def _milliseconds(call: Callable[[], object]) -> float:
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times) * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--mcpu", default=llvm_get_system_cpu(), help="for LLVM; this CPU")
    mcpu = parser.parse_args().mcpu
    found = exhaustive(mcpu)
    print(f"worst of all 2^32 floats  {found.error:.4f} ulp, of x = {found.x!r} (bound {BOUND})")
    executable, _ = compiled_exp(TIMED, mcpu)
    numbers = np.linspace(-87, 88, TIMED, dtype=np.float32)
    x, y = tvm.runtime.tensor(numbers), tvm.runtime.empty((TIMED,), "float32")
    out = np.empty_like(numbers)
    ours = _milliseconds(lambda: executable["main"](x, y))
    numpys = _milliseconds(lambda: np.exp(numbers, out=out))
    print(f"2^20 floats               {ours:.3f} ms, NumPy's exp {numpys:.3f} ms ({mcpu})")


if __name__ == "__main__":
    main()

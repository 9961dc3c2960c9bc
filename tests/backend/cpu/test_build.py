"""`build_for_cpu`: what is refused, what LLVM refuses, and that the same is made each time."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from typing import Any

import numpy as np
import pytest
import tvm
from tvm import s_tir, te, tirx
from tvm.target import Target

import mfmadsl
from mfmadsl import ArgumentTypeError, CodegenError, LoweringError
from mfmadsl.backend.cpu.build import _runs_here
from mfmadsl.host.cpu import _TUNING, cpu_target, host_cpu
from mfmadsl.model import CPUS, Cpu
from mfmadsl.model.cpu import cpu
from tests.schedule.cpu.workloads import SSE2, Matmul

N = 24


def element_wise(function: Any, n: Any = N) -> tirx.PrimFunc:
    a = te.placeholder((n,), "float32", name="A")
    return te.create_prim_func([a, te.compute((n,), lambda i: function(a[i]), name="C")])


def ran(function: tirx.PrimFunc) -> np.ndarray[Any, Any]:
    a, c = np.arange(N, dtype=np.float32), np.full(N, 77, np.float32)
    mfmadsl.build_for_cpu(function)(a, c)
    return c


def test_a_function_a_module_and_a_schedule_are_one() -> None:
    function = element_wise(lambda x: x + 1.0)
    forms: list[Any] = [function, tvm.IRModule({"main": function}), s_tir.Schedule(function)]
    kernels = [mfmadsl.build_for_cpu(form) for form in forms]
    texts = {(kernel.llvm_ir, kernel.assembly) for kernel in kernels}
    assert len(texts) == 1
    np.testing.assert_array_equal(ran(function), np.arange(N) + 1)


def test_a_function_keeps_its_name() -> None:
    function = element_wise(lambda x: x + 1.0).with_attr("global_symbol", "one_more")
    assert mfmadsl.build_for_cpu(function).symbol == "one_more"
    np.testing.assert_array_equal(ran(function), np.arange(N) + 1)


def test_what_is_no_function() -> None:
    with pytest.raises(ArgumentTypeError, match="mod: is a PrimFunc or an IRModule of PrimFuncs"):
        mfmadsl.build_for_cpu(3)  # type: ignore[arg-type]
    with pytest.raises(LoweringError, match="mod: no function `main`, but none"):
        mfmadsl.build_for_cpu(tvm.IRModule({}))
    with pytest.raises(ArgumentTypeError, match=r"cpu: is a Cpu, as .*, not 'haswell'"):
        mfmadsl.build_for_cpu(element_wise(lambda x: x), "haswell")  # type: ignore[arg-type]


def test_an_extent_that_is_a_symbol() -> None:
    with pytest.raises(LoweringError, match="mod: extent `n` is a symbol: give it a number"):
        mfmadsl.build_for_cpu(element_wise(lambda x: x, te.var("n")))


def test_a_call_of_what_is_not_there_is_refused_and_not_looked_for() -> None:
    missing = element_wise(lambda x: tirx.call_extern("float32", "no_such_function", x))
    with pytest.raises(LoweringError) as error:
        mfmadsl.build_for_cpu(missing)
    assert str(error.value) == (
        "mod: calls `no_such_function`, which no library of this process has: load it with"
        " ctypes.CDLL(..., mode=ctypes.RTLD_GLOBAL) first"
    )
    pure = element_wise(lambda x: tirx.call_pure_extern("float32", "no_such_function", x))
    with pytest.raises(LoweringError, match="calls `no_such_function`"):
        mfmadsl.build_for_cpu(pure)


def test_a_call_of_what_is_there() -> None:
    there = element_wise(lambda x: tirx.call_pure_extern("float32", "fabsf", 0 - x))
    np.testing.assert_array_equal(ran(there), np.arange(N))


def test_llvm_ending_its_process_is_an_exception_of_ours() -> None:
    """Instructions that the CPU lacks: LLVM cannot select them."""
    vnni = cpu("cascadelake")
    schedule = mfmadsl.cpu_gemm_schedule(Matmul(8, 16, 8, "uint8").function(), cpu=vnni)
    with pytest.raises(CodegenError, match="haswell: LLVM ERROR: "):
        mfmadsl.build_for_cpu(schedule, cpu("haswell"))
    assert "vpdpbusd" in mfmadsl.build_for_cpu(schedule, vnni).assembly


def test_vectors_that_the_cpu_lacks_become_several() -> None:
    """LLVM cuts an FMA of 16 in four; without FMA it calls a function of the C library."""
    schedule = mfmadsl.cpu_gemm_schedule(Matmul(5, 33, 7).function(), "avx512_f32_4x16",
                                         cpu("x86-64-v4"))  # fmt: skip
    kernel = mfmadsl.build_for_cpu(schedule, cpu("haswell"))
    assert "zmm" not in kernel.assembly
    if kernel.run is not None:
        workload = Matmul(5, 33, 7)
        a, b, c = workload.operands()
        kernel(a, b, c)
        workload.assert_right(a, b, c)


def test_this_machine_runs_code_for_itself_and_for_the_most_modest() -> None:
    assert _runs_here(cpu_target())
    assert _runs_here(cpu_target(SSE2))


def test_a_machine_runs_what_it_has_beyond_the_name_it_is_called_by(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A virtual machine that is called x86-64 and has GFNI, or not."""
    target = Target({"kind": "llvm", "mcpu": "x86-64", "mattr": ["+gfni"]})
    monkeypatch.setattr("mfmadsl.backend.cpu.build.cpu_target", lambda: cpu_target(SSE2))
    for there in (True, False):
        monkeypatch.setattr("mfmadsl.backend.cpu.build.host_features", partial(dict, gfni=there))
        assert _runs_here(target) == there


@pytest.mark.parametrize("known", CPUS.values(), ids=lambda c: c.name)
def test_what_a_cpu_has_decides_what_it_runs(known: Cpu) -> None:
    """How fast something is decides nothing, a feature that is missing does."""
    if host_cpu().missing(known.features):
        assert not _runs_here(cpu_target(known))
    elif known.name in ("x86-64", "x86-64-v3", "x86-64-v4", "haswell"):
        assert _runs_here(cpu_target(known))


def test_what_is_said_of_speed_is_no_feature_of_the_language() -> None:
    assert not any(f.startswith(_TUNING) for known in CPUS.values() for f in known.features)


def test_the_outputs_are_what_is_written() -> None:
    a = te.placeholder((N,), "float32", name="A")
    one = te.compute((N,), lambda i: a[i] + 1.0, name="one")
    two = te.compute((N,), lambda i: a[i] * 2.0, name="two")
    kernel = mfmadsl.build_for_cpu(te.create_prim_func([one, a, two]))
    assert kernel.outputs == {"one", "two"}
    x, y, z = np.arange(N, dtype=np.float32), np.zeros(N, np.float32), np.zeros(N, np.float32)
    kernel(y, x, z)
    np.testing.assert_array_equal(y, x + 1)
    np.testing.assert_array_equal(z, x * 2)


_PROGRAM = """
import hashlib
import mfmadsl
from tests.schedule.cpu.workloads import Matmul
for workload in (Matmul(65, 70, 33), Matmul(9, 70, 33, "float64", batches=2)):
    kernel = mfmadsl.build_for_cpu(mfmadsl.cpu_gemm_schedule(workload.function(), threads=2))
    print(hashlib.sha256(kernel.assembly.encode()).hexdigest())
"""


@pytest.mark.thorough
def test_each_process_makes_the_same_code() -> None:
    def made(seed: str) -> str:
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", _PROGRAM], env=environment, capture_output=True, text=True,
            check=True,
        )  # fmt: skip
        return done.stdout

    first, second = made("1"), made("2")
    assert len(set(first.split())) == 2
    assert first == second

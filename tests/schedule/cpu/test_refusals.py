"""What is not understood is refused, by its name and with a reason."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tvm import s_tir, te, tirx
from tvm.script import from_source

import mfmadsl
from mfmadsl import ArgumentError, ArgumentTypeError, CpuTiling, ScheduleError
from mfmadsl.host.cpu import host_cpu
from mfmadsl.language import find_microkernel
from mfmadsl.model import Cpu
from tests.schedule.cpu.workloads import F32, HASWELL, SSE2, Matmul, tiling_of

SMALL = Matmul(8, 16, 4)
_RELAX = """
@I.ir_module
class Program:
    @R.function
    def main(x: R.Tensor((8, 8), "float32")):
        return R.matmul(x, x)
"""


def typed(a: str, b: str, out: str, m: Any = 8, k: int = 4) -> Any:
    x, y = te.placeholder((m, k), a, name="A"), te.placeholder((16, k), b, name="B")
    r = te.reduce_axis((0, k), name="k")
    return te.create_prim_func([x, y, te.compute(
        (m, 16), lambda i, j: te.sum(x[i, r].astype(out) * y[j, r].astype(out), axis=[r]), name="C",
    )])  # fmt: skip


@pytest.mark.parametrize(
    ("a", "b", "out"),
    [("float16", "float16", "float32"), ("int32", "int32", "int32"),
     ("float32", "float64", "float64"), ("uint8", "int8", "int16"),
     ("float16", "float16", "float16"), ("bfloat16", "bfloat16", "float32")],
)  # fmt: skip
def test_types_that_no_microkernel_multiplies(a: str, b: str, out: str) -> None:
    with pytest.raises(ScheduleError) as error:
        mfmadsl.cpu_gemm_schedule(typed(a, b, out), cpu=HASWELL)
    summed = "float32" if out == "float16" else out
    message = str(error.value)
    assert message.startswith(f"workload: no micro-kernel of the CPU haswell multiplies {a} and")
    assert f"into {summed}" in message
    there = "there are those of float32 and float32 into float32, of float64 and float64 into float"
    needs = "they need amx_bf16; it has sse2, avx, avx2, fma"
    assert (needs if a == "bfloat16" else there) in message


@pytest.mark.parametrize("a", ["uint8", "int8"])
def test_types_of_which_this_cpu_lacks_the_instructions(a: str) -> None:
    """A product of int8 alone is one of uint8 and int8."""
    with pytest.raises(ScheduleError) as error:
        mfmadsl.cpu_gemm_schedule(typed(a, "int8", "int32"), cpu=HASWELL)
    assert str(error.value) == (
        "workload: no micro-kernel of the CPU haswell multiplies uint8 and int8 into int32: they"
        " need avx512vnni, or avx512vnni and avx512vl, or avxvnni; it has sse2, avx, avx2, fma"
    )


def test_a_microkernel_of_other_types() -> None:
    with pytest.raises(ScheduleError) as error:
        mfmadsl.cpu_gemm_schedule(SMALL.function(), "avx2_f64_6x8", HASWELL)
    assert str(error.value) == (
        "workload: avx2_f64_6x8 multiplies float64 and float64 into float64, not float32 and"
        " float32 into float32"
    )


@pytest.mark.parametrize("given", ["avx512_f32_8x32", find_microkernel("avx512_f32_8x32")])
def test_a_microkernel_of_which_the_cpu_lacks_a_feature(given: Any) -> None:
    message = (
        "avx512_f32_8x32 needs avx512f, which the CPU haswell lacks: it has sse2, avx, avx2, fma"
    )
    with pytest.raises(ArgumentError) as error:
        mfmadsl.cpu_gemm_schedule(SMALL.function(), given, HASWELL)
    assert str(error.value) == message
    with pytest.raises(ArgumentError) as error:
        mfmadsl.cpu_gemm_schedule(SMALL.function(), None, HASWELL, tiling_of("avx512_f32_8x32"))
    assert str(error.value) == message


def test_a_microkernel_that_is_none() -> None:
    with pytest.raises(ArgumentError, match="avx3_f32_1x1"):
        mfmadsl.cpu_gemm_schedule(SMALL.function(), "avx3_f32_1x1")
    with pytest.raises(ArgumentTypeError, match="microkernel: is a Microkernel"):
        mfmadsl.cpu_gemm_schedule(SMALL.function(), 8)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("tiling", "error", "message"),
    [
        (tiling_of(F32, rows=0), ScheduleError, "tiling: rows=0, but a chunk has one tile or more"),
        (tiling_of(F32, columns=-2), ScheduleError, "tiling: columns=-2, but a chunk has one tile"),
        (tiling_of(F32, rows=1.5), ArgumentTypeError, r"tiling.rows: is an integer, not 1\.5"),  # type: ignore[arg-type]
        (tiling_of(F32, pack_a=1), ArgumentTypeError, "tiling.pack_a: is True or False, not 1"),  # type: ignore[arg-type]
        (tiling_of(F32, parallel=None), ArgumentTypeError, "tiling.parallel: is True or False"),  # type: ignore[arg-type]
        (tiling_of(3), ArgumentTypeError, "tiling.microkernel: is the name of a micro-kernel"),  # type: ignore[arg-type]
        (tiling_of("sse2_f32_9x9"), ArgumentError, "sse2_f32_9x9"),
        (tiling_of("sse2_f64_4x4"), ScheduleError, "sse2_f64_4x4 multiplies float64 and float64"),
        ({"rows": 2}, ArgumentTypeError, "tiling: is a CpuTiling, not dict"),
    ],
    ids=str,
)  # fmt: skip
def test_tilings(tiling: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        mfmadsl.cpu_gemm_schedule(SMALL.function(), tiling=tiling)


def test_a_tiling_of_another_microkernel_than_the_one_that_is_asked_for() -> None:
    with pytest.raises(ScheduleError) as error:
        mfmadsl.cpu_gemm_schedule(SMALL.function(), "sse2_f32_4x8", None, tiling_of("sse2_f32_6x8"))
    assert str(error.value) == "tiling: it is for sse2_f32_6x8, but sse2_f32_4x8 is asked for"


def test_threads() -> None:
    for threads in (0, -1):
        with pytest.raises(ArgumentError, match=f"threads: {threads}, but there is one or more"):
            mfmadsl.cpu_gemm_schedule(SMALL.function(), threads=threads)
        with pytest.raises(ArgumentError, match=f"threads: {threads}, but there is one or more"):
            mfmadsl.cpu_gemm_tiling(SMALL.function(), threads=threads)
    with pytest.raises(ArgumentTypeError, match="threads: is an integer, not True"):
        mfmadsl.cpu_gemm_schedule(SMALL.function(), threads=True)


def test_a_cpu_that_is_none() -> None:
    with pytest.raises(ArgumentTypeError, match=r"cpu: is a Cpu, as `mfmadsl.model.cpu` gives it"):
        mfmadsl.cpu_gemm_schedule(SMALL.function(), cpu="haswell")  # type: ignore[arg-type]
    with pytest.raises(ScheduleError, match=r"no micro-kernel of the CPU generic multiplies"):
        mfmadsl.cpu_gemm_schedule(SMALL.function(), cpu=Cpu("generic", ()))


def test_extents_that_are_symbols() -> None:
    m = te.var("m")
    with pytest.raises(
        ScheduleError, match="an extent is a symbol, but a schedule for a CPU is of"
    ):
        mfmadsl.cpu_gemm_schedule(typed("float32", "float32", "float32", m))
    with pytest.raises(ScheduleError, match="an extent is a symbol"):
        mfmadsl.cpu_gemm_tiling(typed("float32", "float32", "float32", m))


@pytest.mark.parametrize("empty", ["m", "k"])
def test_extents_of_zero(empty: str) -> None:
    extents = {"m": 8, "k": 4, empty: 0}
    function = typed("float32", "float32", "float32", extents["m"], extents["k"])
    for made in (mfmadsl.cpu_gemm_schedule, mfmadsl.cpu_gemm_tiling):
        with pytest.raises(ScheduleError, match="an extent is 0"):
            made(function)


def test_what_is_no_product() -> None:
    a = te.placeholder((8, 8), "float32", name="A")
    r = te.reduce_axis((0, 8), name="k")
    doubled = te.compute((8, 8), lambda i, j: a[i, j] * 2.0, name="doubled")
    most = te.compute((8,), lambda i: te.max(a[i, r], axis=[r]), name="most")
    total = te.compute((8,), lambda i: te.sum(a[i, r], axis=[r]), name="total")
    for result, message in (
        (doubled, r"one block must be a reduction, the matrix product; there are: none"),
        (most, "block `most` does not start its sum from zero"),
        (total, "block `total` adds `A.*`, which is no product of two elements"),
    ):
        with pytest.raises(ScheduleError, match=message):
            mfmadsl.cpu_gemm_schedule(te.create_prim_func([a, result]))


def test_a_factor_that_sums() -> None:
    a, b = (te.placeholder((8, 8, 4), "float32", name=n) for n in "AB")
    q, r = te.reduce_axis((0, 4), name="q"), te.reduce_axis((0, 8), name="k")
    total = te.compute((8, 8), lambda i, k: te.sum(a[i, k, q], axis=[q]), name="total")
    c = te.compute((8, 8), lambda i, j: te.sum(total[i, r] * b[j, r, 0], axis=[r]), name="C")
    with pytest.raises(ScheduleError, match=r"one block must be a reduction.*`total`, `C`"):
        mfmadsl.cpu_gemm_schedule(te.create_prim_func([a, b, c]))
    sch = s_tir.Schedule(te.create_prim_func([a, b, c]))
    with pytest.raises(ScheduleError, match="block `total` sums, and only an element-wise block"):
        mfmadsl.schedule_cpu_gemm(sch, sch.get_sblock("C"))


def test_a_module_of_relax() -> None:
    program = from_source(_RELAX)
    with pytest.raises(ScheduleError, match="workload: is a module of Relax"):
        mfmadsl.cpu_gemm_schedule(program)


def test_what_is_no_function() -> None:
    with pytest.raises(ArgumentTypeError, match="workload: is a PrimFunc or an IRModule"):
        mfmadsl.cpu_gemm_schedule(np.zeros((8, 8)))  # type: ignore[arg-type]
    sch = s_tir.Schedule(SMALL.function())
    with pytest.raises(ArgumentTypeError, match="block: is a block of the schedule"):
        mfmadsl.schedule_cpu_gemm(sch, "C")  # type: ignore[arg-type]
    with pytest.raises(ArgumentTypeError, match="sch: is a Schedule"):
        mfmadsl.schedule_cpu_gemm(SMALL.function(), "C")  # type: ignore[arg-type]


def test_a_schedule_of_ones_own_that_has_bytes_the_wrong_way_round() -> None:
    """Only `cpu_gemm_schedule` may turn a product around; what it takes is said."""
    function = typed("int8", "uint8", "int32")
    vnni = Cpu("cascadelake", ("avx512f", "avx512vnni", "avx512vl"))
    sch = s_tir.Schedule(function)
    with pytest.raises(
        ScheduleError, match=r"int8 and uint8 into int32.*of uint8 and int8 into int"
    ):
        mfmadsl.schedule_cpu_gemm(sch, sch.get_sblock("C"), cpu=vnni)
    assert mfmadsl.cpu_gemm_tiling(function, cpu=vnni).microkernel.startswith("vnni")


def test_an_argument_with_strides_of_its_own() -> None:
    a = tirx.decl_buffer((8, 4), "float32", "A", strides=[8, 1])
    function = SMALL.function()
    with pytest.raises(ScheduleError, match="argument `A` has strides or an offset of its own"):
        mfmadsl.cpu_gemm_schedule(_with_argument(function, a))


def _with_argument(function: tirx.PrimFunc, buffer: tirx.Buffer) -> tirx.PrimFunc:
    """The function with another buffer as its first argument."""
    text = function.script()
    changed = text.replace('A: T.Buffer((T.int64(8), T.int64(4)), "float32")',
                           'A: T.Buffer((8, 4), "float32", strides=(8, 1))')  # fmt: skip
    changed = changed.replace('A: T.Buffer((8, 4), "float32")',
                              'A: T.Buffer((8, 4), "float32", strides=(8, 1))')  # fmt: skip
    assert changed != text
    found = from_source(changed)
    assert isinstance(found, tirx.PrimFunc)
    return found


def test_the_default_is_one_that_the_cpu_has() -> None:
    function = SMALL.function()
    for cpu in (SSE2, HASWELL, host_cpu()):
        tiling = mfmadsl.cpu_gemm_tiling(function, cpu=cpu)
        assert isinstance(tiling, CpuTiling)
        assert not cpu.missing(find_microkernel(tiling.microkernel).features)
        mfmadsl.cpu_gemm_schedule(function, cpu=cpu, tiling=tiling)

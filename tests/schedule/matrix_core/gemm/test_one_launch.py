"""K split among workgroups, of which the last one of a tile adds up: beside NumPy, sanitized."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tvm import te, tirx
from tvm.s_tir import Schedule

import mfmadsl
from mfmadsl.passes import LoweringError
from mfmadsl.passes.kernel.last_workgroup import LAST_WORKGROUP
from mfmadsl.schedule import ScheduleError, Tiling, gemm_schedule
from tests.schedule.matrix_core.gemm.test_epilogue import element_wise, f32
from tests.schedule.matrix_core.gemm.workloads import FP8, Workload, with_epilogue

SMALL = Tiling(
    (16, 32), 64, (1, 2), "mfma_f32_16x16x16_f16", 2, split_k=3, one_launch=True
)  # fmt: skip
EACH_CHIP = pytest.mark.parametrize("arch", ["gfx908", "gfx90a", "gfx942", "gfx950"])


def build(workload: Any, tiling: Tiling = SMALL, arch: str = "gfx942") -> mfmadsl.Kernel:
    kernel = mfmadsl.build(gemm_schedule(workload, arch=arch, tiling=tiling), arch)
    assert kernel.next is None
    return kernel


def check(kernel: mfmadsl.Kernel, workload: Workload) -> None:
    """In lockstep and in a random order the result is the same, and that of NumPy."""
    a, b, c = workload.operands()
    mfmadsl.sanitize(kernel, [a, b, c], order="random", seed=3)
    assert workload.error(a, b, c) <= 1
    again = np.zeros_like(c)
    mfmadsl.emulate(kernel, [a, b, again])
    np.testing.assert_array_equal(c, again)


@EACH_CHIP
def test_parts_of_dies(arch: str) -> None:
    workload = Workload(17, 33, 200)
    check(build(workload.function(), arch=arch), workload)


@pytest.mark.parametrize(
    ("kind", "instruction", "k_step"),
    [
        ("bfloat16", "mfma_f32_16x16x16_bf16", 64),
        ("int8", "mfma_i32_16x16x32_i8", 128),
        (FP8["gfx942"], "mfma_f32_16x16x32_fp8_fp8", 128),
        ("float64", "mfma_f64_16x16x4_f64", 16),
    ],
)
def test_types(kind: str, instruction: str, k_step: int) -> None:
    workload = Workload(17, 33, 3 * k_step + 5, kind, kind)
    tiling = replace(SMALL, instruction=instruction, k_step=k_step, k_pack=1)
    check(build(workload.function(), tiling), workload)


@pytest.mark.parametrize(
    ("m", "n", "change"),
    [
        (1, 64, {}),
        (1, 16, {}),  # fewer elements of a tile than threads
        (16, 40, {"k_waves": 2, "k_step": 128}),
        (70, 65, {"block": (32, 64), "waves": (2, 2), "split_k": 2}),
        (70, 45, {"block": (64, 64), "waves": (2, 2), "split_k": 2}),  # a thread takes several rows
        (9, 64, {"block": (64, 64), "waves": (2, 2), "split_k": 2}),
        (32, 32, {"k_step": 32, "k_pack": 1, "split_k": 17}),  # more parts than are unrolled
    ],
)
def test_tiles_and_edges(m: int, n: int, change: dict[str, Any]) -> None:
    workload = Workload(m, n, 520)
    check(build(workload.function(), replace(SMALL, **change)), workload)


def test_the_parts_of_several_rows_are_on_their_way_at_once() -> None:
    """A loop that waits for each of them takes a turn of the memory for each."""
    tiling = replace(SMALL, block=(64, 64), waves=(2, 2), split_k=2)
    lines = build(Workload(64, 64, 520).function(), tiling).assembly.splitlines()
    last = [line.split()[0] for line in lines[_place(lines, "buffer_inv") :] if line.strip()]
    loads = [n for n, name in enumerate(last) if name == "global_load_dwordx4"]
    assert len(loads) == 64 * 64 * 2 // (256 * 4)
    assert not any(name.startswith(("s_waitcnt", "s_cbranch")) for name in last[: loads[-1]])


def _place(lines: list[str], name: str) -> int:
    return next(n for n, line in enumerate(lines) if line.split()[:1] == [name])


def test_each_part_and_each_place_counts_once() -> None:
    """A sum names the parts that are in it, and the row and the column that it is of."""
    m, n, k = 20, 40, 3 * 64
    a = np.zeros((m, k), "float16")
    b = np.zeros((n, k), "float16")
    for part in range(3):  # a power of 32 for each: of row, column and part
        a[:, 64 * part] = 32.0**part
        b[:, 64 * part] = 1
    a[:, 1], b[:, 1] = np.arange(m), 1 / 64
    a[:, 65], b[:, 65] = 1, np.arange(n) / 4096
    c = np.zeros((m, n), "float32")
    mfmadsl.sanitize(build(Workload(m, n, k).function()), [a, b, c])
    rows, columns = np.arange(m)[:, None] / 64, np.arange(n)[None] / 4096
    np.testing.assert_array_equal(c, (1 + 32 + 32**2 + rows + columns).astype("float32"))


def test_what_follows_is_computed_once() -> None:
    """In float16, of a bias for each column and a residual that the result takes the place of."""
    shape = Workload(20, 40, 200)
    stage = element_wise(
        lambda c, i, j, bias, more: (
            tirx.max(c + bias[j].astype("float32"), f32(0)) + more[i, j]
        ).astype("float16")
    )
    extra = {"bias": ((40,), "float16"), "more": ((20, 40), "float32")}
    kernel = build(with_epilogue(shape, stage, extra))
    a, b, _ = shape.operands()
    bias, more = np.arange(40, dtype="float16"), np.arange(800, dtype="float32").reshape(20, 40)
    result = np.zeros((20, 40), "float16")
    mfmadsl.sanitize(kernel, [a, b, bias, more, result], order="random", seed=1)
    wanted = np.maximum(a.astype("float64") @ b.astype("float64").T + bias, 0) + more
    np.testing.assert_allclose(result, wanted, rtol=2.0**-10, atol=2.0**-10)


def test_launches_of_any_m_leave_zeros() -> None:
    """The same memory serves one launch after another, also of other shapes."""
    shape = Workload(0, 40, 200)
    kernel = build(shape.function(te.var("m")))
    counts = np.zeros(64, "int32")
    for m in (33, 1, 70):
        workload = replace(shape, m=m)
        a, b, c = workload.operands()
        (launch,) = kernel.launches([a, b, c])
        (place,) = launch.zeros
        assert launch.args[place].shape == (-(-m // 16) * 2,)
        assert not launch.args[place].any()
        given = [*launch.args]
        given[place] = counts
        mfmadsl.emulate(launch, given, order="random", seed=m)
        assert workload.error(a, b, c) <= 1
        assert not counts.any()


@pytest.mark.parametrize(
    ("arch", "pattern", "said"),
    [
        ("gfx942", r"\tbuffer_wbl2.*", "it needs `buffer_wbl2 sc1`"),
        ("gfx942", r"\tbuffer_inv .*", "it needs `buffer_inv sc1`"),
        ("gfx90a", r"\tbuffer_wbinvl1_vol.*", "it needs `buffer_wbinvl1_vol`"),
        ("gfx942", r"(?<=buffer_wbl2 sc1\n)\ts_waitcnt vmcnt\(0\)", "it needs `s_waitcnt vmcnt"),
        (
            "gfx90a",
            r"\ts_waitcnt vmcnt\(0\)(?=\n\ts_barrier\n\ts_and_saveexec)",
            "it needs `s_waitcnt vmcnt",
        ),
    ],
)
def test_without_a_release_or_an_acquire_it_is_a_race(arch: str, pattern: str, said: str) -> None:
    workload = Workload(16, 32, 200)
    kernel = build(workload.function(), arch=arch)
    text, count = re.subn(pattern, "\ts_nop 0", kernel.assembly)
    assert count
    with pytest.raises(mfmadsl.EmulationError, match=said):
        mfmadsl.sanitize(replace(kernel, assembly=text), list(workload.operands()))


def test_a_count_that_is_one_short_is_found() -> None:
    """Whoever adds up too early reads what nobody has written, or what is written meanwhile."""
    workload = Workload(16, 32, 300)
    kernel = build(workload.function())
    text, count = re.subn(r"(s_cmp_lg_u32 s\d+, )2\b", r"\g<1>1", kernel.assembly)
    assert count == 1
    with pytest.raises(mfmadsl.EmulationError, match=r"nobody wrote|nothing between"):
        mfmadsl.sanitize(replace(kernel, assembly=text), list(workload.operands()))


def test_weights_of_few_bits() -> None:
    workload = mfmadsl.quantised_matmul(3, 64, 256, "awq")
    tiling = replace(mfmadsl.gemm_tiling(workload, arch="gfx942"), split_k=2, one_launch=True)
    tiling = replace(tiling, block=(16, 64), waves=(1, 2), k_step=128, k_waves=1)
    kernel = build(workload, tiling)
    generator = np.random.default_rng(0)
    args = []
    for parameter in kernel.arguments:
        if parameter.dtype == "float16":
            args.append(generator.standard_normal(parameter.shape).astype("float16"))
        else:
            words = generator.integers(-(2**31), 2**31, parameter.shape)
            args.append(words.astype(parameter.dtype))
    whole = mfmadsl.build(gemm_schedule(workload, tiling=replace(tiling, one_launch=False)))
    assert whole.next is not None
    mfmadsl.emulate(whole, args)
    wanted = args[-1].copy()
    args[-1][:] = 0
    mfmadsl.sanitize(kernel, args)
    np.testing.assert_array_equal(args[-1], wanted)
    assert np.abs(wanted.astype("float64")).max() > 1


def mirrored(c: Any) -> Any:
    """What needs another tile of C than the one that it is a tile of."""
    return te.compute(c.shape, lambda i, j: c[i, c.shape[1] - 1 - j], name="D")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"split_k": 1}, "one_launch: split_k=1 has no parts to add up"),
        ({"one_launch": 1}, "tiling: one_launch"),
    ],
)
def test_tilings_that_are_none(change: dict[str, Any], said: str) -> None:
    with pytest.raises((ScheduleError, mfmadsl.ArgumentTypeError), match=said):
        gemm_schedule(Workload(16, 32, 256).function(), tiling=replace(SMALL, **change))


def test_what_needs_all_of_c_takes_a_second_launch() -> None:
    workload = with_epilogue(Workload(16, 64, 4096), mirrored, {})
    with pytest.raises(ScheduleError, match="reads C at other places than it writes"):
        gemm_schedule(workload, tiling=SMALL)
    assert not mfmadsl.gemm_tiling(workload).one_launch


def test_it_is_chosen_where_k_is_split() -> None:
    workload = Workload(16, 64, 32768).function()
    assert mfmadsl.gemm_tiling(workload).one_launch
    (case,) = mfmadsl.gemm_cases(workload, one_launch=False)
    assert case.tiling.split_k > 1
    assert not case.tiling.one_launch


def two_kernels(groups: int, name: str, threads: int = 64) -> Schedule:
    """Y = 2 * X by 4 workgroups, and Z = Y + 1 by so many of them; a block is annotated."""
    x = te.placeholder((256,), name="X", dtype="float32")
    y = te.compute((256,), lambda i: x[i] * 2.0, name="Y")
    z = te.compute((256,), lambda i: y[i] + 1.0, name="Z")
    sch = Schedule(te.create_prim_func([x, z]))
    for block, count, width in (("Y", 4, 64), ("Z", groups, threads)):
        (loop,) = sch.get_loops(sch.get_sblock(block))
        group, _, thread = sch.split(loop, [count, None, width])
        sch.bind(group, "blockIdx.x")
        sch.bind(thread, "threadIdx.x")
    sch.annotate(sch.get_sblock(name), LAST_WORKGROUP, 0)
    return sch


@pytest.mark.parametrize(
    ("groups", "threads", "name", "said"),
    [
        (4, 64, "Y", "it reads no workspace"),
        (2, 64, "Z", "blockIdx.x of 4, and read with 2"),
        (4, 32, "Z", "threadIdx.x of 64, and read with 32"),
    ],
)
def test_kernels_that_do_not_fit(groups: int, threads: int, name: str, said: str) -> None:
    with pytest.raises(LoweringError, match=said):
        mfmadsl.build(two_kernels(groups, name, threads))


@pytest.mark.parametrize("value", [-1, "all", 1])
def test_annotations_that_say_nothing(value: object) -> None:
    """The workspace has one dimension, and so no rows."""
    sch = two_kernels(4, "Z")
    sch.unannotate(sch.get_sblock("Z"), LAST_WORKGROUP)
    sch.annotate(sch.get_sblock("Z"), LAST_WORKGROUP, value)
    with pytest.raises(LoweringError, match="is how many rows of a part it needs"):
        mfmadsl.build(sch)


def test_kernels_of_ones_own() -> None:
    """Of one part each workgroup is the last one."""
    kernel = mfmadsl.build(two_kernels(4, "Z"))
    assert kernel.next is None
    x, z = np.arange(256, dtype="float32"), np.zeros(256, "float32")
    mfmadsl.sanitize(kernel, [x, z])
    np.testing.assert_array_equal(z, 2 * x + 1)

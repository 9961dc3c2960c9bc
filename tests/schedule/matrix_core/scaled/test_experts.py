"""Experts of eight-bit floats in scaled blocks, in the emulator under the sanitizer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tvm import te, tirx

import mfmadsl
from mfmadsl.error import ArgumentError
from mfmadsl.schedule import ScheduleError
from mfmadsl.schedule.matrix_core.gemm import gemm_tilings
from mfmadsl.schedule.product.grouped import group_of_rows
from tests.cases import FIRST, drawn
from tests.schedule.matrix_core.scaled.blocks import CHIPS, FLOATS, Blocks, built
from tests.schedule.matrix_core.scaled.experts import Experts, check
from tests.schedule.matrix_core.test_pairs import gate_of

SEEDS = drawn(range(FIRST, FIRST + 100), 8)
ENDS = [[50, 50, 93, 150], [0, 0, 0, 0], [150, 150, 150, 150], [1, 17, 149, 150]]


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("ends", ENDS)
def test_rows_of_experts(ends: list[int], arch: str) -> None:
    types, shape = FLOATS[arch][:1] * 2, (150, 72, 300)
    kernel = built(Experts().workload(shape, types), arch)
    check(kernel, Experts(), shape, types, ends)
    assert "_fp8_fp8" in kernel.assembly or "f8f6f4" in kernel.assembly


FORMS = {
    "in one block": Experts(Blocks(before=False)),
    "tokens": Experts(tokens=40),
    "scales of tokens by columns": Experts(Blocks(turned="SA"), tokens=40),
    "scales of B by columns": Experts(Blocks(turned="SB"), tokens=200),
    "B as K x N": Experts(Blocks(turned="B")),
    "A as K x M": Experts(Blocks(turned="A SA"), tokens=40),
    "A alone": Experts(Blocks(b=None)),
    "B alone": Experts(Blocks(a=None)),
    "blocks of 64": Experts(Blocks(a=(1, 64), b=(64, 64))),
    "float16 scales": Experts(Blocks(dtype="float16")),
    "scales of MX formats": Experts(Blocks((1, 32), (1, 32), "float8_e8m0fnu")),
    "more experts than rows": Experts(experts=100),
}


@pytest.mark.parametrize("name", FORMS)
def test_each_form(name: str) -> None:
    arch = "gfx950" if "MX" in name else CHIPS[list(FORMS).index(name) % 2]
    types, shape, form = FLOATS[arch], (70, 90, 320), FORMS[name]
    ends = np.sort(np.random.default_rng(1).integers(0, 71, form.experts)).tolist()
    check(built(form.workload(shape, types), arch), form, shape, types, ends)


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize(
    ("block", "waves"), [((16, 64), (1, 1)), ((128, 64), (2, 2)), ((64, 128), (1, 4))]
)
def test_a_tiling_of_ones_own(block: tuple[int, int], waves: tuple[int, int], arch: str) -> None:
    types, shape, experts = FLOATS[arch], (150, 140, 256), Experts(tokens=40)
    workload = experts.workload(shape, types)
    first = mfmadsl.gemm_tiling(workload, arch=arch)
    tiling = replace(first, block=block, waves=waves, stages=1 if block[0] < 128 else 2)
    check(built(workload, arch, tiling), experts, shape, types, [10, 10, 140, 150])


@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_product(seed: int) -> None:
    rng = np.random.default_rng(seed + 2 * 10**6)

    def of(*choices: Any) -> Any:
        return choices[rng.integers(len(choices))]

    arch = of(*CHIPS)
    shape = int(of(1, 5, 33, 100, 257)), int(of(1, 16, 33, 100, 130)), int(rng.integers(1, 500))
    types = of(*FLOATS[arch]), of(*FLOATS[arch])
    if rng.random() < 0.25:
        blocks = Blocks(None, None)
    else:
        sizes = [(of(1, 1, 16, 128), of(32, 64, 128, 256, 1 << 20)) for _ in "ab"]
        turned = " ".join(each for each in ("A", "B", "SA", "SB") if rng.random() < 0.3)
        dtype = of("float32", "float32", "bfloat16")
        blocks = Blocks(sizes[0], sizes[1], dtype, turned, bool(rng.random() < 0.5))
    tokens = of(None, 1, 50, 300)
    experts = Experts(blocks, int(of(2, 3, 9, 40)), tokens)
    workload = experts.workload(shape, types)
    offered = gemm_tilings(workload, arch=arch)
    tiling = offered[int(rng.integers(len(offered)))] if rng.random() < 0.5 else None
    ends = np.sort(rng.integers(0, shape[0] + 1, experts.experts)).tolist()
    check(built(workload, arch, tiling), experts, shape, types, ends)


@pytest.mark.parametrize("arch", CHIPS)
def test_what_follows_is_computed_as_rows_are_stored(arch: str) -> None:
    types, shape, ends = FLOATS[arch][:1] * 2, (90, 40, 256), [10, 10, 71, 90]
    experts = Experts(tokens=30)

    def after(c: te.Tensor) -> te.Tensor:
        def element(i: Any, j: Any) -> Any:
            return tirx.max(c[i, j] * 0.5, tirx.const(0, "float32")).astype("bfloat16")

        return te.compute(c.shape, element, "D")

    kernel = built(experts.workload(shape, types, after), arch)
    arrays, exact, _ = experts.arrays(np.random.default_rng(0), shape, types, ends)
    d = np.full(shape[:2], np.nan, ml_dtypes.bfloat16)
    mfmadsl.sanitize(kernel, [*(arrays[each.name] for each in kernel.arguments[:-1]), d])
    np.testing.assert_allclose(d.astype(float), np.maximum(exact / 2, 0), rtol=2**-8, atol=1e-4)


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("scaled", [False, True])
def test_a_gate_and_what_it_gates(scaled: bool, arch: str) -> None:
    types, shape, ends = FLOATS[arch][:1] * 2, (90, 192, 384), [33, 33, 80, 90]
    experts = Experts(Blocks() if scaled else Blocks(None, None), tokens=50)
    kernel = built(mfmadsl.gated(experts.workload(shape, types), "silu", "bfloat16"), arch)
    arrays, exact, _ = experts.arrays(np.random.default_rng(0), shape, types, ends)
    gated = np.full((90, 96), np.nan, ml_dtypes.bfloat16)
    arguments = [*(arrays[each.name] for each in kernel.arguments[:-1]), gated]
    assert len(kernel.launches(arguments)) == 1
    mfmadsl.sanitize(kernel, arguments)
    np.testing.assert_allclose(gated.astype(float), gate_of(exact), rtol=2**-7, atol=2**-7)


@pytest.mark.parametrize("arch", CHIPS)
def test_an_mx_output(arch: str) -> None:
    types, shape, ends = FLOATS[arch][:1] * 2, (70, 64, 256), [33, 33, 60, 70]
    experts = Experts()
    kernel = built(mfmadsl.mx_output(experts.workload(shape, types), "fp8"), arch)
    arrays, exact, _ = experts.arrays(np.random.default_rng(0), shape, types, ends)
    c, scales = np.zeros((70, 64), ml_dtypes.float8_e4m3fn), np.zeros((70, 2), "uint8")
    mfmadsl.sanitize(kernel, [*(arrays[each.name] for each in kernel.arguments[:-2]), c, scales])
    found = c.astype(float) * np.repeat(2.0 ** (scales - 127.0), 32, axis=1)
    largest = np.repeat(np.abs(exact.reshape(70, 2, 32)).max(axis=2), 32, axis=1)
    assert (np.abs(found - exact) <= largest * 2**-3).all()


@pytest.mark.parametrize("order", ["rows", "columns"])
@pytest.mark.parametrize("tokens", [None, 31])
def test_the_workload_that_is_written_for_one(tokens: int | None, order: str) -> None:
    types, shape, ends = FLOATS["gfx950"][:1] * 2, (60, 130, 200), [20, 45, 60]
    workload = mfmadsl.block_scaled_matmul(
        *shape, types[0], scale_order=order, experts=3, tokens=tokens
    )
    experts = Experts(Blocks(turned="SA" if order == "columns" else ""), 3, tokens)
    arrays, exact, magnitude = experts.arrays(np.random.default_rng(0), shape, types, ends)
    named = {f"SCALE_{side}": arrays[f"S{side}"] for side in "AB"} | arrays
    kernel = built(workload, "gfx950")
    c = np.full(shape[:2], np.nan, np.float32)
    mfmadsl.sanitize(kernel, [*(named[each.name] for each in kernel.arguments[:-1]), c])
    assert (np.abs(c - exact) <= 2.0**-23 * 203 * magnitude).all()


def test_elements_that_a_chip_does_not_multiply_become_float32() -> None:
    types, shape, experts = FLOATS["gfx950"][:1] * 2, (40, 32, 160), Experts(tokens=20)
    with pytest.warns(mfmadsl.SlowLoopWarning, match="A and B become float32"):
        kernel = mfmadsl.build(
            mfmadsl.gemm_schedule(experts.workload(shape, types), arch="gfx942"), "gfx942"
        )
    check(kernel, experts, shape, types, [10, 11, 30, 40])
    inside = Experts(Blocks(before=False)).workload(shape, types)
    with pytest.raises(ScheduleError, match="compute its factors in blocks before it"):
        mfmadsl.gemm_schedule(inside, arch="gfx90a")


def test_elements_of_fewer_than_eight_bits() -> None:
    for types in (("float8_e4m3fn", "float4_e2m1fn"), ("float6_e2m3fn", "float6_e2m3fn")):
        blocks = Blocks((1, 32), (1, 32), "float8_e8m0fnu")
        workload = Experts(blocks).workload((64, 32, 128), types)
        with pytest.raises(ScheduleError, match=f"multiplies {types[1]} for each group of rows"):
            mfmadsl.gemm_schedule(workload, arch="gfx950")


@pytest.mark.parametrize("change", [{"split_k": 2}, {"k_waves": 2}, {"persistent": True}])
def test_tilings_that_it_does_not_take(change: dict[str, Any]) -> None:
    workload = Experts().workload((256, 128, 1024), FLOATS["gfx942"])
    tiling = replace(mfmadsl.gemm_tiling(workload, arch="gfx942"), **change)
    with pytest.raises(ScheduleError, match=f"tiling: {next(iter(change))}"):
        mfmadsl.gemm_schedule(workload, arch="gfx942", tiling=tiling)


def test_the_group_of_a_row_that_chooses_rows_of_a() -> None:
    dtype, m = FLOATS["gfx942"][0], 64
    a = te.placeholder((4, m, 128), dtype, "A")
    of_a = te.placeholder((m,), "float32", "SA")
    ends, b = te.placeholder((4,), "int32", "ENDS"), te.placeholder((4, 32, 128), dtype, "B")
    group, r = group_of_rows(ends, m), te.reduce_axis((0, 128), "k")

    def element(i: Any, j: Any) -> Any:
        left = a[group[i], i, r].astype("float32") * of_a[i]
        return te.sum(left * b[group[i], j, r].astype("float32"), axis=[r])

    workload = te.create_prim_func([a, of_a, ends, b, te.compute((m, 32), element, "C")])
    with pytest.raises(ScheduleError, match="not as the matrix of its second factor"):
        mfmadsl.gemm_schedule(workload, arch="gfx942")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"experts": 1}, "experts: is at least 2"),
        ({"experts": 2, "batch": 3}, "batch: a product with experts is one product"),
        ({"tokens": 4}, "tokens: are of a product with experts"),
        ({"experts": 2, "tokens": 0}, "tokens: "),
    ],
)
def test_arguments_that_are_refused(more: dict[str, Any], said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        mfmadsl.block_scaled_matmul(16, 64, 256, "float8_e4m3fn", **more)

"""GEMMs of a sparse A, in the emulator under the sanitizer, against NumPy in float64."""

from __future__ import annotations

from dataclasses import replace
from itertools import product as product_of
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tvm.s_tir import Schedule
from tvm.script import from_source
from tvm.tirx import PrimFunc

import mfmadsl
from mfmadsl import ArgumentError, ScheduleError, Tiling
from mfmadsl.backend import Kernel
from mfmadsl.model import Intrinsic
from tests.cases import ALL, drawn
from tests.schedule.matrix_core.sparse.operands import Sparse, numbers, sparse

ENTRIES = [
    (each.name, arch)
    for each in mfmadsl.library().values()
    if isinstance(each, Intrinsic) and each.sparse
    for arch in each.chips
]


def kernel_of(workload: PrimFunc, arch: str, **options: Any) -> Kernel:
    kernel = mfmadsl.build(mfmadsl.gemm_schedule(workload, arch=arch, **options), arch)
    assert kernel.remarks == ()
    return kernel


def product(kernel: Kernel, a: Sparse, b: NDArray[Any]) -> NDArray[Any]:
    c = next(each for each in kernel.arguments if each.name == "C")
    found = np.full(c.shape, 77, c.dtype)
    mfmadsl.sanitize(kernel, [a.stored, a.index, b, found])
    return found


def check(
    shape: tuple[int, int, int], types: tuple[str, str], arch: str, b_transposed: bool = True,
    batch: int | None = None, **options: Any,
) -> Kernel:  # fmt: skip
    m, n, k = shape
    lead = () if batch is None else (batch,)
    rng = np.random.default_rng(m + n + k)
    a = sparse(rng, (*lead, m, k), types[0])
    b = numbers(rng, (*lead, *((n, k) if b_transposed else (k, n))), types[1])
    workload = mfmadsl.sparse_matmul(m, n, k, *types, b_transposed=b_transposed, batch=batch)
    kernel = kernel_of(workload, arch, **options)
    right = b.astype(np.float64)
    if b_transposed:
        right = np.swapaxes(right, -1, -2)
    # A sum of float32 is off by no more than each addition's rounding; of int32 by nothing.
    bound = 0.0 if types[0] == "int8" else 2**-23 * k * (np.abs(a.values) @ np.abs(right))
    assert (np.abs(product(kernel, a, b) - a.values @ right) <= bound).all()
    return kernel


def test_the_library_has_so_many() -> None:
    assert len({name for name, _ in ENTRIES}) == 36
    assert {arch for _, arch in ENTRIES} == {"gfx942", "gfx950"}


# `make test` has each shape in one of the orders, `make test-all` in both.
ENTRY_CASES = [
    ((32, 64, 256), False), ((33, 17, 168), True), ((64, 32, 256), True), ((17, 33, 168), False),
]  # fmt: skip


@pytest.mark.parametrize(
    ("shape", "b_transposed"), ENTRY_CASES if ALL else ENTRY_CASES[:2], ids=str
)
@pytest.mark.parametrize(("name", "arch"), ENTRIES)
def test_each_entry_makes_a_gemm(
    name: str, arch: str, shape: tuple[int, int, int], b_transposed: bool
) -> None:
    entry = mfmadsl.find(name)
    types = entry.a.type.name, entry.b.type.name
    kernel = check(shape, types, arch, b_transposed, intrinsic=name)
    assert any(mnemonic in kernel.assembly for mnemonic in entry.mnemonics)


F16 = "float16", "float16"
SHAPES = [(1, 128, 512), (128, 1, 8), (130, 270, 264), (65, 96, 1048), (64, 48, 88)]


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
@pytest.mark.parametrize("types", drawn([F16, ("int8", "int8"), ("bfloat16", "bfloat16")], 1))
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_any_shape(shape: tuple[int, int, int], types: tuple[str, str], arch: str) -> None:
    check(shape, types, arch, b_transposed=shape[0] > 100)


TILING = Tiling((64, 64), 128, (2, 2), "smfmac_f32_32x32x16_f16", 1)


OPTIONS: list[dict[str, Any]] = [
    {}, {"stages": 2}, {"persistent": True}, {"swizzle": False}, {"group": 1}, {"split_k": 3},
    {"k_waves": 2}, {"split_k": 2, "k_waves": 2}, {"overlap": "nothing"}, {"overlap": "loads"},
    {"block": (64, 128), "waves": (1, 4)}, {"block": (32, 96), "waves": (1, 1)},
]  # fmt: skip


@pytest.mark.parametrize("options", drawn(OPTIONS, 5), ids=str)
def test_any_tiling(options: dict[str, Any]) -> None:
    check((100, 200, 1000), F16, "gfx942", tiling=replace(TILING, **options))


@pytest.mark.parametrize("b_transposed", [True, False])
@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_batches(arch: str, b_transposed: bool) -> None:
    check((50, 70, 328), F16, arch, b_transposed, batch=3)


def test_each_element_goes_to_its_own_place() -> None:
    """A has one stored element that is not zero in each row, at a place that names it."""
    m = n = k = 32
    a_stored, index = np.zeros((m, k // 2), np.float16), np.full((m, k // 8), 0x44, np.uint8)
    b = (np.arange(n)[:, None] * k + np.arange(k)).astype(np.float16)  # B[k, n] at [n, k]
    wanted = np.zeros((m, n))
    for row in range(m):
        group, place = row % (k // 4), row // (k // 4)
        a_stored[row, 2 * group + (place > 0)] = 1
        pair = (0, 3) if place == 0 else (0, place)
        byte = pair[0] | pair[1] << 2
        index[row, group // 2] = byte << 4 * (group % 2) | 0x4 << 4 * (1 - group % 2)
        wanted[row] = b[:, 4 * group + place]
    kernel = kernel_of(mfmadsl.sparse_matmul(m, n, k, *F16, b_transposed=True), "gfx942")
    found = product(kernel, Sparse(a_stored, index, wanted), b)
    np.testing.assert_array_equal(found, wanted)


def test_compress_gives_its_operands() -> None:
    rng = np.random.default_rng(9)
    a = rng.standard_normal((40, 96)).astype(np.float16)
    b = rng.standard_normal((96, 24)).astype(np.float16)
    values, places = kept = mfmadsl.compress(a)
    kernel = kernel_of(mfmadsl.sparse_matmul(40, 24, 96, "float16"), "gfx942")
    c = np.zeros((40, 24), np.float32)
    mfmadsl.sanitize(kernel, [values, kept.packed, b, c])
    whole = mfmadsl.decompress(values, places).astype(np.float64)
    np.testing.assert_allclose(c, whole @ b.astype(np.float64), atol=1e-4)


@pytest.mark.parametrize("batch", [None, 2])
@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_an_index_by_words(arch: str, batch: int | None) -> None:
    m, n, k = 100, 70, 352
    lead = () if batch is None else (batch,)
    rng = np.random.default_rng(4)
    kept = mfmadsl.compress(numbers(rng, (*lead, m, k), "float16"))
    b = numbers(rng, (*lead, k, n), "float16")
    workload = mfmadsl.sparse_matmul(m, n, k, "float16", batch=batch, index_order="words")
    c = np.zeros((*lead, m, n), np.float32)
    mfmadsl.sanitize(kernel_of(workload, arch), [kept.values, kept.words, b, c])
    whole = mfmadsl.decompress(kept.values, kept.places).astype(np.float64)
    np.testing.assert_allclose(c, whole @ b.astype(np.float64), atol=1e-3)


@pytest.mark.parametrize(
    ("index_order", "arch", "dtype", "b_transposed"),
    drawn(
        product_of(("rows", "words"), ("gfx942", "gfx950"), ("float16", "int8"), (True, False)), 5
    ),
)
def test_large_products_stay_in_registers(
    arch: str, dtype: str, b_transposed: bool, index_order: str
) -> None:
    for m in (4096, 4000):
        workload = mfmadsl.sparse_matmul(
            m, 4096, 4096, dtype, b_transposed=b_transposed, index_order=index_order
        )
        assert kernel_of(workload, arch).registers.spilled == 0


def test_what_follows_is_part_of_the_kernel() -> None:
    """A row's bias, rounded to float16, at the transposed place: C is that of a sparse B."""
    text = mfmadsl.sparse_matmul(48, 40, 64, "float16").script()
    own = 'C: T.Buffer((48, 40), "float32")'
    assert own in text
    text = text.replace(own, 'bias: T.Buffer((48,), "float32"), D: T.Buffer((40, 48), "float16")')
    root = '    # with T.sblock("root"):\n'
    assert root in text
    text = text.replace(root, root + "    C = T.sblock_alloc_buffer((48, 40))\n")
    text += """
    for i, j in T.grid(48, 40):
        with T.sblock("turned"):
            v_i, v_j = T.axis.remap("SS", [i, j])
            D[v_j, v_i] = T.Cast("float16", C[v_i, v_j] + bias[v_i])
"""
    kernel = kernel_of(from_source(text), "gfx942")
    assert kernel.next is None
    rng = np.random.default_rng(5)
    a, b = sparse(rng, (48, 64), "float16"), numbers(rng, (64, 40), "float16")
    bias, d = rng.standard_normal(48).astype(np.float32), np.zeros((40, 48), np.float16)
    mfmadsl.sanitize(kernel, [a.stored, a.index, b, bias, d])
    wanted = (a.values @ b.astype(np.float64)).T + bias
    np.testing.assert_allclose(d, wanted, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize(("old", "new"), [
    ("INDEX: T.Buffer((64, 16)", "INDEX: T.Buffer((64, 17)"),
    ("v_k // 8]", "v_k // 16]"),
    ("v_k % 8 // 4 * 4", "v_k % 4 // 2 * 4"),
    (">> 2 & 3", ">> 3 & 3"),
    ("& 3 == v_k % 4", "& 1 == v_k % 4"),
    ("v_k // 4 * 2 + 1]", "v_k // 4 * 2]"),
    ("T.float32(0.0)", "T.float32(1.0)"),
    ('A: T.Buffer((64, 64), "float16")', 'A: T.Buffer((64, 64), "bfloat16")'),
], ids=str)  # fmt: skip
def test_what_only_looks_like_it_is_refused(old: str, new: str) -> None:
    text = mfmadsl.sparse_matmul(64, 64, 128, "float16", b_transposed=True).script()
    assert old in text
    with pytest.raises(ScheduleError):
        mfmadsl.gemm_schedule(from_source(text.replace(old, new)), arch="gfx942")


def test_schedule_gemm_sends_to_gemm_schedule() -> None:
    sch = Schedule(mfmadsl.sparse_matmul(64, 64, 128, "float16"))
    with pytest.raises(ScheduleError, match="product of sparse operands: `gemm_schedule`"):
        mfmadsl.schedule_gemm(sch, sch.get_sblock("C"), arch="gfx942")


@pytest.mark.parametrize(("arguments", "said"), [
    ((16, 16, 12, "float16"), "k: 12 is no multiple of 8"),
    ((0, 16, 16, "float16"), "m"),
    ((16, 16, 16, "float32"), "a_type: there is no 'float32'"),
    ((16, 16, 16, "int8", "float16"), "b_type: there is no 'float16'"),
    ((16, 16, 16, "float8_e4m3fn", "float8_e4m3fnuz"), "b_type"),
    ((16, 16, 16, "float16", None, "yes"), "b_transposed"),
    ((16, 16, 16, "float16", None, True, 0), "batch"),
    ((16, 16, 40, "float16", None, True, None, "words"), "k: 40 is no multiple of 32"),
    ((16, 16, 64, "float16", None, True, None, "columns"), "index_order: there is no 'columns'"),
])  # fmt: skip
def test_a_workload_that_cannot_be_is_refused(arguments: tuple[Any, ...], said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        mfmadsl.sparse_matmul(*arguments)


@pytest.mark.parametrize(("options", "said"), [
    ({"arch": "gfx90a"}, "gfx90a has no sparse matrix instruction for float16, as gfx942"),
    ({"intrinsic": "smfmac_f32_32x32x16_bf16"}, "does not multiply sparse float16"),
    ({"intrinsic": "mfma_f32_32x32x8_f16"}, "does not multiply sparse float16"),
    ({"intrinsic": "smfmac_f32_32x32x32_f16"}, "does not multiply sparse float16 on gfx942"),
    ({"tiling": replace(TILING, block=(256, 256), k_step=256)}, "bytes of LDS"),
    ({"tiling": TILING, "intrinsic": "smfmac_f32_16x16x32_f16"}, "but the tiling's is"),
])  # fmt: skip
def test_what_the_chip_has_not_is_refused(options: dict[str, Any], said: str) -> None:
    workload = mfmadsl.sparse_matmul(256, 256, 1024, "float16")
    with pytest.raises(ScheduleError, match=said):
        mfmadsl.gemm_schedule(workload, **{"arch": "gfx942", **options})

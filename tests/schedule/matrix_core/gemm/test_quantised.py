"""Weights as GPTQ, AWQ, MLC-LLM and OCP store them: what is multiplied is what was packed.

The packers are those of AutoGPTQ and AutoAWQ, written as loops over one nibble after the other.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from tvm import te

import mfmadsl
from mfmadsl.cli.gemm_options import WEIGHTS
from mfmadsl.gemm.quantised import random_weights, weights_of
from mfmadsl.model.numpy_type import numpy_type
from mfmadsl.schedule.matrix_core.gemm import gemm_tilings
from mfmadsl.schedule.workload.quantised import FORMATS

Array = npt.NDArray[Any]
M, N, K, GROUP = 20, 48, 256, 64
CHIPS = ["gfx908", "gfx90a", "gfx942", "gfx950"]
TYPES = ["float16", "bfloat16"]
AWQ_ORDER = [0, 2, 4, 6, 1, 3, 5, 7]


def gptq_words(numbers: Array) -> Array:
    """Rows packed one below the other, as AutoGPTQ packs the transposed weights [k, n]."""
    words = np.zeros((numbers.shape[0] // 8, numbers.shape[1]), np.uint32)
    for row in range(numbers.shape[0]):
        words[row // 8] |= numbers[row].astype(np.uint32) << np.uint32(4 * (row % 8))
    return words.view(np.int32)


def columns(numbers: Array, order: list[int]) -> Array:
    """Columns packed side by side in an order, as AutoAWQ packs [k, n], and AutoGPTQ zeros."""
    words = np.zeros((numbers.shape[0], numbers.shape[1] // 8), np.uint32)
    for word in range(words.shape[1]):
        for place in range(8):
            column = numbers[:, word * 8 + order[place]].astype(np.uint32)
            words[:, word] |= column << np.uint32(4 * place)
    return words.view(np.int32)


def product(format_name: str, arch: str, dtype: str, arrays: list[Array], weights: Array) -> None:
    """Multiply, and compare with the weights [n, k] in float64."""
    group = GROUP if format_name in ("gptq", "awq") else None
    workload = mfmadsl.quantised_matmul(M, N, K, format_name, dtype, group=group)
    kernel = mfmadsl.build(mfmadsl.gemm_schedule(workload, arch=arch), arch=arch)
    assert not kernel.remarks
    assert kernel.code_object  # LLVM has no assembler here: what it emits may be no text of ours
    a = np.random.default_rng(3).integers(-8, 9, (M, K)).astype(numpy_type(dtype))
    c = np.full((M, N), np.nan, np.float32)
    mfmadsl.sanitize(kernel, [a, *arrays, c])
    left, right = a.astype(np.float64), weights.astype(np.float64)
    bound = 2 * K * 2.0**-24 * (np.abs(left) @ np.abs(right).T)
    assert (np.abs(c - left @ right.T) <= bound).all()


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("format_name", ["gptq", "awq"])
def test_four_bits_with_zero_points(format_name: str, dtype: str, arch: str) -> None:
    generator = np.random.default_rng(1)
    numbers = generator.integers(0, 16, (K, N))
    zeros = generator.integers(0, 16, (K // GROUP, N))
    scales = generator.uniform(0.01, 0.1, (K // GROUP, N)).astype(numpy_type(dtype))
    more = 1 if format_name == "gptq" else 0  # AutoGPTQ stores one less
    centred = (numbers - (zeros + more).repeat(GROUP, axis=0)).astype(scales.dtype)
    packed = (
        [gptq_words(numbers), columns(zeros, list(range(8)))]
        if format_name == "gptq"
        else [columns(numbers, AWQ_ORDER), columns(zeros, AWQ_ORDER)]
    )
    product(format_name, arch, dtype, [*packed, scales], (centred * scales.repeat(GROUP, axis=0)).T)


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("dtype", TYPES)
def test_four_bits_of_mlc(dtype: str, arch: str) -> None:
    generator = np.random.default_rng(2)
    numbers = generator.integers(0, 16, (N, K))
    scales = generator.uniform(0.01, 0.1, (N, K // 32)).astype(numpy_type(dtype))
    words = gptq_words(numbers.T).view(np.uint32).T
    weights = (numbers.astype(scales.dtype) - scales.dtype.type(7)) * scales.repeat(32, axis=1)
    product("q4f16", arch, dtype, [np.ascontiguousarray(words), scales], weights)


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("dtype", TYPES)
def test_elements_of_mxfp4_with_every_scale_that_keeps_them(dtype: str, arch: str) -> None:
    """By ml_dtypes' types; a scale beyond the type of A is rounded, as its docstring says."""
    generator = np.random.default_rng(4)
    elements = generator.integers(0, 16, (N, K), np.uint8)
    exponents = generator.integers(127 - 13, 127 + 13, (N, K // 32), np.uint8)  # no denormal halves
    values = elements.view(ml_dtypes.float4_e2m1fn).astype(np.float32)
    powers = exponents.view(ml_dtypes.float8_e8m0fnu).astype(np.float32).repeat(32, axis=1)
    weights = (values * powers).astype(numpy_type(dtype))
    packed = elements[:, ::2] | elements[:, 1::2] << 4
    product("mxfp4", arch, dtype, [packed, exponents], weights)


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("dtype", TYPES)
def test_bytes_with_a_scale_for_each_row(dtype: str, arch: str) -> None:
    generator = np.random.default_rng(5)
    numbers = generator.integers(-128, 128, (N, K)).astype(np.int8)
    scales = generator.uniform(0.01, 0.1, N).astype(numpy_type(dtype))
    product("int8", arch, dtype, [numbers, scales], numbers.astype(scales.dtype) * scales[:, None])


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("format_name", FORMATS)
@pytest.mark.parametrize("m", [1, 300])
def test_other_shapes_and_tilings(m: int, format_name: str, dtype: str) -> None:
    """With an end of K within a step; the weights are those of the check of `mfmadsl gemm`."""
    n, k, stored = 136, 1152, FORMATS[format_name]
    group = stored.group or k
    arrays = random_weights(np.random.default_rng(0), stored, n, k, group, dtype)
    a = np.random.default_rng(1).integers(-4, 5, (m, k)).astype(numpy_type(dtype))
    workload = mfmadsl.quantised_matmul(m, n, k, format_name, dtype)
    kernel = mfmadsl.build(mfmadsl.gemm_schedule(workload, arch="gfx942"), arch="gfx942")
    assert not kernel.remarks
    c = np.full((m, n), np.nan, np.float32)
    mfmadsl.emulate(kernel, [a, *arrays, c])
    left, right = a.astype(float), weights_of(stored, arrays, group, dtype).astype(float)
    bound = 2 * k * 2.0**-24 * (np.abs(left) @ np.abs(right).T)
    assert (np.abs(c - left @ right.T) <= bound).all()


@pytest.mark.parametrize("format_name", ["gptq", "mxfp4"])
def test_as_many_rows_as_a_launch_brings(format_name: str) -> None:
    n, k, stored = 64, 256, FORMATS[format_name]
    group = stored.group or k
    arrays = random_weights(np.random.default_rng(0), stored, n, k, group, "float16")
    right = weights_of(stored, arrays, group, "float16").astype(float)
    workload = mfmadsl.quantised_matmul(te.var("m"), n, k, format_name)
    kernel = mfmadsl.build(mfmadsl.gemm_schedule(workload, arch="gfx942"), arch="gfx942")
    assert len(list(kernel.chain())) > 1
    for m in (1, 17, 200):
        a = np.random.default_rng(m).integers(-4, 5, (m, k)).astype(np.float16)
        c = np.full((m, n), np.nan, np.float32)
        assert not mfmadsl.sanitize(kernel, [a, *arrays, c]).faults
        left = a.astype(float)
        assert (
            np.abs(c - left @ right.T) <= 2 * k * 2.0**-24 * np.abs(left) @ np.abs(right.T)
        ).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"m": te.var("m", "float32")}, "m: `m` is a symbol of float32; it has to be of int32"),
        ({"weights": "gguf"}, r"weights: .*gguf.*awq"),
        ({"in_dtype": "float32"}, r"in_dtype: .*float32.*float16"),
        ({"k": 100}, "k: 100 is no multiple of 128: 128 of K share a scale of gptq: pad A and"),
        ({"k": 100, "group": 20}, "k: 100 is no multiple of 40: 20 of K share .*, and 8 a word"),
        ({"k": 33, "weights": "mxfp4"}, "k: 33 is no multiple of 32: 32 of K share a scale of mx"),
        ({"k": 48, "weights": "mxfp4"}, "k: 48 is no multiple of 32: 32 of K share a scale of mx"),
        ({"n": 20}, "n: 20 is no multiple of 8, the rows in a word of gptq: pad the weights"),
        ({"group": 0}, "group: is a number from 1"),
        (
            {"weights": "mxfp4", "group": 64},
            "group: the scales of mxfp4 are for 32 of K, not for 64",
        ),
        ({"weights": "int8", "group": 64}, "group: the scales of int8 are for a row, not for 64"),
    ],
)
def test_what_is_no_such_product_is_refused(change: dict[str, Any], message: str) -> None:
    arguments = {"m": 16, "n": 64, "k": 256, "weights": "gptq", **change}
    with pytest.raises(mfmadsl.ArgumentError, match=message):
        mfmadsl.quantised_matmul(**arguments)


def test_the_command_line_names_all_formats() -> None:
    assert tuple(FORMATS) == WEIGHTS


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize(
    ("format_name", "parts", "k", "group", "k_step"),
    [
        ("awq", 3, 896, 128, 64),  # of three workgroups the second starts within a group
        ("gptq", 3, 864, 96, 64),  # steps begin at thirds of a group
        ("awq", 1, 960, 160, 256),  # lanes of a step are in two groups or three
        ("q4f16", 3, 960, 48, 128),  # and groups end more often than steps
    ],
)
def test_groups_of_which_steps_have_parts(
    format_name: str, parts: int, k: int, group: int, k_step: int, arch: str
) -> None:
    workload = mfmadsl.quantised_matmul(M, N, k, format_name, group=group)
    tiling = replace(
        gemm_tilings(workload, arch=arch)[0], block=(16, 32), waves=(1, 2), k_step=k_step,
        split_k=parts, k_waves=1, stages=1,
    )  # fmt: skip
    kernel = mfmadsl.build(mfmadsl.gemm_schedule(workload, arch=arch, tiling=tiling), arch=arch)
    assert not kernel.remarks
    generator = np.random.default_rng(4)
    stored = FORMATS[format_name]
    arrays = random_weights(generator, stored, N, k, group, "float16")
    a = generator.integers(-8, 9, (M, k)).astype(np.float16)
    c = np.full((M, N), np.nan, np.float32)
    mfmadsl.sanitize(kernel, [a, *arrays, c])
    left, right = (x.astype(np.float64) for x in (a, weights_of(stored, arrays, group, "float16")))
    bound = 2 * k * 2.0**-24 * (np.abs(left) @ np.abs(right).T)
    assert (np.abs(c - left @ right.T) <= bound).all()


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950"])
def test_bytes_times_scales_of_any_size_are_rounded_to_even(arch: str) -> None:
    """Each product by itself: A has a one in each row. Denormal scales are among them."""
    n, k = 2048, 64
    generator = np.random.default_rng(5)
    q = generator.integers(-128, 128, (n, k)).astype(np.int8)
    bits = np.arange(1 << 16, dtype=np.uint16)
    usual = bits[bits % (1 << 15) < 247 << 7].view(ml_dtypes.bfloat16)  # of less than 2^120
    scales = np.concatenate([usual[1:256], generator.choice(usual, n - 255)])
    kernel = mfmadsl.build(
        mfmadsl.gemm_schedule(mfmadsl.quantised_matmul(k, n, k, "int8", "bfloat16"), arch=arch),
        arch=arch,
    )
    c = np.zeros((k, n), np.float32)
    mfmadsl.emulate(kernel, [np.eye(k).astype(ml_dtypes.bfloat16), q, scales, c])
    wanted = (q * scales.astype(np.float32)[:, None]).astype(ml_dtypes.bfloat16)
    wanted = wanted.astype(np.float32).T
    denormal = np.abs(wanted) < 2.0**-126  # which matrix cores of gfx90a read as 0
    assert np.array_equal(np.where(denormal, 0, c), np.where(denormal, 0, wanted))
    assert denormal.any()
    assert ("v_pk_fma_f32" in str(kernel.assembly)) == (arch != "gfx950")


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
@pytest.mark.parametrize(("format_name", "group"), [
    ("q4f16", 32), ("q4f16", 256), ("gptq", 128), ("gptq", 32), ("awq", 128), ("awq", 64),
    ("mxfp4", 32),
])  # fmt: skip
def test_a_thread_takes_several_places_of_one_group(
    format_name: str, group: int, arch: str
) -> None:
    """Of long steps, whose groups are shorter and as long."""
    n, k = 72, 768
    workload = mfmadsl.quantised_matmul(M, n, k, format_name, group=group)
    tiling = replace(gemm_tilings(workload, arch=arch)[0], block=(16, 64),
                     waves=(1, 2), k_step=256, split_k=1, k_waves=2, stages=1)  # fmt: skip
    kernel = mfmadsl.build(mfmadsl.gemm_schedule(workload, arch=arch, tiling=tiling), arch=arch)
    assert not kernel.remarks
    generator, stored = np.random.default_rng(7), FORMATS[format_name]
    arrays = random_weights(generator, stored, n, k, group, "float16")
    a = generator.integers(-8, 9, (M, k)).astype(np.float16)
    c = np.full((M, n), np.nan, np.float32)
    assert not mfmadsl.sanitize(kernel, [a, *arrays, c]).faults
    left, right = (x.astype(np.float64) for x in (a, weights_of(stored, arrays, group, "float16")))
    bound = 2 * k * 2.0**-24 * (np.abs(left) @ np.abs(right).T)
    assert (np.abs(c - left @ right.T) <= bound).all()


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
@pytest.mark.parametrize("format_name", ["q4f16", "gptq", "mxfp4"])
def test_a_thread_loads_a_scale_once_in_a_step(format_name: str, arch: str) -> None:
    """Of the four words that it takes of a group in each of two steps."""
    workload = mfmadsl.quantised_matmul(M, 64, 2048, format_name)
    tiling = replace(gemm_tilings(workload, arch=arch)[0], block=(16, 64),
                     waves=(1, 4), k_step=256, split_k=1, k_waves=2, stages=1)  # fmt: skip
    kernel = mfmadsl.build(mfmadsl.gemm_schedule(workload, arch=arch, tiling=tiling), arch=arch)
    loop = kernel.assembly.partition(".LBB0_1:")[2].partition("s_cbranch")[0]
    narrow = loop.count("buffer_load_ushort") + loop.count("buffer_load_ubyte")
    assert 1 <= narrow <= 2


def test_floats_without_a_common_factor_are_computed_in_pairs() -> None:
    """Each row of a word has a zero point and a scale of its own."""
    workload = mfmadsl.quantised_matmul(M, N, K, "awq", "bfloat16")
    kernel = mfmadsl.build(mfmadsl.gemm_schedule(workload, arch="gfx950"), arch="gfx950")
    assert "v_pk_mul_f32" in kernel.assembly
    assert "v_sub_f32" not in kernel.assembly


def test_parts_of_k_are_equal_and_more_than_compute_units() -> None:
    """A shorter part would have all of them ask in each step where theirs ends."""
    n, k = 14336, 4096
    tilings = gemm_tilings(mfmadsl.quantised_matmul(16, n, k, "awq"), arch="gfx942")
    assert all(k // tiling.k_step % tiling.split_k == 0 for tiling in tilings)
    assert max(n // t.block[1] * t.split_k for t in tilings if t.split_k > 1) > 2 * 304


@pytest.mark.parametrize("format_name", FORMATS)
@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_of_many_rows_all_threads_compute_as_many_weights(format_name: str, arch: str) -> None:
    """Eight at a time, in tiles of 256 rows: smaller ones would compute each weight more often."""
    workload = mfmadsl.quantised_matmul(4096, 4096, 4096, format_name, "float16")
    tiling = mfmadsl.gemm_tiling(workload, arch=arch)
    threads = tiling.wave_count * 64
    assert tiling.block[0] >= 224
    assert tiling.block[1] == 256
    assert tiling.block[1] * tiling.k_step % (8 * threads) == 0

"""Weights that are dequantised by a block before the product: on the way into the LDS, in its loop.

The formats are those of MLC-LLM (q4f16: eight nibbles of K in a word, a scale for 32 of them; q8f16
likewise with bytes) and of DeepSeek-V3 (eight-bit floats, a scale for 128 of K and 128 of N).
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from tvm import te, tirx
from tvm.tirx import PrimFunc

import mfmadsl
from mfmadsl.model.numpy_type import numpy_type
from mfmadsl.schedule import ScheduleError

Array = npt.NDArray[Any]
M, N, K = 40, 96, 256


def product(x: Any, weight: Any, others: list[Any]) -> PrimFunc:
    """x times the weights transposed."""
    k = te.reduce_axis((0, K), name="k")
    y = te.compute(
        (M, N),
        lambda i, j: te.sum(x[i, k].astype("float32") * weight[j, k].astype("float32"), axis=[k]),
        name="y",
    )
    return te.create_prim_func([x, *others, y])


def words(bits: int, along_k: bool) -> PrimFunc:
    """q4f16 or q8f16: weights in words along K, of which N or K lies together in memory."""
    each, most = 32 // bits, 2 ** (bits - 1) - 1
    x = te.placeholder((M, K), "float16", name="x")
    shapes = [(N, K // each), (N, K // 32)]
    shapes = shapes if along_k else [shape[::-1] for shape in shapes]
    packed = te.placeholder(shapes[0], "uint32", name="packed")
    scale = te.placeholder(shapes[1], "float16", name="scale")

    def at(of: Any, j: Any, k: Any) -> Any:
        return of[j, k] if along_k else of[k, j]

    def value(j: Any, k: Any) -> Any:
        down = ((k % each) * bits).astype("uint32")
        number = (at(packed, j, k // each) >> down) & tirx.const(2**bits - 1, "uint32")
        return (number.astype("float16") - tirx.const(most, "float16")) * at(scale, j, k // 32)

    return product(x, te.compute((N, K), value, name="dequantised"), [packed, scale])


def unpacked(packed: Array, scale: Array, bits: int) -> Array:
    """The weights [N, K] as float16 has them, of words and scales that lie along K."""
    most = np.float16(2 ** (bits - 1) - 1)
    numbers = packed[:, :, None] >> np.arange(0, 32, bits, dtype=np.uint32) & 2**bits - 1
    centred = numbers.reshape(N, K).astype(np.float16) - most
    weights: Array = centred * np.repeat(scale, 32, axis=1)
    return weights


LARGE = mfmadsl.Tiling((64, 64), 64, (2, 2), "mfma_f32_16x16x16_f16", 2)
"""A thread copies elements of which some share a word, and all a scale."""


@pytest.mark.parametrize(
    ("bits", "along_k", "tiling"),
    [(4, True, None), (4, False, None), (4, False, LARGE), (8, True, LARGE)],
)
def test_words_of_several_numbers_and_a_scale_for_each_group(
    bits: int, along_k: bool, tiling: mfmadsl.Tiling | None
) -> None:
    schedule = mfmadsl.gemm_schedule(words(bits, along_k), arch="gfx942", tiling=tiling)
    kernel = mfmadsl.build(schedule, "gfx942")
    assert not kernel.workspaces
    assert not kernel.remarks  # the fast loop
    generator = np.random.default_rng(bits)
    x = generator.standard_normal((M, K)).astype(np.float16)
    packed = generator.integers(0, 2**32, (N, K * bits // 32), dtype=np.uint32)
    scale = generator.uniform(0.01, 0.1, (N, K // 32)).astype(np.float16)
    given = [each if along_k else np.ascontiguousarray(each.T) for each in (packed, scale)]
    y = np.full((M, N), 99, np.float32)
    mfmadsl.sanitize(kernel, [x, *given, y])
    weight = unpacked(packed, scale, bits).astype(np.float64)
    bound = K * 2.0**-24 * (np.abs(x.astype(np.float64)) @ np.abs(weight.T))
    assert (np.abs(y - x.astype(np.float64) @ weight.T) <= bound).all()


def scaled(name: str, shape: tuple[int, int], rows: int, dtype: str) -> tuple[Any, list[Any]]:
    """A factor of eight-bit floats with a scale for 128 of K and some rows, and what it reads."""
    stored = te.placeholder(shape, dtype, name=name)
    scale = te.placeholder((-(-shape[0] // rows), K // 128), "float32", name=f"{name}_scale")

    def value(i: Any, k: Any) -> Any:
        return (stored[i, k].astype("float32") * scale[i // rows, k // 128]).astype("bfloat16")

    return te.compute(shape, value, name=f"{name}_dequantised"), [stored, scale]


def drawn(seed: int, shape: tuple[int, int], rows: int, dtype: str) -> tuple[list[Array], Array]:
    """What such a factor reads, and what it is."""
    generator = np.random.default_rng(seed)
    stored = generator.standard_normal(shape).astype(numpy_type(dtype))
    scale = generator.uniform(0.5, 2, (-(-shape[0] // rows), K // 128)).astype(np.float32)
    spread = np.repeat(np.repeat(scale, rows, axis=0)[: shape[0]], 128, axis=1)
    rounded = (stored.astype(np.float32) * spread).astype(ml_dtypes.bfloat16)
    return [stored, scale], rounded.astype(np.float64)


@pytest.mark.parametrize(
    ("dtype", "arch", "rows"), [("float8_e4m3fnuz", "gfx942", 128), ("float8_e4m3fn", "gfx950", 1)]
)
def test_eight_bit_floats_and_a_scale_for_each_block(dtype: str, arch: str, rows: int) -> None:
    """Both factors, that of the activations with a scale for each row."""
    (x, of_x), (weight, of_weight) = (
        scaled("x", (M, K), 1, dtype),
        scaled("weight", (N, K), rows, dtype),
    )
    k = te.reduce_axis((0, K), name="k")
    y = te.compute(
        (M, N),
        lambda i, j: te.sum(x[i, k].astype("float32") * weight[j, k].astype("float32"), axis=[k]),
        name="y",
    )
    workload = te.create_prim_func([*of_x, *of_weight, y])
    kernel = mfmadsl.build(mfmadsl.gemm_schedule(workload, arch=arch), arch)
    assert not kernel.workspaces
    assert not kernel.remarks
    (left, a), (right, b) = drawn(1, (M, K), 1, dtype), drawn(2, (N, K), rows, dtype)
    found = np.full((M, N), 99, np.float32)
    mfmadsl.emulate(kernel, [*left, *right, found])
    assert (np.abs(found - a @ b.T) <= K * 2.0**-24 * (np.abs(a) @ np.abs(b.T))).all()


def test_weights_of_which_some_are_left_out_are_refused() -> None:
    """What computes a factor has to compute all of it."""
    x = te.placeholder((M, K), "float16", name="x")
    weight = te.placeholder((N, K), "int8", name="weight")
    k = te.reduce_axis((0, K), name="k")
    padded = te.compute((2 * N, K), lambda j, r: weight[j // 2, r].astype("float16"), name="padded")
    workload = product(x, te.compute((N, K), lambda j, r: padded[j, r], name="w"), [weight])
    mfmadsl.gemm_schedule(workload)
    summed = te.compute((N, K), lambda j, r: te.sum(padded[j, k] * r, axis=[k]), name="summed")
    with pytest.raises(ScheduleError, match="one block must be a reduction"):
        mfmadsl.gemm_schedule(product(x, summed, [weight]))

"""Every pair of every generated module, in kernels that run: dense, of blocks, sparse, scaled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tvm.s_tir import Schedule

import mfmadsl
from mfmadsl.backend import Kernel
from mfmadsl.language import library
from mfmadsl.model import ElementType, Intrinsic
from mfmadsl.schedule import load_intrinsic
from mfmadsl.schedule.product.epilogue import element_kernel
from tests.registers import Array, codes, dtype_of
from tests.schedule.matrix_core.tiles import tile_schedule

SCOPES = ("shared", "shared.dyn")


def cases(intrinsics: Sequence[Intrinsic], turns: int) -> list[Any]:
    """Each with one scope and order of B, or with two that differ in both."""
    return [
        pytest.param(i, SCOPES[x % 2], x % 4 > 1, id=f"{i.name}-{SCOPES[x % 2]}-{x % 4 > 1}")
        for turn in range(turns)
        for x, i in enumerate(intrinsics, start=3 * turn)
    ]


DENSE = [i for i in library().values() if not i.sparse and not i.scales]
SPARSE = [i for i in library().values() if i.sparse]
SCALED = [i for i in library().values() if i.scales]


def built(intrinsic: Intrinsic, scope: str, b_transposed: bool, compute: str = "") -> Kernel:
    schedule = tile_schedule(intrinsic, scope, b_transposed, compute)
    kernel = mfmadsl.build(schedule, intrinsic.chips[-1])
    assert any(f"\t{mnemonic} " in kernel.assembly for mnemonic in intrinsic.mnemonics)
    assert kernel.registers.scratch_bytes == 0
    return kernel


def whole_numbers(shape: tuple[int, ...], generator: np.random.Generator) -> Array:
    """Small ones, which every type holds and every sum is exact for."""
    return generator.integers(-3, 4, shape).astype(np.float64)


@pytest.mark.parametrize(("intrinsic", "scope", "b_transposed"), cases(DENSE, 2))
def test_dense(intrinsic: Intrinsic, scope: str, b_transposed: bool) -> None:
    kernel = built(intrinsic, scope, b_transposed)
    generator = np.random.default_rng(1)
    a, b = (whole_numbers(argument.shape, generator) for argument in kernel.arguments[:2])
    c = np.full(kernel.arguments[2].shape, 99, dtype_of(intrinsic.c.type))
    types = intrinsic.a.type, intrinsic.b.type
    arrays = [x.astype(dtype_of(t)) for x, t in zip((a, b), types, strict=True)]
    mfmadsl.emulate(kernel, [*arrays, c])
    assert (c == a @ (b.swapaxes(-1, -2) if b_transposed else b)).all()


def compressed(
    shape: tuple[int, int], generator: np.random.Generator
) -> tuple[Array, Array, Array]:
    """A sparse matrix in full, what is stored of it, and the bytes of its index."""
    rows, columns = shape
    pairs = np.array([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)])
    places = pairs[generator.integers(0, 6, (rows, columns // 4))]
    stored = whole_numbers((rows, columns // 4, 2), generator)
    full = np.zeros((rows, columns // 4, 4))
    np.put_along_axis(full, places, stored, axis=-1)
    index = (places.reshape(rows, -1, 4) << np.array([0, 2, 4, 6])).sum(axis=-1).astype(np.uint8)
    return full.reshape(shape), stored.reshape(rows, -1), index


@pytest.mark.parametrize(("intrinsic", "scope", "b_transposed"), cases(SPARSE, 1))
def test_sparse(intrinsic: Intrinsic, scope: str, b_transposed: bool) -> None:
    sets = 16 // intrinsic.a.layout.elements_per_lane  # the last one of them is used
    compute = load_intrinsic(intrinsic).compute_with(abid=sets - 1)
    kernel = built(intrinsic, scope, b_transposed, compute)
    assert (f"abid:{sets - 1}" in kernel.assembly) == (sets > 1)
    generator = np.random.default_rng(2)
    a, stored, index = compressed((2 * intrinsic.m, 2 * intrinsic.k), generator)
    b = whole_numbers(kernel.arguments[2].shape, generator)
    c = np.full(kernel.arguments[3].shape, 99, dtype_of(intrinsic.c.type))
    types = dtype_of(intrinsic.a.type), dtype_of(intrinsic.b.type)
    mfmadsl.emulate(kernel, [stored.astype(types[0]), index, b.astype(types[1]), c])
    assert (c == a @ (b.T if b_transposed else b)).all()


def octets(values: Array, element: ElementType, axis: int) -> Array:
    """Numbers as bytes, packed along an axis from the lowest bit up."""
    bits = np.moveaxis(codes(values, element).astype(np.uint8), axis, -1)
    lowest_first = np.unpackbits(bits[..., None], axis=-1, bitorder="little")[..., : element.bits]
    packed = np.packbits(lowest_first.reshape(*bits.shape[:-1], -1), axis=-1, bitorder="little")
    return np.ascontiguousarray(np.moveaxis(packed, -1, axis))


@pytest.mark.parametrize(("intrinsic", "scope", "b_transposed"), cases(SCALED, 1))
def test_scaled(intrinsic: Intrinsic, scope: str, b_transposed: bool) -> None:
    compute = load_intrinsic(intrinsic).compute_with(byte_a=1, byte_b=2)
    kernel = built(intrinsic, scope, b_transposed, compute)
    assert "op_sel:[1,0,0] op_sel_hi:[0,1,0]" in kernel.assembly
    generator = np.random.default_rng(3)
    m, n, k = 2 * intrinsic.m, 2 * intrinsic.n, 2 * intrinsic.k
    a, b = whole_numbers((m, k), generator), whole_numbers((k, n), generator)
    scale_a = generator.integers(124, 131, (m, k // 32)).astype(np.uint8)
    scale_b = generator.integers(124, 131, (k // 32, n)).astype(np.uint8)
    c = np.full((m, n), 99, np.float32)
    packed_a, packed_b = octets(a, intrinsic.a.type, 1), octets(b, intrinsic.b.type, 0)
    of_b = [x.T.copy() if b_transposed else x for x in (packed_b, scale_b)]
    mfmadsl.emulate(kernel, [packed_a, of_b[0], scale_a, of_b[1], c])
    powers_a, powers_b = (np.ldexp(1.0, s.astype(int) - 127) for s in (scale_a, scale_b))
    left, right = a * np.repeat(powers_a, 32, axis=1), b * np.repeat(powers_b, 32, axis=0)
    assert (c == left @ right).all()


@pytest.mark.parametrize("kind", ["fp8", "bf8", "fp6", "bf6", "fp4"])
def test_the_workload_of_scaled_elements_knows_each_of_their_codes(kind: str) -> None:
    """Without a matrix instruction: A holds all finite numbers of its type, B picks of each row."""
    intrinsic = library()[f"mfma_scale_f32_16x16x128_f8f6f4_{kind}_{kind}"]
    m, n, k = 16, 128, 128
    schedule = Schedule(load_intrinsic(intrinsic).matmul(m, n, k))
    element_kernel(schedule, schedule.get_sblock("C"))
    dtype = dtype_of(intrinsic.a.type)
    every = np.resize(np.arange(1 << intrinsic.a.type.bits).astype(np.uint8), (m, k)).view(dtype)
    a = np.where(np.isfinite(every.astype(np.float64)), every.astype(np.float64), 0)
    place = np.random.default_rng(4).permutation(n)
    b = (np.arange(k)[:, None] == place) * 1.5
    scale_a = np.resize(np.arange(120, 136).astype(np.uint8), (m, k // 32))
    scale_b = np.resize(np.arange(123, 132).astype(np.uint8), (k // 32, n))
    c = np.full((m, n), 99, np.float32)
    packed = octets(a, intrinsic.a.type, 1), octets(b, intrinsic.b.type, 0)
    mfmadsl.emulate(mfmadsl.build(schedule, "gfx950"), [*packed, scale_a, scale_b, c])
    powers_a, powers_b = (np.ldexp(1.0, s.astype(int) - 127) for s in (scale_a, scale_b))
    left, right = a * np.repeat(powers_a, 32, axis=1), b * np.repeat(powers_b, 32, axis=0)
    assert (c == left @ right).all()


def test_the_numbers_of_these_tests_are_held_by_every_type() -> None:
    for intrinsic in SCALED:
        numbers = np.arange(-3, 4).astype(dtype_of(intrinsic.a.type))
        assert (numbers.astype(np.float64) == np.arange(-3, 4)).all()
    assert ml_dtypes.finfo(ml_dtypes.float4_e2m1fn).bits == 4

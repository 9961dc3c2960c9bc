"""Generated modules, imported: names, registration on demand, the shared store."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tvm import te
from tvm.s_tir import Schedule, TensorIntrin
from tvm.tirx import Expr, PrimFunc

import mfmadsl
from mfmadsl.codegen import module_text
from mfmadsl.language import find, library
from mfmadsl.model import Intrinsic
from mfmadsl.tensorize import load_intrinsic, matmul
from tests.registers import dtype_of

HALF = find("mfma_f32_16x16x16_f16")
DENSE = [i for i in library().values() if not i.sparse and not i.scales]
EVERY = pytest.mark.parametrize("intrinsic", DENSE, ids=lambda i: i.name)


@EVERY
def test_all_pairs_of_a_module_are_accepted_by_tvm(intrinsic: Intrinsic) -> None:
    module = load_intrinsic(intrinsic)
    names = module.register()
    assert names == list(module.NAMES.values())
    assert len(names) == 11
    for name in names:
        registered = TensorIntrin.get(name)
        assert registered.desc.params[0].dtype == registered.impl.params[0].dtype


def test_a_pair_is_registered_when_its_name_is_first_taken() -> None:
    module = load_intrinsic(replace(HALF, name="probe_half"))
    assert TensorIntrin.get("probe_half_fill", allow_missing=True) is None
    assert module.FILL == "probe_half_fill"
    assert TensorIntrin.get("probe_half_fill") is not None
    assert TensorIntrin.get("probe_half_compute", allow_missing=True) is None


def test_a_name_that_a_module_lacks_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'LOAD_D'"):
        load_intrinsic(HALF).LOAD_D  # noqa: B018


def test_an_intrinsic_is_loaded_once_and_anew_when_its_text_changes() -> None:
    first = load_intrinsic("mfma_f32_16x16x16_f16")
    assert load_intrinsic(HALF) is first
    changed = replace(HALF, name="probe_changed")
    assert load_intrinsic(changed) is load_intrinsic(changed)
    assert load_intrinsic(replace(changed, doc="other")) is not load_intrinsic(changed)


def test_a_written_module_imports_alone_and_registers_under_the_same_names(tmp_path: Path) -> None:
    (tmp_path / "half.py").write_text(module_text(HALF))
    program = (
        "import sys, half; print(half.COMPUTE, half.M, half.IN_DTYPE);"
        "assert not any(name.startswith('mfmadsl') for name in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["mfma_f32_16x16x16_f16_compute", "16", "float16"]


TILES = [
    pytest.param(
        intrinsic,
        ("shared", "shared.dyn")[number % 2],
        number % 4 > 1,
        id=f"{intrinsic.name}-{number % 4}",
    )
    for turn in (0, 1)
    for number, intrinsic in enumerate(DENSE, start=turn * 3)
]


@pytest.mark.parametrize(("intrinsic", "scope", "b_transposed"), TILES)
def test_every_pair_of_a_module_in_one_kernel(
    intrinsic: Intrinsic, scope: str, b_transposed: bool
) -> None:
    """Tiles of a wave each, that go through shared memory and registers and back."""
    sch = tile_schedule(intrinsic, scope, b_transposed)
    chip = intrinsic.chips[-1]
    kernel = mfmadsl.build(sch, chip)
    assert "ds_write" in kernel.assembly
    generator = np.random.default_rng(1)
    a, b, c = (
        np.zeros(o.shape, dtype_of(t))
        for o, t in zip(
            kernel.arguments, (intrinsic.a.type, intrinsic.b.type, intrinsic.c.type), strict=True
        )
    )
    a[:], b[:] = generator.integers(-4, 5, a.shape), generator.integers(-4, 5, b.shape)
    mfmadsl.emulate(kernel, [a, b, c])
    right = b.astype(np.float64)
    expected = a.astype(np.float64) @ (right.swapaxes(-1, -2) if b_transposed else right)
    assert (c == expected).all()


def batch_matmul(intrinsic: Intrinsic, b_transposed: bool) -> PrimFunc:
    """Two by two by two tiles, for each of twice as many batches as there are blocks."""
    if intrinsic.blocks == 1:
        shape = 2 * intrinsic.m, 2 * intrinsic.n, 2 * intrinsic.k
        types = intrinsic.a.type.dtype, intrinsic.c.type.dtype, b_transposed
        return matmul(*shape, *types, intrinsic.b.type.dtype)
    m, n, k, batch = 2 * intrinsic.m, 2 * intrinsic.n, 2 * intrinsic.k, 2 * intrinsic.blocks
    a = te.placeholder((batch, m, k), name="A", dtype=intrinsic.a.type.dtype)
    shape = (batch, n, k) if b_transposed else (batch, k, n)
    b = te.placeholder(shape, name="B", dtype=intrinsic.b.type.dtype)
    r, out = te.reduce_axis((0, k), name="k"), intrinsic.c.type.dtype

    def product(x: Expr, i: Expr, j: Expr) -> Expr:
        right = b[x, j, r] if b_transposed else b[x, r, j]
        return te.sum(a[x, i, r].astype(out) * right.astype(out), axis=[r])

    return te.create_prim_func([a, b, te.compute((batch, m, n), product, name="C")])


def tile_schedule(intrinsic: Intrinsic, scope: str, b_transposed: bool) -> Schedule:
    """A matmul of several tiles, one for each workgroup of one wave."""
    tile = load_intrinsic(intrinsic)
    suffix = scope.replace(".", "_").upper()
    sch = Schedule(batch_matmul(intrinsic, b_transposed))
    extents = [tile.M, tile.N, tile.K]
    if intrinsic.blocks > 1:
        extents.insert(0, tile.BLOCKS)
    loops = sch.get_loops(sch.get_sblock("C"))
    splits = [sch.split(loop, [None, e]) for loop, e in zip(loops, extents, strict=True)]
    outer, inner = [s[0] for s in splits], [s[1] for s in splits]
    sch.reorder(*outer, *inner)
    block = sch.blockize(inner[0])
    *grid, r = outer
    r, step = sch.split(r, [None, 1])
    for loop, axis in zip(
        grid, ("blockIdx.z", "blockIdx.x", "blockIdx.y")[-len(grid) :], strict=True
    ):
        sch.bind(loop, axis)
    rank = len(extents) - 1

    def over_lanes(copy: object) -> None:
        lanes = sch.split(sch.fuse(*sch.get_loops(copy)[-rank:]), [None, 64])[1]
        sch.bind(lanes, "threadIdx.x")

    for staged in [sch.cache_read(block, operand, scope) for operand in (0, 1)]:
        sch.compute_at(staged, r, preserve_unit_loops=True)
        over_lanes(staged)
    a, b = [sch.cache_read(block, operand, "warp") for operand in (0, 1)]
    for fragment in (a, b):
        sch.compute_at(fragment, step, preserve_unit_loops=True)
    staged = sch.cache_write(block, 0, scope)
    c = sch.cache_write(block, 0, "warp")
    for copy in (c, staged):
        sch.reverse_compute_at(copy, grid[-1], preserve_unit_loops=True)
    over_lanes(staged)
    sch.decompose_reduction(block, r)
    map_b = tile.index_map_B_transposed if b_transposed else tile.index_map_B
    load_b = f"LOAD_B_TRANSPOSED_{suffix}" if b_transposed else f"LOAD_B_{suffix}"
    sch.transform_layout(a, ("write", 0), tile.index_map_A)
    sch.transform_layout(b, ("write", 0), map_b)
    sch.transform_layout(c, ("read", 0), tile.index_map_C)
    sch.tensorize(sch.get_loops(a)[-rank], getattr(tile, f"LOAD_A_{suffix}"))
    sch.tensorize(sch.get_loops(b)[-rank], getattr(tile, load_b))
    sch.tensorize(sch.get_loops(sch.get_sblock("C"))[-rank - 1], tile.COMPUTE)
    sch.tensorize(sch.get_loops(sch.get_sblock("C_init"))[-rank], tile.FILL)
    sch.tensorize(sch.get_loops(c)[-rank], getattr(tile, f"STORE_{suffix}"))
    return sch


def test_modifiers_are_arguments_of_the_compute_pair() -> None:
    blocks = load_intrinsic("mfma_f32_4x4x4_16b_f16")
    name = blocks.compute_with(cbsz=2, abid=1, blgp=3)
    assert name == "mfma_f32_4x4x4_16b_f16_compute_cbsz2_abid1_blgp3"
    text = TensorIntrin.get(name).impl.script()
    assert "2, 1, 3)" in text
    assert "vblock // 4 * 4" in TensorIntrin.get(name).desc.script()
    double = load_intrinsic("mfma_f64_16x16x4_f64")
    negated = TensorIntrin.get(double.compute_with(neg=5))
    assert "* T.float64(-1.0) + A" in negated.desc.script()
    assert not hasattr(load_intrinsic("mfma_f32_16x16x32_f16"), "compute_with")

"""A product of matrices scheduled by hand, with a loop for the pipeline in several forms."""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm.s_tir import Schedule, TensorIntrin
from tvm.s_tir.schedule import LoopRV, SBlockRV

import mfmadsl

_SIZE, _WAVES, _LANES = (128, 128, 128), 8, 64


def own_product(k_step: int, copied: bool = True) -> Schedule:
    """C = A x B^T of 128 x 128 x 128, annotated; a step takes `k_step` of K.

    If nothing is `copied` into the LDS, fragments come from memory.
    """
    tile = mfmadsl.load_intrinsic("mfma_f32_32x32x8_f16")
    sch = Schedule(mfmadsl.matmul(*_SIZE, "float16", "float32", b_transposed=True))
    block = sch.get_sblock("C")
    i, j, k = sch.get_loops(block)
    (i, i_tile), (j, j_tile), (k, k_tile) = (
        sch.split(loop, [None, extent]) for loop, extent in ((i, tile.M), (j, tile.N), (k, tile.K))
    )
    sch.reorder(i, j, k, i_tile, j_tile, k_tile)
    outer = sch.blockize(i_tile)
    i_wave, i = sch.split(i, [2, None])
    step, part = sch.split(k, [None, k_step // tile.K])
    sch.reorder(i_wave, j, step, part, i)
    wave = sch.fuse(i_wave, j)
    sch.bind(sch.add_unit_loop(wave), "blockIdx.x")
    sch.bind(wave, "threadIdx.y")
    for operand, name in ((0, "a"), (1, "b_transposed")):
        if copied:
            _copy(sch, sch.cache_read(outer, operand, "shared"), step)
        fragment = sch.cache_read(outer, operand, "warp")
        sch.compute_at(fragment, part)
        index_map = {"a": tile.index_map_A, "b_transposed": tile.index_map_B_transposed}[name]
        sch.transform_layout(fragment, ("write", 0), index_map)
        loop = _tiled(sch, fragment, tile.M, tile.K)
        load = f"own_product_load_{name}_{'shared' if copied else 'global'}"
        pair = getattr(tile, f"load_{name}")("shared" if copied else "global")
        TensorIntrin.register(load, *pair, override=True)
        sch.tensorize(loop, load)
    sums = sch.cache_write(outer, 0, "warp")
    sch.reverse_compute_at(sums, wave)
    sch.transform_layout(sums, ("read", 0), tile.index_map_C)
    sch.tensorize(_tiled(sch, sums, tile.M, tile.N), tile.STORE_GLOBAL)
    init = sch.decompose_reduction(outer, step)
    sch.tensorize(sch.get_loops(sch.get_child_blocks(init)[0])[-2], tile.FILL)
    sch.tensorize(sch.get_loops(block)[-3], tile.COMPUTE)
    sch.annotate(step, "mfmadsl.pipeline", 1)
    return sch


def assert_right(kernel: mfmadsl.Kernel) -> None:
    """It multiplies small whole numbers, exactly."""
    generator = np.random.default_rng(0)
    a, b = (generator.integers(-4, 5, (128, 128)).astype(np.float16) for _ in "ab")
    c = np.zeros((128, 128), np.float32)
    mfmadsl.sanitize(kernel, [a, b, c])
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.T.astype(np.float32))


def _copy(sch: Schedule, block: SBlockRV, step: LoopRV) -> None:
    sch.compute_at(block, step)
    rows, columns = sch.get_loops(block)[-2:]
    chunk, _ = sch.split(columns, [None, 8])
    _, wave, lane = sch.split(sch.fuse(rows, chunk), [None, _WAVES, _LANES])
    sch.bind(wave, "threadIdx.y")
    sch.bind(lane, "threadIdx.x")


def _tiled(sch: Schedule, block: SBlockRV, height: int, width: int) -> Any:
    rows, columns = sch.get_loops(block)[-2:]
    row, rows = sch.split(rows, [None, height])
    column, columns = sch.split(columns, [None, width])
    sch.reorder(row, column, rows, columns)
    return rows

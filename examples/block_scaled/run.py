"""A product of fp8 whose scales belong to blocks: C = sum over g of (A_g x B_g^T) * SA_g * SB_g.

    python examples/block_scaled/run.py [--arch gfx942] [-n 4096]

A has n x n elements, with a scale in float32 for each 128 of a row; B, stored by columns, has one
for each 128 x 128. The scales of A lie [n / 128, n]: those of an iteration are neighbours. So
DeepSeek-V3's layers multiply. The sums of 128 k never leave their registers, in float32: vector
instructions scale them and add them to C while the matrix cores work on the next ones.

The schedule is made of TVM's primitives, TensorIntrins that are generated of the instruction's
entry, and the annotation `mfmadsl.pipeline`. The kernel is compared with NumPy in float64 at a
small size, and its time in the profiler's model with that of plain fp8.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from tvm import te
from tvm.s_tir import Schedule, TensorIntrin
from tvm.s_tir.schedule import LoopRV, SBlockRV
from tvm.tirx import PrimFunc

import mfmadsl
from mfmadsl import Kernel
from mfmadsl.model import unscaled

GROUP = 128  # elements along k, and columns of B, that share a scale
LANES, DIES = 64, 8
BYTES = 16  # that a thread copies at a time


@dataclass(frozen=True)
class Plan:
    """How a chip cuts the work: `across` says that a wave holds its rows of A in registers for a
    whole iteration and goes over columns of B, else it holds columns and goes over rows."""

    element: str
    intrinsic: str
    block: tuple[int, int]
    waves: tuple[int, int]
    k_pack: int
    stages: int
    across: bool


PLANS = {
    "gfx942": Plan(
        "float8_e4m3fnuz", "mfma_f32_16x16x32_fp8_fp8", (256, 224), (4, 2), 2, 1, across=True
    ),
    "gfx950": Plan(
        "float8_e4m3fn", "mfma_scale_f32_16x16x128_f8f6f4_fp8_fp8", (256, 256), (2, 4), 1, 2,
        across=False,
    ),
}  # fmt: skip


def workload(m: int, n: int, k: int, element: str, tile: Any) -> PrimFunc:
    """The product, element by element.

    RA and RB are scales as the lanes hold them: those of a column of tiles, and of a row.
    """
    groups = k // GROUP
    a = te.placeholder((m, k), name="A", dtype=element)
    b = te.placeholder((n, k), name="B", dtype=element)
    sa = te.placeholder((groups, m), name="SA", dtype="float32")
    sb = te.placeholder((-(-n // GROUP), groups), name="SB", dtype="float32")
    g, kk = te.reduce_axis((0, groups), name="g"), te.reduce_axis((0, GROUP), name="kk")

    def product(g: Any, i: Any, j: Any) -> Any:
        x, y = (each[row, g * GROUP + kk].astype("float32") for each, row in ((a, i), (b, j)))
        return te.sum(x * y, axis=[kk])

    p = te.compute((groups, m, n), product, name="P")
    ra = te.compute((groups, m, tile.N), lambda g, i, j: sa[g, i], name="RA")
    rb = te.compute((groups, tile.M, n), lambda g, i, j: sb[j // GROUP, g], name="RB")
    c = te.compute(
        (m, n),
        lambda i, j: te.sum(p[g, i, j] * (ra[g, i, j % tile.N] * rb[g, i % tile.M, j]), axis=[g]),
        name="C",
    )
    return te.create_prim_func([a, sa, b, sb, c])


def block_scaled_schedule(m: int, n: int, k: int, plan: Plan) -> Schedule:
    """One kernel; m and n are whole blocks of the plan, and k is of whole groups."""
    tile = mfmadsl.load_intrinsic(unscaled(mfmadsl.find(plan.intrinsic)), plan.k_pack)
    sch = Schedule(workload(m, n, k, plan.element, tile))
    p, c, ra, rb = (sch.get_sblock(name) for name in ("P", "C", "RA", "RB"))

    # C says who computes what, and when.
    i, j, g = sch.get_loops(c)
    i_block, i_wave, i, i_tile = sch.split(i, _parts(plan, 0, tile.M))
    j_block, j_wave, j, j_tile = sch.split(j, _parts(plan, 1, tile.N))
    held, moving = (i, j) if plan.across else (j, i)
    sch.reorder(i_block, j_block, i_wave, j_wave, g, moving, held, i_tile, j_tile)
    sch.bind(i_block, "blockIdx.y")
    sch.bind(j_block, "blockIdx.x")
    wave = sch.fuse(i_wave, j_wave)
    sch.bind(wave, "threadIdx.y")

    # A row or a column of tiles of P is computed at a time.
    of_lds = [sch.cache_read(block, 0, "shared") for block in (ra, rb)]
    sch.compute_at(p, moving, preserve_unit_loops=True)
    for_rows, for_columns = (g, moving) if plan.across else (moving, g)
    for block, at in ((ra, for_rows), (rb, for_columns)):
        sch.compute_at(block, at, preserve_unit_loops=True)
    rows, columns, k_loop = sch.get_loops(p)[-3:]
    rows, row = sch.split(rows, [None, tile.M])
    columns, column = sch.split(columns, [None, tile.N])
    k_step, k_tile = sch.split(k_loop, [None, tile.K])
    sch.reorder(rows, columns, k_step, row, column, k_tile)
    p_tile = sch.blockize(row)

    # Operands go through the LDS into fragments, scales through the LDS into registers.
    for place, at, index_map, intrinsic in (
        (0, for_rows, tile.index_map_A, tile.LOAD_A_SHARED),
        (1, for_columns, tile.index_map_B_transposed, tile.LOAD_B_TRANSPOSED_SHARED),
    ):
        load(sch, p_tile, place, at, g, index_map, intrinsic, plan)
    for block in of_lds:
        sch.compute_at(block, g, preserve_unit_loops=True)
        by_threads(sch, sch.fuse(*sch.get_loops(block)[-2:]), plan)

    # P, the scales and C in registers: a lane has the same elements of all.
    for block in (p_tile, ra, rb):
        sch.set_scope(block, 0, "warp")
        sch.transform_layout(block, ("write", 0), lambda g, i, j: (g, *tile.index_map_C(i, j)))
    store = sch.cache_write(c, 0, "warp")
    sch.transform_layout(c, ("write", 0), tile.index_map_C)
    sch.reverse_compute_at(store, wave, preserve_unit_loops=True)
    for block in (ra, rb, store):
        by_lanes(sch, block, tile)
    deal(sch, sch.get_loops(c)[-2:], tile)

    init = sch.decompose_reduction(p_tile, k_step)
    sch.tensorize(sch.get_loops(sch.get_child_blocks(init)[0])[-2], tile.FILL)
    sch.tensorize(sch.get_loops(p)[-3], tile.COMPUTE)
    sch.decompose_reduction(c, g)
    sch.annotate(g, "mfmadsl.pipeline", plan.stages)
    sch.annotate(g, "mfmadsl.grid.group", 8)
    sch.annotate(g, "mfmadsl.grid.dies", DIES)
    return sch


def _parts(plan: Plan, side: int, size: int) -> list[int | None]:
    """An extent's blocks, waves, tiles of a wave, and what is of a tile."""
    return [None, plan.waves[side], plan.block[side] // plan.waves[side] // size, size]


def load(
    sch: Schedule, tile: SBlockRV, place: int, at: LoopRV, step: LoopRV, index_map: Any,
    intrinsic: str, plan: Plan,
) -> None:  # fmt: skip
    """Copy what a block reads into the LDS in each step, and load fragments of it by a
    TensorIntrin at a loop within."""
    height, width = (int(x) for x in TensorIntrin.get(intrinsic).desc.params[1].shape)
    fragments = sch.cache_read(tile, place, "warp")
    sch.compute_at(fragments, at, preserve_unit_loops=True)
    rows, k = sch.get_loops(fragments)[-2:]
    several, rows = sch.split(rows, [None, height])
    steps, k = sch.split(k, [None, width])
    sch.reorder(several, steps, rows, k)
    fragment = sch.blockize(rows)
    copy = sch.cache_read(fragment, 0, "shared")
    sch.compute_at(copy, step, preserve_unit_loops=True)
    rows, k = sch.get_loops(copy)[-2:]
    chunk, _ = sch.split(k, [None, BYTES])
    by_threads(sch, sch.fuse(rows, chunk), plan)
    sch.transform_layout(fragment, ("write", 0), index_map)
    sch.tensorize(fragment, intrinsic)


def by_threads(sch: Schedule, loop: LoopRV, plan: Plan) -> None:
    """Deal a loop's iterations out to the threads of a workgroup."""
    _, wave, lane = sch.split(loop, [None, plan.waves[0] * plan.waves[1], LANES])
    sch.bind(wave, "threadIdx.y")
    sch.bind(lane, "threadIdx.x")


def by_lanes(sch: Schedule, block: SBlockRV, tile: Any) -> None:
    """Have each lane compute its own elements of tiles of C."""
    rows, columns = sch.get_loops(block)[-2:]
    rows, row = sch.split(rows, [None, tile.M])
    columns, column = sch.split(columns, [None, tile.N])
    sch.reorder(rows, columns, row, column)
    deal(sch, (row, column), tile)


def deal(sch: Schedule, loops: Sequence[LoopRV], tile: Any) -> None:
    """Of a tile of 16 x 16, a lane has four rows of a column."""
    row, column = loops
    four, row = sch.split(row, [tile.M // 4, 4])
    sch.reorder(four, column, row)
    sch.bind(sch.fuse(four, column), "threadIdx.x")


def arrays(m: int, n: int, k: int, element: str, seed: int = 0) -> list[Any]:
    """A, SA, B, SB, and room for C."""
    rng, kind = np.random.default_rng(seed), getattr(ml_dtypes, element)
    a, b = (rng.standard_normal((rows, k)).astype(kind) for rows in (m, n))
    groups = k // GROUP
    shapes = (groups, m), (-(-n // GROUP), groups)
    sa, sb = (rng.uniform(0.5, 2, shape).astype(np.float32) for shape in shapes)
    return [a, sa, b, sb, np.zeros((m, n), np.float32)]


def error(given: Sequence[Any]) -> float:
    """How far C is off, as a part of what the rounding of float32 allows."""
    a, sa, b, sb, c = (x.astype(np.float64) for x in given)
    x = a * np.repeat(sa.T, GROUP, axis=1)
    y = b * np.repeat(np.repeat(sb, GROUP, axis=0)[: len(b)], GROUP, axis=1)
    bound = 2.0**-23 * (a.shape[1] + 3) * (np.abs(x) @ np.abs(y).T)
    return float((np.abs(c - x @ y.T) / bound).max())


def seconds(kernel: Kernel, given: Sequence[Any]) -> float:
    """What a kernel takes on a whole chip, in the profiler's model."""
    time = mfmadsl.profile(kernel, given).on_chip
    assert time is not None
    return time.seconds


def main() -> int:
    """Build, run, compare; 1 if a number is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--arch", default="gfx942", choices=PLANS, help="the chip")
    parser.add_argument("-n", type=int, default=4096, help="rows, columns and k of the large one")
    options = parser.parse_args()
    plan = PLANS[options.arch]
    small = *plan.block, 4 * GROUP
    given = arrays(*small, plan.element)
    mfmadsl.sanitize(mfmadsl.build(block_scaled_schedule(*small, plan), options.arch), given)
    off = error(given)
    shape = " x ".join(map(str, small))
    print(f"{shape} under the sanitizer: {'agrees with' if off <= 1 else 'DIFFERS from'} NumPy")
    n = -(-options.n // GROUP) * GROUP
    rows, columns = (-(-n // size) * size for size in plan.block)
    large = rows, columns, n
    kernel = mfmadsl.build(block_scaled_schedule(*large, plan), options.arch)
    plain = mfmadsl.matmul(n, n, n, plan.element, "float32", b_transposed=True)
    other = mfmadsl.build(mfmadsl.gemm_schedule(plain, arch=options.arch), options.arch)
    given = arrays(*large, plan.element)
    mine = seconds(kernel, given)
    theirs = seconds(other, [given[0][:n], given[2][:n], np.zeros((n, n), np.float32)])
    print(f"{' x '.join(map(str, large))} on {options.arch}, modelled:")
    print(f"    scales of blocks{mine * 1e6:8.1f} us, {kernel.registers.spilled} registers spilled")
    print(f"    plain fp8, n = {n}{theirs * 1e6:8.1f} us: {theirs / mine:.2f} of its speed")
    return 0 if off <= 1 else 1


if __name__ == "__main__":
    sys.exit(main())

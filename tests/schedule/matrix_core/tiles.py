"""A schedule that uses every pair of a generated module: tiles of a wave each."""

from __future__ import annotations

from typing import Any

from tvm import te
from tvm.s_tir import Schedule
from tvm.tirx import Expr, PrimFunc

from mfmadsl.model import Intrinsic
from mfmadsl.schedule import load_intrinsic, matmul

TILES = 2  # along each of M, N, K and the batch


def workload(intrinsic: Intrinsic, b_transposed: bool, k_pack: int = 1) -> PrimFunc:
    """Two by two by two tiles, for each of twice as many batches as there are blocks."""
    m, n, k = (TILES * extent for extent in (intrinsic.m, intrinsic.n, k_pack * intrinsic.k))
    if intrinsic.sparse or intrinsic.scales:
        own: PrimFunc = load_intrinsic(intrinsic).matmul(m, n, k, b_transposed)
        return own
    types = intrinsic.a.type.dtype, intrinsic.b.type.dtype, intrinsic.c.type.dtype
    if intrinsic.blocks == 1:
        return matmul(m, n, k, types[0], types[2], b_transposed, types[1])
    batch = TILES * intrinsic.blocks
    a = te.placeholder((batch, m, k), name="A", dtype=types[0])
    shape = (batch, n, k) if b_transposed else (batch, k, n)
    b = te.placeholder(shape, name="B", dtype=types[1])
    r = te.reduce_axis((0, k), name="k")

    def product(x: Expr, i: Expr, j: Expr) -> Expr:
        right = b[x, j, r] if b_transposed else b[x, r, j]
        return te.sum(a[x, i, r].astype(types[2]) * right.astype(types[2]), axis=[r])

    return te.create_prim_func([a, b, te.compute((batch, m, n), product, name="C")])


def tile_schedule(
    intrinsic: Intrinsic, scope: str, b_transposed: bool, compute: str = "", k_pack: int = 1
) -> Schedule:
    """The workload with a tile for each workgroup of one wave, C through shared memory as well.

    `compute` is the pair to use in place of the plain one, `k_pack` the instructions of a tile.
    """
    tile = load_intrinsic(intrinsic, k_pack)
    suffix = scope.replace(".", "_").upper()
    sch = Schedule(workload(intrinsic, b_transposed, k_pack))
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
    axes = ("blockIdx.z", "blockIdx.x", "blockIdx.y")[-len(grid) :]
    for loop, axis in zip(grid, axes, strict=True):
        sch.bind(loop, axis)
    rank = len(extents) - 1

    def over_lanes(copy: Any) -> None:
        lanes = sch.split(sch.fuse(*sch.get_loops(copy)[-rank:]), [None, 64])[1]
        sch.bind(lanes, "threadIdx.x")

    names = [str(region).partition("[")[0] for region in sch.get(block).reads]
    for staged in [sch.cache_read(block, x, scope) for x in range(len(names))]:
        sch.compute_at(staged, r, preserve_unit_loops=True)
        over_lanes(staged)
    fragments = [sch.cache_read(block, x, "warp") for x in range(len(names))]
    for fragment in fragments:
        sch.compute_at(fragment, step, preserve_unit_loops=True)
    staged = sch.cache_write(block, 0, scope)
    c = sch.cache_write(block, 0, "warp")
    for copy in (c, staged):
        sch.reverse_compute_at(copy, grid[-1], preserve_unit_loops=True)
    over_lanes(staged)
    sch.decompose_reduction(block, r)
    turned = ("B", "SCALE_B") if b_transposed else ()
    loads = []
    for fragment, name in zip(fragments, names, strict=True):
        index_map = getattr(tile, f"index_map_{name}{'_transposed' if name in turned else ''}")
        loads.append(f"LOAD_{name}{'_TRANSPOSED' if name in turned else ''}_{suffix}")
        sch.transform_layout(fragment, ("write", 0), index_map)
    sch.transform_layout(c, ("read", 0), tile.index_map_C)
    for fragment, name in zip(fragments, loads, strict=True):
        sch.tensorize(sch.get_loops(fragment)[-rank], getattr(tile, name))
    sch.tensorize(sch.get_loops(sch.get_sblock("C"))[-rank - 1], compute or tile.COMPUTE)
    sch.tensorize(sch.get_loops(sch.get_sblock("C_init"))[-rank], tile.FILL)
    sch.tensorize(sch.get_loops(c)[-rank], getattr(tile, f"STORE_{suffix}"))
    return sch

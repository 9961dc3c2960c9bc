"""`cpu_gemm_schedule`: a product of matrices on a CPU, over packed panels and register tiles."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType

import tvm
from tvm import s_tir, tirx
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import LoopRV, SBlockRV
from tvm.tirx import Expr, PrimFunc

from mfmadsl.schedule.cpu_tiling import CpuTiling
from mfmadsl.schedule.normalise import Product
from mfmadsl.schedule.tile import init_loop


@dataclass(frozen=True)
class Builder:
    """The primitives that make a schedule of a product in its plain form."""

    sch: Schedule
    product: Product
    tile: ModuleType
    tiling: CpuTiling

    def build(self) -> None:
        sch, tile, tiling, main = self.sch, self.tile, self.tiling, self.product.block
        width = tile.M * tiling.rows, tile.N * tiling.columns
        sch.pad_einsum(main, [1, *width, tile.K])
        a, b = (self._copied(operand) for operand in (0, 1))
        packed = self._lay_out_a(a)
        sch.transform_layout(b, ("write", 0), self._panel_b)
        s, i, j, k = sch.get_loops(main)
        i0, i1, i2 = sch.split(i, [None, tiling.rows, tile.M])
        j0, j1, j2 = sch.split(j, [None, tiling.columns, tile.N])
        k0, k1 = sch.split(k, [None, tile.K])
        sch.reorder(s, i0, j0, i1, j1, k0, i2, j2, k1)
        outer = sch.blockize(i2)
        sums = sch.cache_write(outer, 0, "local")
        sch.transform_layout(outer, ("write", 0), self._tile_c)
        sch.reverse_compute_at(sums, j1, preserve_unit_loops=True)
        chunk = sch.fuse(s, i0, j0)
        sch.compute_at(b, chunk, preserve_unit_loops=True)
        if packed:
            sch.compute_at(a, i1, preserve_unit_loops=True)
        if tiling.parallel:
            sch.parallel(chunk)
        init = sch.decompose_reduction(outer, k0)
        extents = [tile.M, tile.N, tile.K]
        sch.tensorize(sch.get_loops(main)[-len(extents)], tile.COMPUTE)
        sch.tensorize(init_loop(sch, sch.get_child_blocks(init)[0], extents[:2]), tile.FILL)
        self._store(sums)
        self._pack_b(b)
        if packed:
            self._pack_a(a)

    def _copied(self, operand: int) -> SBlockRV:
        sch = self.sch
        own = (self.product.a, self.product.b)[operand]
        copy = sch.get_producers(self.product.block)[operand]
        if sch.get(copy).name_hint != sch.get(own).name_hint:
            sch.compute_inline(own)
        return copy

    def _lay_out_a(self, a: SBlockRV) -> bool:
        sch, tile = self.sch, self.tile
        memory = self.product.memory[0]
        _, m, _, k = self.product.extents
        padded = m % (tile.M * self.tiling.rows) or k % tile.K
        if memory.axis == "k":
            if not padded and not memory.computed:
                sch.compute_inline(a)
                return False
            sch.transform_layout(a, ("write", 0), lambda s, i, k: (s, i // tile.M, i % tile.M, k))
        else:
            sch.transform_layout(a, ("write", 0), lambda s, i, k: (s, i // tile.M, k // tile.K, *tile.a_slot(i % tile.M, k % tile.K)))
        return True

    def _panel_b(self, s: Expr, j: Expr, k: Expr) -> tuple[Expr, ...]:
        tile = self.tile
        return s, j // tile.N, k // tile.K, *tile.b_slot(k % tile.K, j % tile.N)

    def _tile_c(self, s: Expr, i: Expr, j: Expr) -> tuple[Expr, ...]:
        tile = self.tile
        return s, i // tile.M, j // tile.N, *tile.c_slot(i % tile.M, j % tile.N)

    def _store(self, sums: SBlockRV) -> None:
        sch = self.sch
        while (after := sch.get_consumers(sums)) and len(after) == 1:
            sch.reverse_compute_inline(after[0])
        *_, rows, columns = sch.get_loops(sums)
        _, lanes = sch.split(columns, [None, self.tile.WIDTH])
        sch.vectorize(lanes)
        sch.unroll(rows)
        sch.unroll(_)

    def _pack_b(self, b: SBlockRV) -> None:
        sch, tile = self.sch, self.tile
        *_, j, k = sch.get_loops(b)
        j0, j1 = sch.split(j, [None, tile.N])
        k0, k1 = sch.split(k, [None, tile.K])
        sch.reorder(j0, k0, j1, k1)
        _, lanes = sch.split(j1, [None, tile.WIDTH])
        sch.vectorize(sch.fuse(lanes, k1))

    def _pack_a(self, a: SBlockRV) -> None:
        sch, tile = self.sch, self.tile
        *_, i, k = sch.get_loops(a)
        if self.product.memory[0].axis == "k":
            _, lanes = sch.split(k, [None, tile.WIDTH])
            sch.vectorize(lanes)
        else:
            k0, k1 = sch.split(k, [None, tile.K])
            sch.reorder(k0, i, k1)
            sch.vectorize(sch.fuse(i, k1))

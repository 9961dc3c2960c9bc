"""The primitives of `cpu_gemm_schedule`: packed panels and register tiles.

for chunk in T.parallel(...):            rows x columns tiles of C
    B's panels of the chunk              [columns of tiles, steps along k, register, element]
    for i in rows:
        A's rows of the tile             as they lie, or packed
        for j in columns:
            sums = FILL                  in vector registers
            for k in steps: COMPUTE      with the panel some steps further on its way
            C = sums                     with what follows the product
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType

from tvm.ir import TensorLoad
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import LoopRV, SBlockRV
from tvm.tirx import BufferStore, Expr, IntImm, Var

from mfmadsl.model import Microkernel
from mfmadsl.passes.cpu.prefetch import PREFETCH
from mfmadsl.schedule.cpu.tiling import CpuTiling
from mfmadsl.schedule.load import load_intrinsic
from mfmadsl.schedule.product.epilogue import fold_forward, folded_back, reads_plainly
from mfmadsl.schedule.product.inline import inline_producers
from mfmadsl.schedule.product.memory import number
from mfmadsl.schedule.product.nest import SCHEDULED, same
from mfmadsl.schedule.product.normalise import Product
from mfmadsl.schedule.tensor_intrin import init_loop

_LINE = 256
"""Bytes of a column of A that are packed at once: whole cache lines, and few pages."""

_AHEAD = 16
"""Steps along k that B's registers are asked for ahead: each takes six cycles or more, and a line
comes from the second cache in fifteen."""

_LANES = 16
"""Elements of a vector of what no micro-kernel computes."""


@dataclass(frozen=True)
class CpuBuilder:
    """The primitives that make a schedule of a product in its plain form."""

    sch: Schedule
    product: Product
    microkernel: Microkernel
    tiling: CpuTiling

    def build(self) -> None:
        """Apply all primitives."""
        sch, tiling, main = self.sch, self.tiling, self.product.block
        m, n, k = self._tile
        sch.pad_einsum(main, [1, m * tiling.rows, n * tiling.columns, k])
        direct = self._reads_a and not self._pads_a and not tiling.pack_a
        if direct:
            sch.compute_inline(self.product.a)
        outer, (chunk, row, column, step) = self._cut(main)
        a = None if direct else self._stage_a(outer, row)
        b = self._stage_b(outer, chunk)
        sums = sch.cache_write(outer, 0, "global")
        sch.transform_layout(outer, ("write", 0), self._tile_of_c)
        sch.reverse_compute_at(sums, column, preserve_unit_loops=True)
        sch.annotate(chunk, SCHEDULED, 1)
        if tiling.parallel:
            sch.parallel(chunk)
        sch.annotate(step, PREFETCH, _AHEAD)
        init = sch.decompose_reduction(outer, step)
        module = self._module
        sch.tensorize(sch.get_loops(main)[-3], module.COMPUTE)
        sch.tensorize(init_loop(sch, sch.get_child_blocks(init)[0], [m, n]), module.FILL)
        self._vectorize_b(b)
        if a is not None:
            self._vectorize_a(a)
        self._vectorize_c(sums)
        _fold(sch, sums)

    @property
    def _module(self) -> ModuleType:
        return load_intrinsic(self.microkernel)

    @property
    def _tile(self) -> tuple[int, int, int]:
        return self.microkernel.m, self.microkernel.n, self.microkernel.k

    @property
    def _width(self) -> int:
        """Sums of a vector register."""
        return self.microkernel.c.elements

    @property
    def _pack(self) -> int:
        """Elements of B that lie side by side in a register, for one sum."""
        return self.microkernel.b.elements // self._width

    def _cut(self, main: SBlockRV) -> tuple[SBlockRV, tuple[LoopRV, LoopRV, LoopRV, LoopRV]]:
        """Tiles and chunks; (a block of one tile and step, the loops of chunks, rows of tiles,
        columns of tiles, and steps along k)."""
        sch, tiling = self.sch, self.tiling
        s, i, j, k = sch.get_loops(main)
        m, n, depth = self._tile
        group = self._rows_packed_together
        i0, i1, i2, i3 = sch.split(i, [None, tiling.rows // group, group, m])
        j0, j1, j2 = sch.split(j, [None, tiling.columns, n])
        k0, k1 = sch.split(k, [None, depth])
        sch.reorder(s, i0, j0, i1, i2, j1, k0, i3, j2, k1)
        outer = sch.blockize(i3)
        return outer, (sch.fuse(s, i0, j0), i1, j1, k0)

    def _stage_b(self, outer: SBlockRV, chunk: LoopRV) -> SBlockRV:
        """B's panels of a chunk, register after register."""
        slot = self._module.b_slot
        packed: SBlockRV = self.sch.cache_read(outer, 1, "global")
        self._lay_in_panels(packed, self._tile[1], lambda j, k: slot(k, j))
        return self._staged(packed, chunk)

    def _stage_a(self, outer: SBlockRV, row: LoopRV) -> SBlockRV:
        """A's rows of a tile, packed."""
        sch, m = self.sch, self._tile[0]
        packed: SBlockRV = sch.cache_read(outer, 0, "global")
        if not self._along_k:
            self._lay_in_panels(packed, m, self._module.a_slot)
            return self._staged(packed, row)
        sch.transform_layout(packed, ("write", 0), lambda s, i, k: (s, i // m, i % m, k))
        if self.tiling.pack_a:
            # Rows at the distance that they have in memory would share a few sets of a cache.
            sch.storage_align(packed, 0, axis=2, factor=64, offset=16)
        return self._staged(packed, row)

    def _lay_in_panels(
        self, packed: SBlockRV, width: int, slot: Callable[[Expr, Expr], tuple[Expr, Expr]]
    ) -> None:
        """Bring [s, x, k] into panels of so many x: step after step along k, its registers."""
        depth = self._tile[2]
        self.sch.transform_layout(
            packed, ("write", 0),
            lambda s, x, k: (s, x // width, k // depth, *slot(x % width, k % depth)),
        )  # fmt: skip

    def _staged(self, packed: SBlockRV, loop: LoopRV) -> SBlockRV:
        """Make a copy in a loop, with what computes its elements."""
        self.sch.compute_at(packed, loop, preserve_unit_loops=True)
        inline_producers(self.sch, packed)
        return packed

    @property
    def _rows_packed_together(self) -> int:
        """Rows of tiles: several where A lies by columns, to take whole cache lines of one."""
        if self._along_k:
            return 1
        most = max(1, _LINE // (self._tile[0] * self.microkernel.a.type.bits // 8))
        return max(g for g in range(1, most + 1) if self.tiling.rows % g == 0)

    @property
    def _along_k(self) -> bool:
        """Whether rows of A are packed as rows: an element of a register is the k of that row."""
        a = self.microkernel.a
        rows = all(a.slot(i, k) == (i, k) for i in range(a.shape[0]) for k in range(a.shape[1]))
        return rows and self.product.memory[0].axis == "k"

    @property
    def _reads_a(self) -> bool:
        """Whether each row of A is one of the array, and nothing but that."""
        copy = self.sch.get(self.product.a).body
        if self.product.memory[0].computed or not self._along_k:
            return False
        if not isinstance(copy, BufferStore) or not isinstance(copy.value, TensorLoad):
            return False
        indices, (_, row, column) = list(copy.value.indices), copy.indices
        plain = all(isinstance(index, Var | IntImm) for index in indices)
        at = [place for place, index in enumerate(indices) if same(index, row)]
        return plain and at == [len(indices) - 2] and same(indices[-1], column)

    @property
    def _pads_a(self) -> bool:
        m, _, depth = self._tile
        _, rows, _, k = (number(extent) for extent in self.product.extents)
        assert rows is not None
        assert k is not None
        return rows % (m * self.tiling.rows) != 0 or k % depth != 0

    def _tile_of_c(self, s: Expr, i: Expr, j: Expr) -> tuple[Expr, ...]:
        m, n, _ = self._tile
        return s, i // m, j // n, *self._module.c_slot(i % m, j % n)

    def _vectorize_b(self, packed: SBlockRV) -> None:
        sch = self.sch
        _, n, depth = self._tile
        *_, j, k = sch.get_loops(packed)
        j0, j1 = sch.split(j, [None, n])
        k0, k1 = sch.split(k, [None, depth])
        sch.reorder(k0, j0, j1, k1)
        j1, lanes = sch.split(j1, [None, self._width])
        if depth > self._pack:
            # A tile register has rows of several k.
            rows, k1 = sch.split(k1, [None, self._pack])
            sch.reorder(j1, rows, lanes, k1)
        sch.vectorize(sch.fuse(lanes, k1))

    def _vectorize_a(self, packed: SBlockRV) -> None:
        sch = self.sch
        _, _, depth = self._tile
        *_, i, k = sch.get_loops(packed)
        if self._along_k:
            _, lanes = sch.split(k, [None, self._width * self._pack])
        else:
            k0, k1 = sch.split(k, [None, depth])
            sch.reorder(k0, i, k1)
            lanes = k1 if depth > self._pack else sch.fuse(i, k1)
        sch.vectorize(lanes)

    def _vectorize_c(self, sums: SBlockRV) -> None:
        sch = self.sch
        *_, i, j = sch.get_loops(sums)
        vectors, lanes = sch.split(j, [None, self._width])
        sch.vectorize(lanes)
        sch.unroll(vectors)
        sch.unroll(i)


def _fold(sch: Schedule, sums: SBlockRV) -> None:
    """Make what follows the product a part of its store; what cannot be, loops of its own."""
    last = fold_forward(sch, sums)
    if len(last) == 1 and reads_plainly(sch, sums, last[0]) and folded_back(sch, last[0]):
        return
    for each in last:
        _element_loops(sch, each)


def _element_loops(sch: Schedule, block: SBlockRV) -> None:
    """Compute the elements of an element-wise block by themselves."""
    *outer, inner = sch.get_loops(block)
    _, lanes = sch.split(inner, [None, _LANES])
    sch.vectorize(lanes)
    if outer:
        sch.parallel(outer[0])

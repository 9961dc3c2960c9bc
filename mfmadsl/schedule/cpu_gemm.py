"""`cpu_gemm_schedule`: a product of matrices on a CPU, over packed panels and register tiles.

for chunk in T.parallel(...):            rows x columns tiles of C
    B's panels of the chunk              [columns of tiles, steps along k, register, element]
    for i in rows:
        A's rows of the tile             as they lie, or packed
        for j in columns:
            sums = FILL                  in vector registers
            for k in steps: COMPUTE
            C = sums                     with what follows the product
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType

import tvm
from tvm import s_tir
from tvm.ir import TensorLoad
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import LoopRV, SBlockRV
from tvm.tirx import BufferStore, Expr, IntImm, IterVar, PrimFunc, Var

from mfmadsl.argument import check_integer, check_type
from mfmadsl.error import ArgumentError
from mfmadsl.language import find_microkernel, microkernels
from mfmadsl.model import Cpu, Microkernel
from mfmadsl.prim_func import prim_func
from mfmadsl.schedule.cpu_tiling import (
    CpuShape,
    CpuTiling,
    check_cpu_tiling,
    default_cpu_tiling,
)
from mfmadsl.schedule.dataflow import check_consumers, unrelated
from mfmadsl.schedule.epilogue import fold_forward, reads_plainly
from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.host_cache import host_caches
from mfmadsl.schedule.host_cpu import check_features, host_cpu
from mfmadsl.schedule.load import load_intrinsic
from mfmadsl.schedule.memory import number
from mfmadsl.schedule.nest import SCHEDULED, nest_of, same
from mfmadsl.schedule.normalise import Product, normalise
from mfmadsl.schedule.prepare import prepared
from mfmadsl.schedule.signed import schedule_column_sums, without_sign
from mfmadsl.schedule.stage import inline_producers
from mfmadsl.schedule.sum_of_products import product_nest, sum_of_products
from mfmadsl.schedule.tile import init_loop
from mfmadsl.tvm_refusal import tvm_refusal

_LINE = 256
"""Bytes of a column of A that are packed at once: whole cache lines, and few pages."""

_SIGNED = ("int8", "int8", "int32")

_LANES = 16
"""Elements of a vector of what no micro-kernel computes."""


def cpu_gemm_schedule(
    workload: PrimFunc | tvm.IRModule,
    microkernel: Microkernel | str | None = None,
    cpu: Cpu | None = None,
    tiling: CpuTiling | None = None,
    threads: int | None = None,
) -> Schedule:
    """A schedule of a GEMM on a CPU, made by TVM's primitives, ready for `mfmadsl.build_for_cpu`.

    `workload` is what `gemm_schedule` takes: A, B and C by rows or by columns, alone or in batches,
    with element-wise blocks before and after; its extents are numbers. `microkernel` is one, or the
    name of one in the library, and `tiling` how the work is cut; without them the ones are taken
    that should be the fastest for `threads` threads of the CPU, this machine's if none is given.

    Raises ScheduleError for what is no GEMM, cannot be fused, or has no micro-kernel, and
    ArgumentError for a CPU that cannot run it.
    """
    function, name, sums = _prepared(workload, cpu)
    sch = s_tir.Schedule(tvm.IRModule({"main": function.with_attr("global_symbol", "main")}))
    nest = product_nest(function, name)
    if sums is not None:
        schedule_column_sums(sch, sch.get_sblock(sums))
    for operand in unrelated(function, nest):
        sch.compute_inline(sch.get_sblock(operand.name))
    schedule_cpu_gemm(sch, sch.get_sblock(name), microkernel, cpu, tiling, threads)
    # What was left is said by its reason.
    check_consumers(function, nest.block.writes[0].source)
    return sch


def schedule_cpu_gemm(
    sch: Schedule,
    block: SBlockRV,
    microkernel: Microkernel | str | None = None,
    cpu: Cpu | None = None,
    tiling: CpuTiling | None = None,
    threads: int | None = None,
) -> None:
    """Schedule one product among the blocks of a schedule of your own, with what follows it.

    The arguments are those of `cpu_gemm_schedule`, and so are the errors.
    """
    check_type("sch", sch, Schedule, "a Schedule")
    check_type("block", block, SBlockRV, "a block of the schedule, as `sch.get_sblock` gives it")
    with tvm_refusal("workload", ScheduleError):
        product = normalise(sch, block)
        chosen, taken = _chosen(product, microkernel, cpu, tiling, threads)
        _Builder(sch, product, chosen, taken).build()


def cpu_gemm_tiling(
    workload: PrimFunc | tvm.IRModule,
    microkernel: Microkernel | str | None = None,
    cpu: Cpu | None = None,
    threads: int | None = None,
) -> CpuTiling:
    """The tiling that `cpu_gemm_schedule` takes if it is given none: a start for your own."""
    function, name, _ = _prepared(workload, cpu)
    sch = s_tir.Schedule(function)
    product = normalise(sch, sch.get_sblock(name))
    return _chosen(product, microkernel, cpu, None, threads)[1]


def _prepared(
    workload: PrimFunc | tvm.IRModule, cpu: Cpu | None
) -> tuple[PrimFunc, str, str | None]:
    """(the function, its product's block, the block that adds up B's columns, if it needs one).

    The factors stand in the order in which micro-kernels multiply their types.
    """
    function = prim_func("workload", workload, ScheduleError)
    product = sum_of_products(product_nest(function))
    given = {str(factor.source.dtype) for factor in (product.first, product.second)}
    orders = {(a, b) for a, b, _ in map(_types, microkernels().values()) if {a, b} == given}
    function = prepared(function, first=next(iter(orders))[0] if len(orders) == 1 else None)
    product = sum_of_products(product_nest(function))
    types = str(product.first.source.dtype), str(product.second.source.dtype), product.sum_type
    if types != _SIGNED or any(_running(types, _cpu(cpu))):
        return function, product.nest.name, None
    function, sums = without_sign(function)
    return function, product.nest.name, sums


def _cpu(asked: Cpu | None) -> Cpu:
    """The CPU that is asked for, or this machine's."""
    cpu = host_cpu() if asked is None else asked
    check_type("cpu", cpu, Cpu, "a Cpu, as `mfmadsl.model.cpu` gives it")
    return cpu


def _chosen(
    product: Product,
    asked: Microkernel | str | None,
    cpu: Cpu | None,
    tiling: CpuTiling | None,
    threads: int | None,
) -> tuple[Microkernel, CpuTiling]:
    """The micro-kernel and the tiling that are asked for, or chosen."""
    cpu = _cpu(cpu)
    threads = tvm.runtime.num_threads() if threads is None else check_integer("threads", threads)
    if threads < 1:
        raise ArgumentError(f"threads: {threads}, but there is one or more")
    if tiling is not None:
        check_cpu_tiling(tiling)
    name = tiling.microkernel if asked is None and tiling is not None else asked
    found = find_microkernel(name) if isinstance(name, str) else name
    offered = _fitting(product, cpu) if found is None else [found]
    if found is not None:
        check_features(found, cpu)
        _check_types(found, product.types)
        if tiling is not None and tiling.microkernel != found.name:
            raise ScheduleError(
                f"tiling: it is for {tiling.microkernel}, but {found.name} is asked for"
            )
    shape = _shape(product)
    if tiling is not None:
        return offered[0], tiling
    taken = default_cpu_tiling(shape, offered, host_caches(), threads)
    return next(each for each in offered if each.name == taken.microkernel), taken


def _shape(product: Product) -> CpuShape:
    """The extents as numbers."""
    extents = [number(extent) for extent in product.extents]
    if None in extents:
        raise ScheduleError(
            "workload: an extent is a symbol, but a schedule for a CPU is of one size"
        )
    if 0 in extents:
        raise ScheduleError("workload: an extent is 0: there is nothing to multiply")
    s, m, n, k = (int(extent) for extent in extents if extent is not None)
    a = product.memory[0]
    along = a.axis == "k" and not a.computed and isinstance(a.distance, int)
    row = a.distance * a.size if along and isinstance(a.distance, int) else None
    return CpuShape(s, m, n, k, row)


def _fitting(product: Product, cpu: Cpu) -> list[Microkernel]:
    """The micro-kernels of the library for the types, of the widest vectors that the CPU has."""
    runs = list(_running(product.types, cpu))
    if not runs:
        fitting = [each for each in microkernels().values() if _types(each) == product.types]
        needed = dict.fromkeys(" and ".join(each.features) for each in fitting)
        there = dict.fromkeys(
            _spoken(_types(each)) for each in microkernels().values()
            if not cpu.missing(each.features)
        )  # fmt: skip
        hint = (
            f": they need {', or '.join(needed)}; it has {', '.join(cpu.features)}"
            if needed
            else f"; there are those of {', of '.join(there)}: cast in a block before"
        )
        raise ScheduleError(
            f"workload: no micro-kernel of the CPU {cpu.name} multiplies {_spoken(product.types)}"
            f"{hint}"
        )
    # Tile registers take a copy of the sums in each step.
    vectors = [each for each in runs if not each.tiles] or runs
    return [each for each in vectors if each.bits == max(other.bits for other in vectors)]


def _running(types: tuple[str, str, str], cpu: Cpu) -> Iterator[Microkernel]:
    """The micro-kernels of the library for the types that the CPU can run."""
    for each in microkernels().values():
        if _types(each) == types and not cpu.missing(each.features):
            yield each


def _types(microkernel: Microkernel) -> tuple[str, str, str]:
    a, b, c = (operand.type.dtype for operand in microkernel.operands.values())
    return a, b, c


def _check_types(microkernel: Microkernel, types: tuple[str, str, str]) -> None:
    if _types(microkernel) != types:
        raise ScheduleError(
            f"workload: {microkernel.name} multiplies {_spoken(_types(microkernel))}, not"
            f" {_spoken(types)}"
        )


def _spoken(types: tuple[str, str, str]) -> str:
    return f"{types[0]} and {types[1]} into {types[2]}"


@dataclass(frozen=True)
class _Builder:
    """The primitives that make a schedule of a product in its plain form."""

    sch: Schedule
    product: Product
    microkernel: Microkernel
    tiling: CpuTiling

    def build(self) -> None:
        sch, tiling, main = self.sch, self.tiling, self.product.block
        m, n, k = self._tile
        sch.pad_einsum(main, [1, m * tiling.rows, n * tiling.columns, k])
        direct = self._reads_a and not self._pads_a and not self.tiling.pack_a
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
        init = sch.decompose_reduction(outer, step)
        module = self._module
        sch.tensorize(sch.get_loops(main)[-3], module.COMPUTE)
        sch.tensorize(init_loop(sch, sch.get_child_blocks(init)[0], [m, n]), module.FILL)
        self._vectorize_b(b)
        if a is not None:
            self._vectorize_a(a)
        self._vectorize_c(sums)
        self._fold(sums)

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
        sch, slot = self.sch, self._module.b_slot
        _, n, depth = self._tile
        packed: SBlockRV = sch.cache_read(outer, 1, "global")
        sch.transform_layout(
            packed, ("write", 0),
            lambda s, j, k: (s, j // n, k // depth, *slot(k % depth, j % n)),
        )  # fmt: skip
        sch.compute_at(packed, chunk, preserve_unit_loops=True)
        inline_producers(sch, packed)
        return packed

    def _stage_a(self, outer: SBlockRV, row: LoopRV) -> SBlockRV:
        """A's rows of a tile, packed."""
        sch, slot = self.sch, self._module.a_slot
        m, _, depth = self._tile
        packed: SBlockRV = sch.cache_read(outer, 0, "global")
        if self._along_k:
            sch.transform_layout(packed, ("write", 0), lambda s, i, k: (s, i // m, i % m, k))
            if self.tiling.pack_a:
                # Rows at the distance that they have in memory would share a few sets of a cache.
                sch.storage_align(packed, 0, axis=2, factor=64, offset=16)
        else:
            sch.transform_layout(
                packed, ("write", 0),
                lambda s, i, k: (s, i // m, k // depth, *slot(i % m, k % depth)),
            )  # fmt: skip
        sch.compute_at(packed, row, preserve_unit_loops=True)
        inline_producers(sch, packed)
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
        _, lanes = sch.split(j1, [None, self._width])
        sch.vectorize(sch.fuse(lanes, k1))

    def _vectorize_a(self, packed: SBlockRV) -> None:
        sch = self.sch
        _, _, depth = self._tile
        *_, i, k = sch.get_loops(packed)
        if self._along_k:
            _, lanes = sch.split(k, [None, self._width * depth])
        else:
            k0, k1 = sch.split(k, [None, depth])
            sch.reorder(k0, i, k1)
            lanes = sch.fuse(i, k1)
        sch.vectorize(lanes)

    def _vectorize_c(self, sums: SBlockRV) -> None:
        sch = self.sch
        *_, i, j = sch.get_loops(sums)
        vectors, lanes = sch.split(j, [None, self._width])
        sch.vectorize(lanes)
        sch.unroll(vectors)
        sch.unroll(i)

    def _fold(self, sums: SBlockRV) -> None:
        """What follows the product becomes part of its store; what cannot, loops of its own."""
        sch = self.sch
        inline_consumers(sch, sums)


def inline_consumers(sch: Schedule, sums: SBlockRV) -> None:
    last = fold_forward(sch, sums)
    if len(last) == 1 and reads_plainly(sch, sums, last[0]):
        try:
            with tvm_refusal("workload", ScheduleError):
                sch.reverse_compute_inline(last[0])
                return
        except ScheduleError:
            pass
    for each in last:
        _element_loops(sch, each)


def _element_loops(sch: Schedule, block: SBlockRV) -> None:
    """Compute the elements of a block by themselves."""
    nest = nest_of(sch, block)
    spatial = [axis.iter_type == IterVar.DataPar for axis in nest.block.iter_vars]
    if not all(spatial):
        return
    *outer, inner = sch.get_loops(block)
    _, lanes = sch.split(inner, [None, _LANES])
    sch.vectorize(lanes)
    if outer:
        sch.parallel(outer[0])

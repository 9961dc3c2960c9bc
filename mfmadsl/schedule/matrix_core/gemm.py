"""`gemm_schedule`: a product of matrices as a schedule over the generated TensorIntrins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType

import tvm
from tvm import s_tir
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import LoopRV, SBlockRV
from tvm.tirx import PrimFunc

from mfmadsl.argument import check_type
from mfmadsl.model import (
    DEFAULT_ARCH,
    DEFAULT_OVERLAP,
    Architecture,
    Intrinsic,
    Tiling,
    architecture,
    unscaled,
)
from mfmadsl.passes.tir.annotation import (
    DIES,
    EDGES,
    GROUP,
    OVERLAP,
    PIPELINE,
    SWIZZLE,
    WORKGROUPS,
)
from mfmadsl.prim_func import prim_func
from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.load import load_intrinsic
from mfmadsl.schedule.matrix_core.instruction import counting_up, instruction_of
from mfmadsl.schedule.matrix_core.padding import check_padded
from mfmadsl.schedule.matrix_core.stage import (
    Staged,
    copy_to_lds,
    lies_turned,
    load_fragments,
    reads_turned,
    store_by_lanes,
)
from mfmadsl.schedule.matrix_core.store_columns import (
    Columns,
    columns_of,
    lies_across,
    take_in_turn,
)
from mfmadsl.schedule.matrix_core.tiling.choice import (
    ProductShape,
    default_tiling,
    equally_fast,
    estimated,
)
from mfmadsl.schedule.matrix_core.tiling.legal import check_tiling, check_values, of_plain_numbers
from mfmadsl.schedule.matrix_core.tiling.resources import CHUNK, Loads
from mfmadsl.schedule.matrix_core.tiling.tuned import Key, key_of, tuned_tilings
from mfmadsl.schedule.product.dataflow import check_bound, check_consumers, unrelated
from mfmadsl.schedule.product.epilogue import add_up_waves, fold_epilogue, fold_into_total
from mfmadsl.schedule.product.memory import Extent, number
from mfmadsl.schedule.product.nest import function_of
from mfmadsl.schedule.product.normalise import Product, normalise
from mfmadsl.schedule.product.prepare import prepared
from mfmadsl.schedule.product.sum_of_products import product_nest
from mfmadsl.schedule.tensor_intrin import init_loop
from mfmadsl.tvm_refusal import tvm_refusal


def gemm_schedule(
    workload: PrimFunc | tvm.IRModule,
    intrinsic: Intrinsic | str | None = None,
    arch: str = DEFAULT_ARCH,
    tiling: Tiling | None = None,
) -> Schedule:
    """A schedule of a GEMM of any shape, made by TVM's primitives, ready for `mfmadsl.build`.

    `workload` is a PrimFunc, or a module of one, that multiplies two matrices, with element-wise
    blocks before and after. A, B and C lie by rows or by columns, alone or in batches; extents may
    be symbolic. The kernel has the workload's parameters and its name. The schedule's trace replays
    on `prepared(workload)`, which is the workload itself in most cases.

    `intrinsic` is a matrix instruction or the name of one in the library, and `tiling` how the work
    is cut; without them `choice` takes both by its rules.

    Raises ScheduleError for what is no GEMM, cannot be fused, or breaks a limit of the chip.
    """
    function = prepared(prim_func("workload", workload, ScheduleError))
    sch = s_tir.Schedule(tvm.IRModule({"main": function}))
    nest = product_nest(function)
    for operand in unrelated(function, nest):
        sch.compute_inline(sch.get_sblock(operand.name))
    schedule_gemm(sch, sch.get_sblock(nest.name), intrinsic, arch, tiling)
    # What was left is said by its reason.
    check_consumers(function, nest.block.writes[0].source)
    check_bound(function_of(sch))
    return sch


def schedule_gemm(
    sch: Schedule,
    block: SBlockRV,
    intrinsic: Intrinsic | str | None = None,
    arch: str = DEFAULT_ARCH,
    tiling: Tiling | None = None,
) -> None:
    """Schedule one product among the blocks of a schedule of your own, with what follows it.

    The arguments are those of `gemm_schedule`, and so are the errors. Blocks before the product
    that it alone reads are computed on the way into the LDS. Element-wise blocks after it become
    part of it, as far as they end in one result; other blocks are yours to schedule.
    """
    check_type("sch", sch, Schedule, "a Schedule")
    check_type("block", block, SBlockRV, "a block of the schedule, as `sch.get_sblock` gives it")
    chip = architecture(arch)
    with tvm_refusal("workload", ScheduleError):
        product = normalise(sch, block)
        chosen, taken = _chosen(product, intrinsic, tiling, chip)
        _Builder(sch, product, chosen, taken, chip).build()


def gemm_tiling(
    workload: PrimFunc | tvm.IRModule,
    intrinsic: Intrinsic | str | None = None,
    arch: str = DEFAULT_ARCH,
) -> Tiling:
    """The tiling that `gemm_schedule` takes if it is given none: a start for your own.

    It is the one that `mfmadsl tune` found the fastest, where MFMADSL_TUNED names its folder and
    the product is one of those tuned; else that which should be the fastest by the formula.
    """
    return _chosen(_product(workload), intrinsic, None, architecture(arch))[1]


def is_tuned(
    workload: PrimFunc | tvm.IRModule,
    intrinsic: Intrinsic | str | None = None,
    arch: str = DEFAULT_ARCH,
) -> bool:
    """Whether the tiling of `gemm_tiling` is one that `mfmadsl tune` found."""
    product, chip = _product(workload), architecture(arch)
    return _tuned(product, _alike(product, intrinsic, chip), chip) is not None


def gemm_tilings(
    workload: PrimFunc | tvm.IRModule,
    intrinsic: Intrinsic | str | None = None,
    arch: str = DEFAULT_ARCH,
) -> list[Tiling]:
    """The legal tilings that are worth a look, that which should be the fastest first."""
    product, chip = _product(workload), architecture(arch)
    found = estimated(*_question(product, _alike(product, intrinsic, chip), chip))
    return [tiling for _, tiling in sorted(found, key=lambda pair: pair[0].seconds)]


def tuning_key(workload: PrimFunc | tvm.IRModule, arch: str = DEFAULT_ARCH) -> Key:
    """What a tuned tiling is kept by: the chip, and all of a product that its kernel depends on."""
    key = key_of(_product(workload), architecture(arch))
    if key is None:
        raise ScheduleError("workload: N or K is a symbol: tune it for a number that it will be")
    return key


def _product(workload: PrimFunc | tvm.IRModule) -> Product:
    function = prepared(prim_func("workload", workload, ScheduleError))
    sch = s_tir.Schedule(function)
    return normalise(sch, sch.get_sblock(product_nest(function).name))


def is_multiple(extent: Extent, tile: int) -> bool:
    """Whether an extent is a number of whole tiles, as far as is known."""
    return isinstance(extent, int) and extent % tile == 0


def _bytes(dtype: str) -> int:
    return int(tvm.DataType(dtype).bits) // 8


def _chosen(
    product: Product, asked: Intrinsic | str | None, tiling: Tiling | None, chip: Architecture
) -> tuple[Intrinsic, Tiling]:
    """The instruction and the tiling that are asked for, or chosen."""
    intrinsic = instruction_of(product, asked, tiling, chip)
    size = max(_bytes(dtype) for dtype in product.types[:2])
    k = number(product.extents[3])
    if tiling is not None:
        check_values(tiling)
        tiling = of_plain_numbers(tiling)
        steps = None if k is None else -(-k // tiling.k_step)
        check_tiling(tiling, intrinsic, chip, size, steps)
        return intrinsic, tiling
    alike = _alike(product, asked, chip)
    question = _question(product, alike, chip)
    found = _tuned(product, alike, chip) or default_tiling(*question)
    return next(each for each in alike if each.name == found.instruction), found


def _alike(product: Product, asked: Intrinsic | str | None, chip: Architecture) -> list[Intrinsic]:
    """The instruction that is asked for, or those that are as fast as the one to be chosen."""
    intrinsic = instruction_of(product, asked, None, chip)
    return [intrinsic, *(equally_fast(intrinsic, chip.name) if asked is None else ())]


def _question(
    product: Product, alike: Sequence[Intrinsic], chip: Architecture
) -> tuple[
    ProductShape, Sequence[Intrinsic], Architecture, tuple[int, int], Loads, tuple[bool, bool]
]:  # fmt: skip
    """What `choice` is asked."""
    s, m, n, k = (number(extent) for extent in product.extents)
    size = max(_bytes(dtype) for dtype in product.types[:2])
    across = product.memory[0].axis == "i", product.memory[1].axis == "j"
    loads = _loads(product, chip, alike[0].blocks)
    return ProductShape(m, n, k, s), alike, chip, (size, _bytes(product.types[2])), loads, across


def _tuned(product: Product, alike: Sequence[Intrinsic], chip: Architecture) -> Tiling | None:
    """The tiling that was tuned for such a product, if it is legal for this one."""
    key = key_of(product, chip)
    for tiling in tuned_tilings(key) if key is not None else ():
        named = [each for each in alike if each.name == tiling.instruction]
        if named and _is_legal(product, named[0], tiling, chip):
            return tiling
    return None


def _is_legal(product: Product, intrinsic: Intrinsic, tiling: Tiling, chip: Architecture) -> bool:
    k = number(product.extents[3])
    size = max(_bytes(dtype) for dtype in product.types[:2])
    try:
        check_tiling(tiling, intrinsic, chip, size, None if k is None else -(-k // tiling.k_step))
    except ScheduleError:
        return False
    return True


def _loads(product: Product, chip: Architecture, blocks: int) -> Loads:
    """How the operands come from memory, as far as their strides tell."""
    shifted, turned, direct = [], [], chip.wide_loads_to_lds
    for memory, dtype in zip(product.memory[:2], product.types[:2], strict=True):
        size, distance = _bytes(dtype), memory.distance
        odd = not isinstance(distance, int) or distance * size % 4 != 0
        shifted.append(odd and memory.axis is not None and size < 4)
        along_rows = memory.axis in ("i", "j")
        whole = isinstance(distance, int) and distance * size % CHUNK == 0 and blocks == 1
        direct = direct and memory.axis is not None and not shifted[-1] and not memory.computed
        direct = direct and (not along_rows or (whole and reads_turned(chip, size)))
        turned.append(along_rows and not (reads_turned(chip, size) and blocks == 1))
    return Loads(direct, (shifted[0], shifted[1]), (turned[0], turned[1]))


@dataclass(frozen=True)
class _Builder:
    """The primitives that make a schedule of a product in its plain form."""

    sch: Schedule
    product: Product
    intrinsic: Intrinsic
    tiling: Tiling
    chip: Architecture

    def build(self) -> None:
        sch, tiling, blocks = self.sch, self.tiling, self.intrinsic.blocks
        tile = load_intrinsic(counting_up(unscaled(self.intrinsic)), tiling.k_pack)
        total, of_waves, main = self._parts()
        columns = self._columns(total or of_waves, tile)
        if columns.in_turn:
            take_in_turn(sch, main, columns)
        outer, loops = self._cut(main, tile)
        workgroup, wave, k_step, register_step = loops
        if of_waves is not None:
            sch.set_scope(main, 0, "shared")
        orders = Columns(tile.M, 1), columns
        tiles = [
            copy_to_lds(
                sch, outer, operand, self.product.memory[operand], order, k_step, tiling, self.chip,
                blocks,
            )
            for operand, order in enumerate(orders)
        ]  # fmt: skip
        for operand, staged in enumerate(tiles):
            load_fragments(sch, outer, operand, tile, register_step, staged.turned)
        sums = sch.cache_write(outer, 0, "warp")
        if columns.in_turn:
            sch.transform_layout(sums, ("write", 0), lambda s, i, j: (s, i, columns.column(j)))
        sch.reverse_compute_at(sums, wave, preserve_unit_loops=True)
        init = sch.decompose_reduction(outer, k_step)
        store_by_lanes(sch, sums, tile, columns)
        extents = [*([blocks] if blocks > 1 else []), tile.M, tile.N]
        sch.tensorize(sch.get_loops(main)[-len(extents) - 1], tile.COMPUTE)
        sch.tensorize(init_loop(sch, sch.get_child_blocks(init)[0], extents), tile.FILL)
        result = sums
        if of_waves is not None:
            threads = tiling.wave_count, self.chip.wave_size
            result = add_up_waves(sch, of_waves, workgroup, threads)
        if total is None:
            fold_epilogue(sch, result)
        else:
            fold_into_total(sch, total)
        self._annotate(k_step, tiles)

    def _columns(self, total: SBlockRV | None, tile: ModuleType) -> Columns:
        """The order in which tiles take columns of C: in turn only what they store as it is."""
        own, tiling = self.product.memory, self.tiling
        size, rows = _bytes(self.product.types[1]), tiling.block[1]
        turned = lies_turned(own[1], tiling, self.chip, size, rows)
        if total is not None or self.intrinsic.blocks > 1 or turned or not lies_across(tile):
            return Columns(tile.N, 1)
        columns = number(self.product.extents[2])
        order = columns_of(
            own[2], columns, tiling.wave_tile[1] // tile.N, tile.N, self.chip.line_bytes
        )
        # TVM does not see that places of a single group are those of its columns in turn.
        alone = columns is not None and columns <= order.width * order.count
        return Columns(tile.N, 1) if alone else order

    def _parts(self) -> tuple[SBlockRV | None, SBlockRV | None, SBlockRV]:
        """(the block that adds up the parts of K of workgroups, that which adds up those of their
        waves, the block to tensorize); None where K is not split."""
        sch, main, tiling = self.sch, self.product.block, self.tiling
        k = number(self.product.extents[3])
        parts, length = tiling.split_k, tiling.k_step
        if k is not None and parts > 1:
            # Parts of equal length: rounding up may leave fewer of them than were asked for.
            steps = -(-k // tiling.k_step)
            part = -(-steps // parts)
            parts, length = -(-steps // part), part * tiling.k_step
        tiles = [self.intrinsic.blocks, *tiling.block, length * parts]
        check_padded(self.product, tiles)
        sch.pad_einsum(main, tiles)
        total = of_waves = None
        if parts > 1:
            share, _ = sch.split(sch.get_loops(main)[3], [parts, None])
            total, main = main, sch.rfactor(share, 0)
            s, i, j, share, k_loop = sch.get_loops(main)
            sch.reorder(share, s, i, j, k_loop)
        if tiling.k_waves > 1:
            *outer, k_loop = sch.get_loops(main)
            of_wave = tiling.k_step // tiling.k_waves
            _, share, _ = sch.split(k_loop, [None, tiling.k_waves, of_wave])
            of_waves, main = main, sch.rfactor(share, 0)
            *outer, step, share, k_loop = sch.get_loops(main)
            sch.reorder(share, *outer, step, k_loop)
        return total, of_waves, main

    def _cut(
        self, main: SBlockRV, tile: ModuleType
    ) -> tuple[SBlockRV, tuple[LoopRV, LoopRV, LoopRV, LoopRV]]:
        """The tiles of workgroups, waves and instructions; (a block of one instruction's tile, the
        loops of a workgroup, of a wave, of steps along K, and of register steps)."""
        sch, tiling = self.sch, self.tiling
        loops = sch.get_loops(main)
        shares = [loops.pop(0)] if tiling.k_waves > 1 else []
        if not shares:
            loops[-1:] = sch.split(loops[-1], [None, tiling.k_step])
        *lead, i, j, k0, k = loops
        inner = []
        if self.intrinsic.blocks > 1:
            lead[-1], several = sch.split(lead[-1], [None, self.intrinsic.blocks])
            inner.append(several)
        i, i_tile = sch.split(i, [None, tile.M])
        j, j_tile = sch.split(j, [None, tile.N])
        k1, k_tile = sch.split(k, [None, tile.K])
        inner += [i_tile, j_tile, k_tile]
        sch.reorder(*lead, *shares, i, j, k0, k1, *inner)
        outer = sch.blockize(inner[0])
        i0, i1, i2 = sch.split(i, [None, tiling.waves[0], tiling.wave_tile[0] // tile.M])
        j0, j1, j2 = sch.split(j, [None, tiling.waves[1], tiling.wave_tile[1] // tile.N])
        sch.reorder(i0, j0, *shares, i1, j1, k0, k1, i2, j2)
        sch.bind(sch.fuse(*lead) if len(lead) > 1 else lead[0], "blockIdx.z")
        sch.bind(i0, "blockIdx.y")
        sch.bind(j0, "blockIdx.x")
        wave = sch.fuse(*shares, i1, j1)
        sch.bind(wave, "threadIdx.y")
        return outer, (j0, wave, k0, k1)

    def _annotate(self, k_step: LoopRV, tiles: Sequence[Staged]) -> None:
        """What the passes are told."""
        sch, tiling = self.sch, self.tiling
        rows = zip(tiles, self.product.extents[1:3], tiling.block, strict=True)
        # TVM would make one condition of an edge and a mask.
        padded = [
            staged.name
            for staged, extent, tile in rows
            if not is_multiple(extent, tile) and not staged.masked
        ]
        blocks = self.intrinsic.blocks
        whole = blocks == 1 or is_multiple(self.product.extents[0], blocks)
        if padded and whole and tiles[0].name != tiles[1].name:
            # Rows of C past the edge are not stored.
            sch.annotate(k_step, EDGES, " ".join(padded))
        sch.annotate(k_step, PIPELINE, tiling.stages)
        if tiling.overlap != DEFAULT_OVERLAP:
            sch.annotate(k_step, OVERLAP, tiling.overlap)
        if not tiling.swizzle:
            sch.annotate(k_step, SWIZZLE, 0)
        sch.annotate(k_step, GROUP, tiling.group)
        if self.chip.dies > 1:
            sch.annotate(k_step, DIES, self.chip.dies)
        if tiling.persistent:
            sch.annotate(k_step, WORKGROUPS, self.chip.compute_units)

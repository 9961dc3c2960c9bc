"""`mfma_schedule`: TVM's interface, for every tile shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TypeAlias

import tvm
from tvm import s_tir, tirx
from tvm.s_tir import TensorIntrin
from tvm.s_tir.schedule import LoopRV, SBlockRV
from tvm.target import Target
from tvm.tirx import Expr, PrimFunc

from mfmadsl.argument import check_flag, check_integer, check_list, check_type, described
from mfmadsl.error import ArgumentTypeError
from mfmadsl.model import ARCHITECTURES
from mfmadsl.passes.tir.annotation import PIPELINE
from mfmadsl.prim_func import prim_func
from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.matrix_core.tiling.limits import check_lds, check_threads
from mfmadsl.schedule.tensor_intrin import IntrinTile, init_loop, registered_name, tile_of
from mfmadsl.tvm_refusal import tvm_refusal

IndexMap: TypeAlias = Callable[[Expr, Expr], tuple[Expr, ...]]
Intrinsic: TypeAlias = str | TensorIntrin


def mfma_schedule(
    workload: PrimFunc | tvm.IRModule,
    k_inner: int,
    in_dtype: str,
    b_transposed: bool,
    i_factors: Sequence[int | None],
    j_factors: Sequence[int | None],
    k_factors: Sequence[int | None],
    index_map_A: IndexMap,
    index_map_B: IndexMap,
    index_map_C: IndexMap,
    ldmatrix_a_intrin: Intrinsic,
    ldmatrix_b_intrin: Intrinsic,
    mfma_intrin: Intrinsic,
    mfma_fill_intrin: Intrinsic,
    mfma_store_intrin: Intrinsic,
    shared_scope: str = "shared",
) -> s_tir.Schedule:
    """A tensorized GEMM schedule: global memory to LDS to registers, and back.

    Takes what `tvm.testing.tir.mfma_schedule` takes, in the same order and with the same meaning;
    the tile's m and n come from `mfma_intrin` instead of being 16.

    `workload` has a block `C` with loops i, j, k. `i_factors` and `j_factors` split the number of
    tiles of M and N into grid x, grid y, waves of a block, and two levels of tiles of a wave;
    `k_factors` splits that of K into LDS steps, register steps and instructions. One factor of
    each may be None and is then inferred. The index maps take coordinates of the whole matrix to
    (tile, tile, lane, register).

    Raises ScheduleError, naming the argument and the numbers, where a factor does not fit.
    """
    check_type("in_dtype", in_dtype, str, "a str")
    check_integer("k_inner", k_inner)
    check_flag("b_transposed", b_transposed)
    for argument, index_map in (
        ("index_map_A", index_map_A), ("index_map_B", index_map_B), ("index_map_C", index_map_C)
    ):  # fmt: skip
        if not callable(index_map):
            raise ArgumentTypeError(f"{argument}: is a function, not {described(index_map)}")
    function = prim_func("workload", workload, ScheduleError)
    module = workload if isinstance(workload, tvm.IRModule) else tvm.IRModule({"main": function})
    names = {
        argument: registered_name(intrinsic, argument)
        for argument, intrinsic in (
            ("ldmatrix_a_intrin", ldmatrix_a_intrin),
            ("ldmatrix_b_intrin", ldmatrix_b_intrin),
            ("mfma_intrin", mfma_intrin),
            ("mfma_fill_intrin", mfma_fill_intrin),
            ("mfma_store_intrin", mfma_store_intrin),
        )
    }
    tile = tile_of(mfma_intrin, "mfma_intrin")
    if tile.k != k_inner:
        raise ScheduleError(
            f"k_inner: is {described(k_inner)}, but {names['mfma_intrin']} has k={tile.k}"
        )
    check_type("shared_scope", shared_scope, str, "a str")
    if shared_scope not in ("shared", "shared.dyn"):
        raise ScheduleError(f"shared_scope: {shared_scope!r} is neither 'shared' nor 'shared.dyn'")

    with tvm_refusal("workload", ScheduleError):
        sch = s_tir.Schedule(module)
        block = _gemm_block(sch)
        read = sorted({str(region.source.dtype) for region in sch.get(block).reads})
        if in_dtype not in read:
            message = f"in_dtype: is {in_dtype!r}, but the workload reads {' and '.join(read)}"
            raise ScheduleError(message)
        i, j, k = _gemm_loops(sch, block)
        split_i = _factors("i_factors", i_factors, 5, sch.get(i).extent, tile.m, "M")
        split_j = _factors("j_factors", j_factors, 5, sch.get(j).extent, tile.n, "N")
        split_k = _factors("k_factors", k_factors, 3, sch.get(k).extent, tile.k, "K")
        _check_limits(tile, split_i, split_j, split_k, tvm.DataType(in_dtype))

        i, i_tile = sch.split(i, factors=[None, tile.m])
        j, j_tile = sch.split(j, factors=[None, tile.n])
        k, k_tile = sch.split(k, factors=[None, tile.k])
        sch.reorder(i, j, k, i_tile, j_tile, k_tile)
        block_outer = sch.blockize(i_tile)

        i0, i1, i2, i3, i4 = sch.split(i, factors=split_i)
        j0, j1, j2, j3, j4 = sch.split(j, factors=split_j)
        k0, k1, k2 = sch.split(k, factors=split_k)
        sch.reorder(i0, j0, i1, j1, j2, i2, k0, k1, i3, j3, k2, i4, j4)
        sch.bind(sch.fuse(i0, j0), "blockIdx.x")
        sch.bind(sch.fuse(i1, j1), "blockIdx.y")
        wave = sch.fuse(j2, i2)
        sch.bind(wave, "threadIdx.y")
        waves = split_i[2] * split_j[2]

        vector = 16 if tvm.DataType(in_dtype).bits == 8 else 8
        for operand in (0, 1):
            shared = sch.cache_read(block_outer, operand, shared_scope)
            sch.compute_at(shared, k0, preserve_unit_loops=True)
            _spread_over_threads(sch, shared, waves, tile.lanes, vector)

        a_registers = sch.cache_read(block_outer, 0, "warp")
        b_registers = sch.cache_read(block_outer, 1, "warp")
        sch.compute_at(a_registers, k1, preserve_unit_loops=True)
        sch.compute_at(b_registers, k1, preserve_unit_loops=True)
        c_registers = sch.cache_write(block_outer, 0, "warp")
        sch.reverse_compute_at(c_registers, wave, preserve_unit_loops=True)
        store = _tile(sch, c_registers, tile.m, tile.n)

        sch.decompose_reduction(block_outer, k0)
        load_a = _tile(sch, a_registers, tile.m, tile.k)
        load_b = _tile(sch, b_registers, *((tile.n, tile.k) if b_transposed else (tile.k, tile.n)))

        sch.transform_layout(a_registers, ("write", 0), _with_constants("index_map_A", index_map_A))
        sch.transform_layout(b_registers, ("write", 0), _with_constants("index_map_B", index_map_B))
        sch.transform_layout(c_registers, ("read", 0), _with_constants("index_map_C", index_map_C))

        sch.tensorize(load_a, names["ldmatrix_a_intrin"])
        sch.tensorize(load_b, names["ldmatrix_b_intrin"])
        sch.tensorize(sch.get_loops(block)[-3], names["mfma_intrin"])
        fill = init_loop(sch, sch.get_sblock("C_init"), (tile.m, tile.n))
        sch.tensorize(fill, names["mfma_fill_intrin"])
        sch.tensorize(store, names["mfma_store_intrin"])
        sch.annotate(k0, PIPELINE, 1)
        return sch


def _with_constants(argument: str, index_map: IndexMap) -> IndexMap:
    """The map with its plain integers, as in TVM's own for f32, made TVM's: it refuses them."""

    def mapped(i: Expr, j: Expr) -> tuple[Expr, ...]:
        try:
            place = index_map(i, j)
        except Exception as error:  # it is the caller's function
            raise ScheduleError(f"{argument}: cannot be called with i and j: {error}") from error
        if not isinstance(place, Sequence) or not all(isinstance(x, int | Expr) for x in place):
            raise ScheduleError(f"{argument}: gives something else than expressions of i and j")
        return tuple(tirx.IntImm("int32", x) if isinstance(x, int) else x for x in place)

    return mapped


def _gemm_block(sch: s_tir.Schedule) -> SBlockRV:
    try:
        return sch.get_sblock("C")
    except Exception as error:
        raise ScheduleError("workload: has no block `C`, the one to tensorize") from error


def _gemm_loops(sch: s_tir.Schedule, block: SBlockRV) -> tuple[LoopRV, LoopRV, LoopRV]:
    loops = sch.get_loops(block)
    if len(loops) != 3:
        raise ScheduleError(f"workload: block `C` has {len(loops)} loops, not i, j and k")
    i, j, k = loops
    return i, j, k


def _factors(
    argument: str,
    factors: Sequence[int | None],
    count: int,
    extent: Expr,
    tile: int,
    dimension: str,
) -> list[int]:
    """The factors, completed and checked against the number of tiles in `extent`."""
    if not isinstance(extent, int | tvm.tirx.IntImm):
        raise ScheduleError(f"workload: {dimension} is {extent}, but factors need a constant")
    if int(extent) % tile:
        raise ScheduleError(
            f"workload: {dimension}={extent} is no multiple of the instruction's {tile}"
        )
    tiles = int(extent) // tile
    check_list(argument, factors, f"a list of {count} numbers")
    for factor in factors:
        if factor is not None:
            check_integer(argument, factor)
    text = f"{argument}: {list(factors)}"
    if len(factors) != count:
        raise ScheduleError(f"{text} has {len(factors)} factors, not {count}")
    known = [int(f) for f in factors if f is not None]
    if any(f < 1 for f in known) or len(known) < count - 1:
        raise ScheduleError(f"{text} must hold positive numbers, and at most one None")
    product = prod(known)
    if len(known) < count:
        if tiles % product:
            raise ScheduleError(
                f"{text}: the product {product} does not divide the {tiles} tiles of {tile} "
                f"in {dimension}={extent}"
            )
        return [tiles // product if f is None else int(f) for f in factors]
    if product != tiles:
        raise ScheduleError(
            f"{text}: the product is {product}, but {dimension}={extent} has {tiles} tiles "
            f"of {tile}"
        )
    return known


def _check_limits(
    tile: IntrinTile, i: Sequence[int], j: Sequence[int], k: Sequence[int], dtype: tvm.DataType
) -> None:
    """The workgroup must fit the chip of the current target, or the largest one there is."""
    target = Target.current()
    mcpu = str(target.attrs.get("mcpu", "")) if target is not None else ""
    chips = [ARCHITECTURES[mcpu]] if mcpu in ARCHITECTURES else list(ARCHITECTURES.values())
    largest = max(chips, key=lambda chip: chip.lds_bytes)
    check_threads("i_factors[2] * j_factors[2]", (i[2], j[2]), tile.lanes, largest)
    rows, columns = prod(i[2:]) * tile.m, prod(j[2:]) * tile.n
    depth = k[1] * k[2] * tile.k
    lds = (rows + columns) * depth * dtype.bits // 8
    tiles = f"tiles of {rows}x{depth} and {columns}x{depth} {dtype}"
    check_lds("i_factors, j_factors, k_factors", tiles, lds, largest)


def _spread_over_threads(
    sch: s_tir.Schedule, block: SBlockRV, waves: int, lanes: int, vector: int
) -> None:
    """All threads copy a tile together, each in the widest pieces that divide it evenly."""
    loops = sch.get_loops(block)[-2:]
    rows, columns = (int(sch.get(loop).extent) for loop in loops)
    while vector > 1 and (columns % vector or rows * columns % (waves * lanes * vector)):
        vector //= 2
    fused = sch.fuse(*loops)
    _, ty, tx, inner = sch.split(fused, factors=[None, waves, lanes, vector])
    sch.bind(tx, "threadIdx.x")
    sch.bind(ty, "threadIdx.y")
    sch.vectorize(inner)


def _tile(sch: s_tir.Schedule, block: SBlockRV, height: int, width: int) -> LoopRV:
    """Cut the block's last two loops into tiles; the outermost loop of one tile."""
    rows, columns = sch.get_loops(block)[-2:]
    r0, r1 = sch.split(rows, factors=[None, height])
    c0, c1 = sch.split(columns, factors=[None, width])
    sch.reorder(r0, c0, r1, c1)
    return r1

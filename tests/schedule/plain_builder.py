"""The simplest schedule of a product: one wave a workgroup, no stages, any shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm import tirx
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import LoopRV, SBlockRV
from tvm.tirx import PrimFunc

from mfmadsl.schedule import load_intrinsic
from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.product.dataflow import check_bound, check_consumers
from mfmadsl.schedule.product.epilogue import fold_epilogue, fold_into_total
from mfmadsl.schedule.product.inline import inline_producers
from mfmadsl.schedule.product.nest import function_of
from mfmadsl.schedule.product.normalise import normalise, product_block
from mfmadsl.schedule.product.prepare import prepared

INSTRUCTIONS = {
    ("float16", "float16", "float32"): "mfma_f32_32x32x8_f16",
    ("bfloat16", "bfloat16", "float32"): "mfma_f32_32x32x8_bf16",
    ("float32", "float32", "float32"): "mfma_f32_32x32x2_f32",
    ("int8", "int8", "int32"): "mfma_i32_32x32x16_i8",
}


def plain_schedule(workload: PrimFunc, split_k: int = 1, block: str | None = None) -> Schedule:
    """A schedule of any product, for gfx942."""
    function = prepared(workload, block)
    sch = Schedule(function)
    main = product_block(sch, block)
    written = sch.get(main).writes[0].source
    schedule_block(sch, main, split_k)
    check_consumers(function, written)
    check_bound(function_of(sch))
    return sch


def schedule_block(sch: Schedule, main: SBlockRV, split_k: int = 1) -> None:
    """Tensorize one product of a schedule, with what follows it."""
    product = normalise(sch, main)
    if product.types not in INSTRUCTIONS:
        raise ScheduleError(f"there is no instruction for {product.types}")
    tile = load_intrinsic(INSTRUCTIONS[product.types])
    sch.pad_einsum(main, [1, tile.M, tile.N, tile.K * split_k])
    s, i, j, k = sch.get_loops(main)
    total = None
    if split_k > 1:
        part, k = sch.split(k, [split_k, None])
        total, main = main, sch.rfactor(part, 0)
        s, i, j, part, k = sch.get_loops(main)
        sch.reorder(part, s, i, j, k)
        s = sch.fuse(part, s)
    i, it = sch.split(i, [None, tile.M])
    j, jt = sch.split(j, [None, tile.N])
    k, kt = sch.split(k, [None, tile.K])
    sch.reorder(i, j, k, it, jt, kt)
    outer = sch.blockize(it)
    sch.bind(s, "blockIdx.z")
    sch.bind(sch.fuse(i, j), "blockIdx.x")
    k, step = sch.split(k, [None, 1])
    registers = []
    for operand, index_map in ((0, tile.index_map_A), (1, tile.index_map_B_transposed)):
        shared = sch.cache_read(outer, operand, "shared")
        sch.compute_at(shared, k, preserve_unit_loops=True)
        inline_producers(sch, shared)
        lanes = sch.split(sch.fuse(*sch.get_loops(shared)[-2:]), [None, 64])[1]
        sch.bind(lanes, "threadIdx.x")
        warp = sch.cache_read(outer, operand, "warp")
        sch.compute_at(warp, step, preserve_unit_loops=True)
        sch.transform_layout(warp, ("write", 0), _after(index_map, 1))
        registers.append(warp)
    c = sch.cache_write(outer, 0, "warp")
    sch.reverse_compute_at(c, sch.get_loops(outer)[1], preserve_unit_loops=True)
    sch.transform_layout(c, ("read", 0), _after(tile.index_map_C, 2 if split_k > 1 else 1))
    init = sch.decompose_reduction(outer, k)
    shapes = (tile.M, tile.K), (tile.N, tile.K)
    names = tile.LOAD_A_SHARED, tile.LOAD_B_TRANSPOSED_SHARED
    for load, shape, name in zip(registers, shapes, names, strict=True):
        sch.tensorize(_tiled(sch, load, *shape)[0], name)
    sch.tensorize(sch.get_loops(main)[-3], tile.COMPUTE)
    sch.tensorize(sch.get_loops(sch.get_child_blocks(init)[0])[-2], tile.FILL)
    lane, register = _per_lane(sch, _tiled(sch, c, tile.M, tile.N), tile.c_slot)
    sch.bind(lane, "threadIdx.x")
    sch.unroll(register)
    if total is None:
        fold_epilogue(sch, c)
    else:
        fold_into_total(sch, total)


def _after(index_map: Callable[[Any, Any], Sequence[Any]], lead: int) -> Callable[..., Any]:
    """The index map of the last two coordinates; `lead` others stay."""

    def at(others: Sequence[Any], i: Any, j: Any) -> tuple[Any, ...]:
        inner = (tirx.const(x, "int32") if isinstance(x, int) else x for x in index_map(i, j))
        return (*others, *inner)

    if lead == 1:
        return lambda s, i, j: at((s,), i, j)
    return lambda p, s, i, j: at((p, s), i, j)


def _tiled(sch: Schedule, block: SBlockRV, height: int, width: int) -> tuple[LoopRV, LoopRV]:
    rows, columns = sch.get_loops(block)[-2:]
    r0, r1 = sch.split(rows, [None, height])
    c0, c1 = sch.split(columns, [None, width])
    sch.reorder(r0, c0, r1, c1)
    return r1, c1


def _per_lane(
    sch: Schedule, loops: tuple[LoopRV, LoopRV], slot: Callable[[int, int], tuple[int, int]]
) -> tuple[LoopRV, LoopRV]:
    """The two loops of a tile as lane and register, by where each bit of a coordinate goes."""
    parts: list[tuple[bool, int, LoopRV]] = []
    for axis, loop in enumerate(loops):
        runs: list[list[int]] = []  # to a lane or not, the lowest bit there, bits
        for bit in range(int(sch.get(loop).extent).bit_length() - 1):
            lane, register = slot(*((1 << bit) if a == axis else 0 for a in (0, 1)))
            place = (lane or register).bit_length() - 1
            if runs and (runs[-1][0], runs[-1][1] + runs[-1][2]) == (int(lane > 0), place):
                runs[-1][2] += 1
            else:
                runs.append([int(lane > 0), place, 1])
        split = [loop] if len(runs) == 1 else sch.split(loop, [1 << r[2] for r in reversed(runs)])
        parts += [(bool(r[0]), r[1], x) for r, x in zip(reversed(runs), split, strict=True)]
    parts.sort(key=lambda part: -part[1])
    lanes, registers = ([part[2] for part in parts if part[0] == kind] for kind in (True, False))
    sch.reorder(*lanes, *registers)
    return sch.fuse(*lanes), sch.fuse(*registers)

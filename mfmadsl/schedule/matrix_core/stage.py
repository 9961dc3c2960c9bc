"""The ways of a tile: from memory into the LDS, from there into registers, and the result back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, prod
from types import ModuleType

from tvm import tirx
from tvm.ir import Call, TensorLoad
from tvm.s_tir import SBlock, Schedule
from tvm.s_tir.schedule import LoopRV, SBlockRV
from tvm.tirx import Expr

from mfmadsl.language import reads
from mfmadsl.model import Architecture, Tiling
from mfmadsl.passes.tir.expression import choice_of, conjuncts_of, constant
from mfmadsl.passes.tir.walk import walk
from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.matrix_core.shuffled import load_shuffled, shuffled_chunks
from mfmadsl.schedule.matrix_core.store_columns import Columns
from mfmadsl.schedule.matrix_core.tile_loops import (
    bind_copy,
    blocks_of,
    chunks_along_k,
    leaves_idle,
    of_one_group,
    of_tile,
    per_lane,
    tiled,
)
from mfmadsl.schedule.matrix_core.tiling.resources import CHUNK, LINE
from mfmadsl.schedule.product.inline import inline_producers
from mfmadsl.schedule.product.memory import Memory
from mfmadsl.schedule.product.nest import line
from mfmadsl.schedule.product.plain import BlockRead
from mfmadsl.schedule.product.shuffle import Shuffle

PIECE = 8
"""Bytes of K that a thread puts into the LDS at a time after turning rows around."""

GROUP = 16
"""Bytes of rows that it takes together."""

_TOGETHER = 8  # groups of rows whose halves of a chunk are put at a time


@dataclass(frozen=True)
class Staged:
    """A tile in the LDS, by its name, of rows of C (`side` 0) or its columns (1).

    It is `turned` if it lies [s, k, rows], as in memory, and `masked` if what is copied has other
    conditions than the edges of the matrix. What is shuffled in memory is so in the LDS, too.
    """

    name: str
    side: int
    turned: bool
    masked: bool
    shuffle: Shuffle | None


def copy_to_lds(
    sch: Schedule, block: SBlockRV, place: int, read: BlockRead, order: Columns, step: LoopRV,
    tiling: Tiling, chip: Architecture, blocks: int, extent: int | None = None,
) -> Staged:  # fmt: skip
    """Copy the tile of what a block reads, [s, rows, k], into the LDS in each step, of all blocks.
    The matrix has so many rows in its `extent`, if that is known.

    There its rows lie in the order of the tiles that read them. What computes the operand is
    inlined. Threads take what lies together in memory: chunks along K, or where rows are neighbours
    a few k of a few rows, which they turn around. A chip with reads that turn them around takes
    chunks of rows. What a thread takes of rows in turn is of one group of K, if elements have such.
    """
    memory, size = read.memory, read.size
    shared = sch.cache_read(block, place, "shared")
    if order.in_turn:
        sch.transform_layout(shared, ("read", 0), lambda s, row, k: (s, order.column(row), k))
    sch.compute_at(shared, step, preserve_unit_loops=True)
    inline_producers(sch, shared)
    masked = _is_masked(sch.get(shared).body.value)
    matrices, rows, k = sch.get_loops(shared)[-3:]
    counts = [_fixed(sch.get(loop).extent, sch.get(shared)) for loop in (rows, k)]
    threads = tiling.wave_count * chip.wave_size
    straight = tiling.stages > 1 and chip.wide_loads_to_lds
    turned = blocks == 1 and lies_turned(memory, tiling, chip, size, counts[0])
    shuffle = None if read.shuffle is None else read.shuffle.within(*counts)
    if shuffle is not None:
        shuffle = shuffle.in_turn(order.width, order.count)
    if shuffle is not None:
        inner = shuffled_chunks(sch, shuffle, (rows, k), counts, size, threads, straight)
    elif turned:
        sch.transform_layout(shared, ("write", 0), lambda s, row, k: (s, k, row))
        sch.reorder(k, rows)
        inner = chunks_along_k(
            sch, k, rows, counts[::-1], size, threads, straight, groups=(read.group, 1)
        )
    elif memory.axis in ("i", "j"):
        if order.in_turn:  # as they lie in memory
            several, turn, lane = sch.split(rows, [None, order.count, order.width])
            sch.reorder(several, lane, turn)
            rows = sch.fuse(several, lane, turn)
        # TVM tells how long a tile is, of which a part stands behind a matrix, for numbers only.
        known = isinstance(sch.get(shared).writes[0].source.shape[1], tirx.IntImm)
        piece = _piece(read, counts, threads)
        inner = turned_pieces(sch, rows, k, counts, size, piece, threads, blocks, known, read.group)
    else:
        is_few = (
            extent is not None and extent < counts[0] and _is_computed(sch.get(shared).body.value)
        )
        made = extent if is_few else None
        inner = chunks_along_k(
            sch, rows, k, counts, size, threads, straight, blocks, made, groups=(1, read.group)
        )
    if blocks > 1:
        inner[0] = sch.fuse(matrices, inner[0])
    bind_copy(sch, inner, tiling.wave_count, chip)
    return Staged(str(sch.get(shared).writes[0].source.name), read.side, turned, masked, shuffle)


def _fixed(extent: Expr, copy: SBlock) -> int:
    """The extent of a tile. Raises ScheduleError where TVM bounds it by that of the matrix."""
    number = constant(extent)
    if number is None:
        name = copy.reads[0].source.name if copy.reads else copy.name_hint
        raise ScheduleError(
            f"workload: a tile of `{name}` has no fixed size, but {line(extent)}: make the extent"
            " that it comes from a symbol"
        )
    return number


def _is_computed(value: Expr) -> bool:
    """Whether an element is more than copied, within the edges of the matrix."""
    while (choice := choice_of(value)) is not None:
        value = choice[1]
    return not isinstance(value, TensorLoad)


def _is_masked(value: Expr) -> bool:
    """Whether there are other conditions in it than one bound for each index."""
    nodes: list[Expr] = []
    walk(value, ((Call, tirx.Select), nodes.append))
    conditions = [c for n in nodes if (choice := choice_of(n)) for c in conjuncts_of(choice[0])]
    bounded = [c.a for c in conditions if isinstance(c, tirx.LT) and isinstance(c.a, tirx.Var)]
    return len({v.__chandle__() for v in bounded}) < len(conditions)


def lies_turned(memory: Memory, tiling: Tiling, chip: Architecture, size: int, rows: int) -> bool:
    """Whether a tile of so many rows lies in the LDS as in memory, [k, rows]: reads turn it.

    Where several k are made of one place, a thread has them of a row and puts them as a row.
    """
    across = memory.axis in ("i", "j") and memory.packed_along("k") == 1
    return across and tiling.transposing_reads and reads_turned(chip, size, rows)


def reads_turned(chip: Architecture, size: int, rows: int = 0) -> bool:
    """Whether the chip has reads for tiles that lie [k, rows], of elements of so many bytes."""
    return any(
        chip.name in read.chips and read.bits == 8 * size and rows % read.lanes == 0
        for read in reads().values()
    )


def _piece(read: BlockRead, counts: Sequence[int], threads: int) -> tuple[int, int]:
    """(k, rows) that a thread turns around: whole places, where several are made of one.

    Of a place of several k it takes few rows, as long as all that it takes is of one group.
    """
    memory, size = read.memory, read.size
    whole = memory.packed_along("ij"[read.side])
    if (packed := memory.packed_along("k")) == 1:
        return max(1, PIECE // size), max(1, (GROUP if size > 1 else 8) // size, whole)
    of_k, of_rows = min(packed, max(1, CHUNK // size)), max(1, GROUP // memory.size)
    while of_rows > 1 and 2 * prod(counts) <= min(read.group, counts[1]) * threads * of_rows:
        of_rows //= 2
    return of_k, max(of_rows, whole)


def turned_pieces(
    sch: Schedule, rows: LoopRV, k: LoopRV, counts: Sequence[int], size: int,
    piece: tuple[int, int], threads: int, blocks: int, known: bool, group_of_k: int = 1,
) -> list[LoopRV]:  # fmt: skip
    """[units, what a thread copies of each]: a piece of a few k of a few rows, of which the matrix
    has a `known` number or not.

    Neighbouring lanes take the two halves of a chunk of K, then rows: so they write without
    conflicts, and fetch whole cache lines. Of groups of rows that are no power of two they take a
    part that is one: so bits of a lane's number tell where it writes. A thread takes of a group of
    K what it can.
    """
    of_k, of_rows = piece
    pieces = blocks * prod(counts) // of_k
    while of_rows > 1 and (counts[0] % of_rows or leaves_idle(pieces, of_rows, threads)):
        of_rows //= 2
    halves = min(max(1, CHUNK // (of_k * size)), counts[1] // of_k)
    k_chunk, half, k_inside = sch.split(k, [None, halves, of_k])
    group, rows_inside = sch.split(rows, [None, of_rows])
    groups, chunks = counts[0] // of_rows, counts[1] // (of_k * halves)
    side = groups & -groups
    if known:
        side = _side(groups, chunks * halves * blocks, of_rows * size, threads)
    several, group = sch.split(group, [None, side])
    apart = min(max(1, _TOGETHER // side), chunks & -chunks)
    far, k_chunk = sch.split(k_chunk, [apart, None])
    turns = pieces // (of_rows * threads)
    place, k_apart = of_one_group(
        sch, k_chunk, chunks // apart, turns, group_of_k // (of_k * halves)
    )
    units = [*place, several, *k_apart, far, group, half]
    sch.reorder(*units, k_inside, rows_inside)
    return [sch.fuse(*units), k_inside, rows_inside]


def _side(groups: int, others: int, group_bytes: int, threads: int) -> int:
    """How many groups of rows neighbouring threads take, each of so many others: a power of two.

    Some threads may find no group there, as long as others have no more to do for it.
    """
    if not groups & (groups - 1):
        return groups
    side = LINE // group_bytes
    while side > groups & -groups and (
        ceil(ceil(groups / side) * side * others / threads) > ceil(groups * others / threads)
    ):
        side //= 2
    return side


def load_fragments(
    sch: Schedule, block: SBlockRV, place: int, read: BlockRead, tile: ModuleType, step: LoopRV,
    staged: Staged,
) -> None:  # fmt: skip
    """Load what a block reads, [s, rows, k], from the LDS into registers in each register step."""
    registers = sch.cache_read(block, place, "warp")
    sch.compute_at(registers, step, preserve_unit_loops=True)
    # A lies [rows, k] unless it is turned, and so does B, which modules call transposed.
    rows, columns = (tile.M, tile.N)[read.side], int(tile.K * read.columns)
    suffix = "_TRANSPOSED" if staged.turned == (read.side == 0) else ""
    index_map = getattr(tile, f"index_map_{read.name}{suffix.lower()}")
    shape = (columns, rows) if staged.turned else (rows, columns)
    tiles, loops = tiled(sch, registers, tile, *shape)
    sch.transform_layout(registers, ("write", 0), of_tile(index_map, 3, blocks_of(tile) > 1))
    if staged.shuffle is None:
        sch.tensorize(loops[0], getattr(tile, f"LOAD_{read.name}{suffix}_SHARED"))
        return
    slot = getattr(tile, f"{read.name.lower()}_slot")
    by_rows = slot if read.side == 0 else lambda row, k: slot(k, row)
    load_shuffled(sch, registers, staged.shuffle, tiles, loops, by_rows)


def load_from_memory(
    sch: Schedule, block: SBlockRV, place: int, read: BlockRead, order: Columns, tile: ModuleType,
    step: LoopRV,
) -> None:  # fmt: skip
    """Load what a block reads, [s, rows, k], from memory into registers in each step along K: each
    lane the elements that the instruction takes of it. What computes the operand is inlined."""
    registers = sch.cache_read(block, place, "warp")
    if order.in_turn:
        sch.transform_layout(registers, ("read", 0), lambda s, row, k: (s, order.column(row), k))
    sch.compute_at(registers, step, preserve_unit_loops=True)
    inline_producers(sch, registers)
    rows, columns = (tile.M, tile.N)[read.side], int(tile.K * read.columns)
    index_map = getattr(tile, f"index_map_{read.name}{'_transposed' if read.side else ''}")
    tiles, loops = tiled(sch, registers, tile, rows, columns)
    sch.transform_layout(registers, ("write", 0), of_tile(index_map, 3, blocks_of(tile) > 1))
    slot = getattr(tile, f"{read.name.lower()}_slot")
    by_rows = slot if read.side == 0 else lambda row, k: slot(k, row)
    lane, register = per_lane(sch, loops, by_rows)
    sch.bind(lane, "threadIdx.x")
    for loop in (*tiles, *([] if register is None else [register])):
        sch.unroll(loop)


def store_by_lanes(sch: Schedule, sums: SBlockRV, tile: ModuleType, columns: Columns) -> None:
    """Store C from registers, each lane the elements that it holds, neighbours together."""
    tiles, loops = tiled(sch, sums, tile, tile.M, tile.N)
    axes = len(sch.get(sums).iter_vars)
    sch.transform_layout(sums, ("read", 0), of_tile(tile.index_map_C, axes, blocks_of(tile) > 1))
    lane, register = per_lane(sch, loops, tile.c_slot)
    sch.bind(lane, "threadIdx.x")
    unrolled = tiles if register is None else [*tiles, register]
    if columns.in_turn:
        *_, column_tile = tiles
        several, turn = sch.split(column_tile, [None, columns.count])
        sch.reorder(several, *unrolled[len(tiles) :], turn)
        unrolled = [*tiles[:-1], several, *unrolled[len(tiles) :], turn]
    for loop in unrolled:
        sch.unroll(loop)

"""What the steps from shared memory on share: tiles of C, sums in registers, copies by all threads.

Extents may be numbers or, when a tuner samples them, random variables of the schedule.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm.s_tir import Schedule
from tvm.s_tir.schedule import LoopRV, SBlockRV


@dataclass(frozen=True)
class Tile:
    """What a workgroup computes: (rows, columns) of threads, of elements of each, of its parts.

    With `parts` of (2, 2) a thread has four groups of `elements`, which lie half a tile apart.
    `k_step` is how much of K is in shared memory at a time.
    """

    threads: tuple[Any, Any]
    elements: tuple[Any, Any]
    k_step: Any
    parts: tuple[Any, Any] = (1, 1)

    @property
    def extents(self) -> tuple[int, int]:
        """Rows and columns of C of a workgroup."""
        rows, columns = (
            int(parts * threads * elements)
            for parts, threads, elements in zip(
                self.parts, self.threads, self.elements, strict=True
            )
        )
        return rows, columns


@dataclass(frozen=True)
class Dealt:
    """A product that is dealt out to threads.

    `thread` is the loop of a thread's work, `step` that along K in which shared memory is filled
    once, `copies` the blocks that fill it with A and B, and `block` multiplies.
    """

    block: SBlockRV
    thread: LoopRV
    step: LoopRV
    copies: tuple[SBlockRV, SBlockRV]


def deal(sch: Schedule, tile: Tile) -> tuple[SBlockRV, LoopRV, LoopRV]:
    """Cut C into workgroups, parts and threads, and K into steps: block, loop of a thread, step."""
    block = sch.get_sblock("C")
    rows, columns, k = sch.get_loops(block)
    row = sch.split(rows, [None, tile.parts[0], tile.threads[0], tile.elements[0]])
    column = sch.split(columns, [None, tile.parts[1], tile.threads[1], tile.elements[1]])
    step, k = sch.split(k, [None, tile.k_step])
    levels = [loop for pair in zip(row, column, strict=True) for loop in pair]
    sch.reorder(*levels[:6], step, k, *levels[6:])
    for loop, axis in zip(levels, AXES, strict=False):
        sch.bind(loop, axis)
    return block, levels[5], step


AXES = "blockIdx.y", "blockIdx.x", "vthread.y", "vthread.x", "threadIdx.y", "threadIdx.x"


def copy_by_all_threads(
    sch: Schedule, block: SBlockRV, operand: int, step: LoopRV, tile: Tile, vector: int = 1,
    turned: bool = False,
) -> SBlockRV:  # fmt: skip
    """Put a tile of A (0) or B (1) into shared memory in each step, `vector` floats a thread.

    Neighbouring threads copy what lies side by side in memory. With `turned` the tile lies in
    shared memory with its columns as rows.
    """
    copy: SBlockRV = sch.cache_read(block, operand, "shared")
    sch.compute_at(copy, step)
    if turned:
        sch.transform_layout(copy, ("write", 0), lambda row, column: (column, row))
    elements = sch.fuse(*sch.get_loops(copy)[-2:])
    _, y, x, inside = sch.split(elements, [None, *tile.threads, vector])
    sch.bind(y, "threadIdx.y")
    sch.bind(x, "threadIdx.x")
    if vector > 1:
        sch.vectorize(inside)
    return copy


def keep_sums(sch: Schedule, block: SBlockRV, thread: LoopRV, vector: int = 1) -> None:
    """Keep a thread's elements of C in registers; store them at its end, several at once."""
    store = sch.cache_write(block, 0, "local")
    sch.reverse_compute_at(store, thread)
    if vector > 1:
        sch.vectorize(sch.get_loops(store)[-1])


def unroll(sch: Schedule, block: SBlockRV, loops: int) -> None:
    """Write out the innermost loops: a thread's elements become registers, which no loop counts.

    Two are its rows and columns, the third is K within a step.
    """
    for loop in sch.get_loops(block)[-loops:]:
        sch.unroll(loop)

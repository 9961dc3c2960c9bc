"""P on its way through the LDS: lanes write what they have of S, and read what an instruction
takes of them as an operand."""

from __future__ import annotations

from tvm import tirx
from tvm.script.ir_builder import tirx as script
from tvm.tirx import Buffer

from examples.attention.key_loop import PADDED
from mfmadsl.schedule.flash_attention.chain import at, slot
from mfmadsl.schedule.flash_attention.loops import block, loops, named
from mfmadsl.schedule.flash_attention.wave import Cut, WavePlace, WaveRegisters


def weights_tile(cut: Cut) -> Buffer:
    """A row for each query of a workgroup."""
    shape = cut.tiling.block, cut.tiling.keys
    buffer: Buffer = script.sblock_alloc_buffer(shape, cut.found.dtype, scope="shared")
    return named("P_tile", buffer)


def store_weights(cut: Cut, place: WavePlace, held: WaveRegisters, tile: Buffer) -> None:
    """Write a wave's exponentials, rounded, from the lanes that have the scores."""
    intrinsic = cut.chain.intrinsic
    with script.sblock("P_store"), cut.lanes() as lane:
        script.sblock_attr(PADDED)
        for x, n, r in loops(cut.sizes.keys, cut.sizes.queries, cut.sums):
            query = place.own_row + n * intrinsic.n + at(cut.chain.query, lane=lane)
            key = cut.key_of(x * intrinsic.m + at(cut.chain.row, lane=lane, register=r))
            rounded = held.s[x, n, lane, r].astype(cut.found.dtype)
            script.buffer_store(tile, rounded, [query, key])


def load_weights(cut: Cut, place: WavePlace, held: WaveRegisters, tile: Buffer) -> None:
    """Read them as the second factor of a product: lanes have others of them than they wrote."""
    second = cut.chain.second
    first_tile = tirx.floordiv(place.own_row, second.b.layout.columns)
    for t, n in loops(cut.sizes.steps, cut.sizes.queries):
        outer = [(cut.sizes.steps, t), (cut.sizes.queries, n)]
        with block("P_load", outer, [second.b.layout.columns, second.k]) as ((y, m), (query, key)):
            row = (first_tile + m) * second.b.layout.columns + query
            element = tile[row, y * second.k + key]
            script.buffer_store(held.p, element, [y, m, *slot(second.b, key, query)])

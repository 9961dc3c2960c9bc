"""Where the elements of a matrix instruction lie.

The formulas are those of the CDNA3 ISA, sections 7.1.4 ("Dense matrices") and 7.1.5 ("Sparse
matrices"), and of the CDNA4 ISA, sections 7.1.5 and 7.5.1: a wave of 64 lanes holds B blocks of
M x K by K x N; K_L elements lie in one lane, consecutive k or, of 256 bits, two runs of 128.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from mfmadsl.emulator.machine.wave import LANES

Table = npt.NDArray[np.int64]

_CHUNK_BITS = 128


@dataclass(frozen=True)
class BlockShape:
    """M x N x K of one block, and how many blocks."""

    m: int
    n: int
    k: int
    blocks: int


def input_item(
    shape: BlockShape, rows: int, row: int, k: int, block: int, chunk: int | None = None
) -> tuple[int, int]:
    """(lane, item) of A[row, k] of a block, or of B[k, row]; `rows` is M for A and N for B.

    A lane holds runs of `chunk` consecutive k, which go round the lanes; without it, one run.
    """
    groups = LANES // (rows * shape.blocks)
    chunk = chunk or shape.k // groups
    turn, k_in_turn = divmod(k, chunk * groups)
    group, item = divmod(k_in_turn, chunk)
    return row + rows * (block + shape.blocks * group), turn * chunk + item


def chunk_of(shape: BlockShape, rows: int, bits: int) -> int:
    """How many consecutive k a lane holds in one run, of elements of so many bits."""
    items = shape.k * rows * shape.blocks // LANES
    return _CHUNK_BITS // bits if items * bits > _CHUNK_BITS and bits in (8, 16) else items


def output_item(shape: BlockShape, out: str, i: int, j: int, block: int) -> tuple[int, int]:
    """(lane, item) of D[i, j] of a block."""
    h = 1 if out == "f64" else 4
    b_i = -(-LANES // (shape.n * shape.m // h))
    m_i = LANES // b_i // shape.n
    g = shape.m // (h * m_i)
    item = i % h + h * (i // (h * m_i) % g + g * (block // b_i))
    return j + shape.n * (block % b_i + b_i * (i // h % m_i)), item


def source_lanes(blgp: int) -> Table:
    """For each lane the one whose B it gets (CDNA3 ISA, section 7.1.3)."""
    lanes = np.arange(LANES)
    if blgp in (1, 2):
        return lanes % 32 + 32 * (blgp - 1)
    if blgp == 3:
        return (lanes + 16) % LANES
    return lanes % 16 + 16 * (blgp - 4) if blgp >= 4 else lanes


def source_blocks(blocks: int, cbsz: int, abid: int) -> tuple[int, ...]:
    """For each block the one whose A it gets: one for every 2**cbsz of them (section 7.1.3)."""
    return tuple(block >> cbsz << cbsz | abid for block in range(blocks))


@cache
def input_rows(
    shape: BlockShape, rows: int, chunk: int, blocks: tuple[int, ...]
) -> tuple[Table, Table]:
    """(lane, item) of element 0 of each k of the blocks, in the order block, k; the element x of
    it lies x lanes further."""
    slots = [
        input_item(shape, rows, 0, k, block, chunk) for block in blocks for k in range(shape.k)
    ]
    lanes, items = np.array(slots, np.int64).T
    return lanes.copy(), items.copy()


@cache
def output_rows(shape: BlockShape, out: str) -> tuple[Table, Table]:
    """(lane, item) of element 0 of each row of D, in the order block, row; the element j of it
    lies j lanes further."""
    rows = [(block, i) for block in range(shape.blocks) for i in range(shape.m)]
    slots = [output_item(shape, out, i, 0, block) for block, i in rows]
    lanes, items = np.array(slots, np.int64).T
    return lanes.copy(), items.copy()

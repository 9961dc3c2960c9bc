"""A tile in the LDS as a grid of banks, and which lanes read it together: conflicts, seen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mfmadsl.emulator.profiler.lds_cycles import lds_cycles, phases
from mfmadsl.error import ArgumentError
from mfmadsl.model import Architecture, Packed
from mfmadsl.passes.main_loop.lds.places import Swizzle, swizzled
from mfmadsl.passes.main_loop.lds.swizzle import WaveAccess, choose
from mfmadsl.report.picture.grid import Cell, Grid, grid_of

_ROW_BYTES = 128  # a row of the tile, as `gemm_schedule` makes it of most types
_WORD, _WIDEST = 4, 16  # bytes of a bank's word, and of the widest read of a lane


@dataclass(frozen=True)
class _Tile:
    """A tile of an operand, row after row, each with neighbours along k.

    `places` are the first elements that the lanes read with one instruction, of `size` bytes each.
    """

    name: str
    rows: int
    row_bytes: int
    element_bytes: int
    places: tuple[int, ...]
    size: int

    @property
    def elements(self) -> int:
        return self.rows * self.row_bytes // self.element_bytes


def bank_grids(packed: Packed, name: str, chip: Architecture) -> list[Grid]:
    """A tile of A or B in the LDS, whose rows go along k: as it is, and as the pass `swizzle`
    would have it for this read.

    A cell is a word of four bytes, with its bank; those that lanes read at the same time in the
    first phase of a read are marked. Titles say how many cycles the read takes, as the profiler
    counts them.

    Raises ArgumentError for another operand, and for elements that are no whole bytes.
    """
    tile = _tile_of(packed, name)
    access = WaveAccess(tile.places, tile.size, is_read=True)
    swizzle = choose([access], tile.element_bytes, tile.elements, chip)
    return [_drawn(tile, chip, ()), _drawn(tile, chip, swizzle)]


def _tile_of(packed: Packed, name: str) -> _Tile:
    operands = {"a": packed.a, "b": packed.b}
    if name not in operands:
        raise ArgumentError(f"{name} is read from no tile in the LDS; only a and b are")
    operand = operands[name]
    if operand.type.bits % 8 or operand.layout.blocks > 1:
        what = "several blocks" if operand.layout.blocks > 1 else "elements of part of a byte"
        raise ArgumentError(f"{packed.name} has {what}: no tile of it is drawn in the LDS")
    layout, size = operand.layout, operand.type.bits // 8
    along_row = name == "a"
    run = layout.run_along_row() if along_row else layout.run_along_column()
    rows, k = (layout.rows, layout.columns) if along_row else (layout.columns, layout.rows)
    row_bytes = max(_ROW_BYTES, k * size)
    places = []
    for lane in range(layout.lanes):
        _, row, column = layout.element(lane, 0)
        at, depth = (row, column) if along_row else (column, row)
        places.append(at * row_bytes // size + depth)
    return _Tile(name, rows, row_bytes, size, tuple(places), min(run * size, _WIDEST))


def _drawn(tile: _Tile, chip: Architecture, swizzle: Swizzle) -> Grid:
    reads = _addresses(np.array(tile.places), tile, swizzle)
    cycles, least = lds_cycles(
        chip, reads[None], np.ones((1, len(reads)), np.bool_), tile.size, reads=True
    )
    place, byte = np.divmod(np.arange(0, tile.rows * tile.row_bytes, _WORD), tile.element_bytes)
    lies = (_addresses(place, tile, swizzle) + byte) // _WORD
    readers = _readers(reads, tile, chip)

    def cell(row: int, column: int) -> Cell:
        word = int(lies[row * tile.row_bytes // _WORD + column])
        bank = word % chip.lds_read_banks
        lane, phase = readers.get(word, (None, None))
        read = "" if lane is None else f"; lane {lane} reads it in phase {phase}"
        first = column * _WORD // tile.element_bytes
        tip = f"{_element(tile, row, first)} and on: byte {word * _WORD}, bank {bank}{read}"
        return Cell(f"{bank}", bank, tip, phase == 0)

    return grid_of(
        f"{tile.name.upper()} in the LDS of {chip.name}, {_told(swizzle)}: a read of {tile.size} "
        f"bytes a lane takes {cycles[0]} cycles, {least[0]} without conflicts",
        ("row", "word"), (tile.rows, tile.row_bytes // _WORD), chip.lds_read_banks, cell,
    )  # fmt: skip


def _addresses(
    places: npt.NDArray[np.int64], tile: _Tile, swizzle: Swizzle
) -> npt.NDArray[np.int64]:
    """Bytes at which elements lie, by their places in the tile."""
    moved = places ^ swizzled(places, swizzle) if swizzle else places
    return moved * tile.element_bytes


def _readers(
    reads: npt.NDArray[np.int64], tile: _Tile, chip: Architecture
) -> dict[int, tuple[int, int]]:
    """The lane that reads a word, and in which phase."""
    found = {}
    for phase, lanes in enumerate(phases(chip.lds_read_banks, tile.size, True).tolist()):
        for lane in lanes:
            for word in range(max(1, tile.size // _WORD)):
                found[int(reads[lane]) // _WORD + word] = (lane, phase)
    return found


def _element(tile: _Tile, row: int, k: int) -> str:
    return f"A[{row}, {k}]" if tile.name == "a" else f"B[{k}, {row}]"


def _told(swizzle: Swizzle) -> str:
    """The swizzle in words: what is XORed to the number of an element."""
    if not swizzle:
        return "as it is"
    terms = (f"(x >> {t.right} & {t.mask}) << {t.left}" for t in swizzle)
    return "swizzled by x ^= " + " ^ ".join(terms)

"""Loops over the keys in which a step has its own keys and values in the LDS, and no others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tvm import tirx
from tvm.script.ir_builder import tirx as script
from tvm.tirx import Buffer, Expr

from mfmadsl.passes.tir.annotation import PIPELINE
from mfmadsl.schedule.flash_attention import elements
from mfmadsl.schedule.flash_attention.loops import block, named
from mfmadsl.schedule.flash_attention.wave import Cut, Tiles, WavePlace

PADDED = {"buffer_dim_align": [[0, 0, 32, 8]]}
"""What TVM's `storage_align` says of a block: in the LDS, rows of what it writes are 8 elements
longer than a multiple of 32. Lanes that read one row below the other then meet in few banks."""


@dataclass(frozen=True)
class KeyStep:
    """A step of a loop: its number, of how many, and the first of its keys; `masked` if there may
    be places behind the last key. The names of the loop's blocks end in `suffix`."""

    number: Expr
    count: Expr
    start: Expr
    masked: bool
    pipelined: bool
    suffix: str


@contextmanager
def key_steps(cut: Cut, place: WavePlace, suffix: str, pipelined: bool) -> Iterator[KeyStep]:
    """A loop over all keys, with the annotation that its passes overlap what it does or without."""
    keys = cut.tiling.keys
    count = tirx.floordiv(place.keys + (keys - 1), keys)
    annotations = {PIPELINE: 1} if pipelined else None
    with script.serial(0, count, annotations=annotations) as number:
        named("step", number)
        masked = not elements.divides(keys, place.keys)
        yield KeyStep(number, count, number * keys, masked, pipelined, suffix)


def copy_keys(cut: Cut, place: WavePlace, tiles: Tiles, step: KeyStep) -> None:
    """Copy K of a step into the LDS, its rows in the order that the cut says."""
    with _copy("K_copy", tiles.k, step) as (own, row, depth):
        number = own * cut.tiling.keys + cut.key_of(row)
        element = elements.key(cut, place, number, depth).copied()
        script.buffer_store(tiles.k, element, [row, depth])


def copy_values(cut: Cut, place: WavePlace, tiles: Tiles, step: KeyStep) -> None:
    """Copy V of a step into the LDS, turned around: the second product sums over keys."""
    with _copy("V_copy", tiles.v, step) as (own, column, row):
        number = own * cut.tiling.keys + row
        element = elements.value(cut, place, number, column).copied()
        script.buffer_store(tiles.v, element, [column, row])


@contextmanager
def _copy(name: str, tile: Buffer, step: KeyStep) -> Iterator[tuple[Expr, Expr, Expr]]:
    shape = [int(extent) for extent in tile.shape]
    outer = [(step.count, step.number)]
    with block(f"{name}{step.suffix}", outer, shape) as ((own,), (row, column)):
        if not step.pipelined:  # the pipeline finds an order without conflicts itself
            script.sblock_attr(PADDED)
        yield own, row, column

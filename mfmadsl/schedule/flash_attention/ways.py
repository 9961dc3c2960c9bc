"""On which ways K and V come into the LDS and out of it, as the chip and where they lie decide."""

from __future__ import annotations

from tvm.ir import TensorLoad
from tvm.tirx import Expr

from mfmadsl.model import Architecture
from mfmadsl.passes.tir.expression import bits_of, constant, depends, loads_of
from mfmadsl.schedule.flash_attention.chain import Chain
from mfmadsl.schedule.flash_attention.described import Attention, Axis
from mfmadsl.schedule.flash_attention.score import score_of
from mfmadsl.schedule.matrix_core.stage import reads_turned


def turns_values(found: Attention, chain: Chain, chip: Architecture) -> bool:
    """Whether V lies in the LDS as in memory, column by column, and reads turn it around."""
    size = bits_of(found.dtype) // 8
    return lies_along(found.v, found.axes.column) and reads_turned(chip, size, chain.intrinsic.m)


def loads_straight(found: Attention, chain: Chain, keys: int, chip: Architecture) -> bool:
    """Whether loads may bring K and V into the LDS past the registers, in steps of so many keys:
    elements as they are, in whole chunks, no key behind the last one, and nothing beside them."""
    axes, tile = found.axes, chain.intrinsic.m
    whole = ((axes.key, keys), (axes.depth, chain.first.k), (axes.column, tile))
    if not chip.wide_loads_to_lds or not turns_values(found, chain, chip):
        return False
    if any((constant(axis.extent) or 1) % each for axis, each in whole):
        return False
    score = score_of(found)
    if found.packed is not None or found.offsets or score.count is not None:
        return False
    if any(read.of_keys for read in score.reads):
        return False
    along = (found.k, axes.depth), (found.v, axes.column)
    plain = all(isinstance(value, TensorLoad) and lies_along(value, axis) for value, axis in along)
    return plain and not any(map(_is_read, (found.k, found.v)))


def lies_along(value: Expr, axis: Axis) -> bool:
    """Whether neighbours along an axis are neighbours in memory, in all that a value is made of of
    that axis."""
    loads = [load for load in loads_of(value) if depends(load, axis.var)]
    return all(load.indices[-1].same_as(axis.var) for load in loads)


def _is_read(value: Expr) -> bool:
    """Whether where a value lies is read of memory."""
    return any(loads_of(index) for load in loads_of(value) for index in load.indices)

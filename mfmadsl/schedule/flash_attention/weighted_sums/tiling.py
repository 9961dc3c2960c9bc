"""How weighted sums are cut, and which way is taken if none is asked for."""

from __future__ import annotations

from dataclasses import replace
from math import ceil

from mfmadsl.language import find
from mfmadsl.model import Architecture, AttentionTiling, unscaled
from mfmadsl.passes.tir.expression import bits_of, constant
from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.flash_attention.chain import Chain
from mfmadsl.schedule.flash_attention.described import Attention
from mfmadsl.schedule.flash_attention.tiling import (
    chain_of,
    check_lds,
    checked,
    known_size,
    lines_bytes,
    tiles_bytes,
)
from mfmadsl.schedule.flash_attention.ways import loads_straight
from mfmadsl.schedule.flash_attention.weighted_sums.cut import (
    attention_like,
    attentions_like,
    weights_of,
)
from mfmadsl.schedule.flash_attention.weighted_sums.described import WeightedSums
from mfmadsl.schedule.matrix_core.tiling.choice import choose_instruction
from mfmadsl.schedule.matrix_core.tiling.resources import CHUNK

_ROWS = 16  # of the instruction: more waves in less registers each than with one of 32
_CUTS = ((4, 32), (8, 32), (4, 16))
"""(waves, keys), the fastest first of those of which a SIMD has room for two waves."""

_WAVES, _KEYS = 4, 32  # where loads go past the registers

_OTHER_REGISTERS = 112  # fragments, addresses, and what LLVM takes beside
_OF_SYMBOLS = 32  # and for the edges of lengths that the launch tells


def default_sums_tiling(found: WeightedSums, chip: Architecture) -> AttentionTiling:
    """The tiling that should be fast.

    Raises ScheduleError where the chip has no instruction for the types, and where a depth or the
    columns are no numbers.
    """
    if (straight := _straight(found, chip)) is not None:
        return straight
    rows = constant(found.axes.row.extent)
    chosen = choose_instruction(found.dtype, found.dtype, chip.name, _ROWS)
    instruction = unscaled(chosen)
    pack = max(1, CHUNK * 8 // bits_of(found.dtype) // instruction.a.layout.elements_per_lane)
    while pack > 1 and any(ceil(depth / instruction.k) % pack for depth in _depths(found)):
        pack //= 2
    period = Chain(instruction, pack, 1).period
    offered = []
    for waves, keys in _CUTS:
        most = waves if rows is None else max(1, min(waves, ceil(rows / instruction.n)))
        if keys % period == 0:
            offered.append(AttentionTiling(chosen.name, most, instruction.n, keys, pack, 1))
    for wanted in (2, 1):
        for each in offered:
            if _waves_of_simd(each, found, chip) >= wanted:
                return each
    return offered[-1]


def _straight(found: WeightedSums, chip: Architecture) -> AttentionTiling | None:
    """A tiling with loads past the registers, which leave room for twice the rows in each wave.

    None where there are no such loads, or where masks and several sums take the registers.
    """
    chosen = choose_instruction(found.dtype, found.dtype, chip.name, None)
    tiling = AttentionTiling(chosen.name, _WAVES, find(chosen.name).n, _KEYS, 1, 1, stages=2)
    chain = chain_of(tiling)
    masks = weights_of(found).masks
    if _KEYS % chain.period or (len(found.sums) > 1 and not masks.is_plain):
        return None
    products, sums = attentions_like(found, masks.value)
    for each in (*products, *sums):
        if not loads_straight(each, chain, _KEYS, chip):
            return None
    if sums_lds_bytes(tiling, found) > chip.lds_bytes or not _waves_of_simd(tiling, found, chip):
        return None
    return tiling


def _waves_of_simd(tiling: AttentionTiling, found: WeightedSums, chip: Architecture) -> int:
    """How many waves a SIMD has room for, of which those of a workgroup are in it together."""
    groups = chip.lds_bytes // sums_lds_bytes(tiling, found)
    return min(
        groups * max(1, tiling.waves // chip.simds),
        chip.simd_registers // _registers(tiling, found, chip),
    )


def checked_sums(tiling: AttentionTiling, found: WeightedSums, chip: Architecture) -> Chain:
    """What a tiling makes of its instruction.

    Raises ScheduleError for a tiling that is not legal for the weighted sums on the chip.
    """
    chain = checked(tiling, _plain(found), chip)
    if tiling.splits > 1:
        raise ScheduleError(f"tiling.splits: is 1 where there is no softmax, not {tiling.splits}")
    check_lds(tiling, sums_lds_bytes(tiling, found), _lines_bytes(tiling, found), chip)
    return chain


def _plain(found: WeightedSums) -> Attention:
    return attention_like(found, found.products[0].variable)


def _depths(found: WeightedSums) -> list[int]:
    return [known_size("depth", each.depth) for each in found.products]


def _columns(found: WeightedSums) -> list[int]:
    return [known_size("columns of a sum", each.column) for each in found.sums]


def sums_lds_bytes(tiling: AttentionTiling, found: WeightedSums) -> int:
    """The bytes of a workgroup's tiles, and of lines of results that have no place there."""
    masks = weights_of(found).masks
    tiles = tiles_bytes(tiling, found.dtype, _depths(found), _columns(found), masks)
    return tiles + _lines_bytes(tiling, found)


def _lines_bytes(tiling: AttentionTiling, found: WeightedSums) -> int:
    like = _plain(found)
    return max(lines_bytes(tiling, replace(like, results=each.results)) for each in found.sums)


def _registers(tiling: AttentionTiling, found: WeightedSums, chip: Architecture) -> int:
    """About how many vector registers a lane needs: of rows, weights and what is on its way of
    keys and values, of sums and of the products of two steps, and others."""
    depths, columns = _depths(found), _columns(found)
    elements = tiling.rows * (sum(depths) + tiling.keys * len(columns))
    if tiling.stages == 1:
        elements += ceil(tiling.keys * (sum(depths) + sum(columns)) / tiling.waves)
    sums = tiling.rows * (sum(columns) + tiling.keys * len(depths))
    held = elements * bits_of(found.dtype) / 32 + sums
    known = all(constant(axis.extent) is not None for axis in (found.axes.row, found.axes.key))
    return ceil(held / chip.wave_size) + _OTHER_REGISTERS + (0 if known else _OF_SYMBOLS)

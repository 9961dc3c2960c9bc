"""How an attention is cut, and which way is taken if none is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from mfmadsl.argument import check_extent, check_type, described
from mfmadsl.language import find
from mfmadsl.model import Architecture, Intrinsic
from mfmadsl.passes.tir.expression import bits_of, constant
from mfmadsl.schedule.attention.chain import Chain
from mfmadsl.schedule.attention.described import Attention
from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.matrix_core.tiling.choice import choose_instruction
from mfmadsl.schedule.matrix_core.tiling.resources import CHUNK


@dataclass(frozen=True)
class AttentionTiling:
    """Sizes of an attention's kernel.

    A workgroup has so many `waves`, each with so many queries, `rows`, and walks over K and V in
    steps of so many `keys`, which it holds in the LDS. `instruction` names the matrix instruction
    of both products; one read of the LDS feeds `k_pack` of the first, and `value_pack` of the
    second. With `splits`, so many workgroups share the keys of a workgroup's queries, and a second
    kernel joins what they found.
    """

    instruction: str
    waves: int
    rows: int
    keys: int
    k_pack: int
    value_pack: int
    splits: int = 1

    @property
    def block(self) -> int:
        """The queries of a workgroup."""
        return self.waves * self.rows


def default_tiling(found: Attention, chip: Architecture) -> AttentionTiling:
    """The tiling that should be fast.

    Raises ScheduleError where the chip has no instruction for the types.
    """
    rows = constant(found.axes.row.dom.extent)
    instruction = choose_instruction(found.dtype, found.dtype, chip.name, rows)
    pack = max(1, CHUNK * 8 // bits_of(found.dtype) // instruction.a.layout.elements_per_lane)
    depth = constant(found.axes.depth.dom.extent) or 1
    while pack > 1 and ceil(depth / instruction.k) % pack:
        pack //= 2
    waves = 4 if rows is None else max(1, min(4, ceil(rows / instruction.n)))
    return AttentionTiling(instruction.name, waves, instruction.n, 64, pack, 1)


def checked(tiling: AttentionTiling, found: Attention, chip: Architecture) -> Chain:
    """What a tiling makes of its instruction.

    Raises ScheduleError for a tiling that is not legal for the attention on the chip.
    """
    check_type("tiling", tiling, AttentionTiling, "an AttentionTiling")
    for name in ("waves", "rows", "keys", "k_pack", "value_pack", "splits"):
        check_extent(f"tiling.{name}", getattr(tiling, name))
    check_type("tiling.instruction", tiling.instruction, str, "an intrinsic's name")
    instruction = find(tiling.instruction)
    _check_instruction(instruction, found, chip)
    chain = Chain(instruction, tiling.k_pack, tiling.value_pack)
    if tiling.rows % instruction.n:
        raise ScheduleError(
            f"tiling.rows: {tiling.rows} is no multiple of the {instruction.n} columns of"
            f" {instruction.name}"
        )
    if tiling.keys % chain.period:
        raise ScheduleError(
            f"tiling.keys: {tiling.keys} is no multiple of {chain.period}, after which the tiles of"
            " both products begin anew"
        )
    threads = tiling.waves * chip.wave_size
    if threads > chip.max_threads:
        raise ScheduleError(f"tiling.waves: {tiling.waves} are more than a workgroup has")
    return chain


def _check_instruction(instruction: Intrinsic, found: Attention, chip: Architecture) -> None:
    types = instruction.a.type.dtype, instruction.b.type.dtype, instruction.c.type.dtype
    if types != (found.dtype, found.dtype, "float32"):
        raise ScheduleError(
            f"tiling.instruction: {instruction.name} multiplies {types[0]} by {types[1]} into"
            f" {types[2]}, not {found.dtype} into float32"
        )
    if chip.name not in instruction.chips:
        raise ScheduleError(f"tiling.instruction: {chip.name} has no {instruction.name}")
    if instruction.blocks > 1 or instruction.scales or instruction.sparse:
        raise ScheduleError(
            f"tiling.instruction: {described(instruction.name)} does no plain product"
        )

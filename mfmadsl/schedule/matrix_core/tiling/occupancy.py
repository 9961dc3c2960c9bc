"""What a compute unit holds at once of a GEMM with some tiling, as far as it is known ahead."""

from __future__ import annotations

from math import ceil

from mfmadsl.model import Tiling
from mfmadsl.passes.main_loop.analysis.register_use import register_sets
from mfmadsl.passes.tir.expression import WORD
from mfmadsl.schedule.matrix_core.tiling import resources
from mfmadsl.schedule.matrix_core.tiling.gemm_on_chip import GemmOnChip

_MADE = 2.0  # registers for each word that is made of what was loaded, as LLVM was seen to need


def resident(gemm: GemmOnChip, tiling: Tiling) -> int:
    """How many workgroups a compute unit holds at once."""
    return resident_groups(gemm, tiling, copied_rows(gemm, tiling))


def resident_groups(
    gemm: GemmOnChip, tiling: Tiling, copied: tuple[int, int], groups: int | None = None
) -> int:
    """`resident`, where so many rows and columns are `copied`, of so many workgroups."""
    chip = gemm.chip
    registers = chip.granted(_registers(gemm, tiling, copied, groups))
    waves = min(chip.waves_per_simd, chip.simd_registers // registers)
    held = chip.simds * waves // tiling.wave_count
    lds = resources.lds_bytes(tiling, gemm.k_bytes, gemm.intrinsic, copied)
    return max(1, min(held, chip.lds_bytes // max(1, lds), chip.groups_with_barriers))


def has_registers(gemm: GemmOnChip, tiling: Tiling) -> bool:
    """Whether a compute unit surely has the registers of one workgroup."""
    waves = ceil(tiling.wave_count / gemm.chip.simds)
    registers = _registers(gemm, tiling, copied_rows(gemm, tiling))
    return registers * waves <= gemm.chip.simd_registers


def _registers(
    gemm: GemmOnChip, tiling: Tiling, rows: tuple[int, int], groups: int | None = None
) -> int:
    """Registers of a thread, with those for what it makes of a step's loads, which LLVM does well
    ahead."""
    if not tiling.stages:
        sets = sets_of(gemm, tiling, rows, groups)
        return resources.registers_past_lds(tiling, gemm.intrinsic, gemm.loaded, rows, sets)
    threads = tiling.wave_count * gemm.chip.wave_size
    row_bytes = sum(rows[side] * gemm.k_bytes[side] for side in gemm.made)
    words = _MADE * row_bytes * tiling.k_step * gemm.intrinsic.blocks / threads / WORD
    return int(words) + resources.registers(tiling, gemm.intrinsic, gemm.k_bytes, gemm.loads, rows)


def copied_rows(gemm: GemmOnChip, tiling: Tiling) -> tuple[int, int]:
    """Rows of A and columns of B that have a place in the LDS: of a single tile those past the edge
    only as far as threads copy them together with others, if their number is a power of two."""
    threads, made, found = tiling.wave_count * gemm.chip.wave_size, gemm.made, []
    sides = zip(tiling.block, (gemm.m, gemm.n), gemm.k_bytes, strict=True)
    for side, (size, extent, each) in enumerate(sides):
        chunk = resources.CHUNK
        while side in made and chunk > WORD and extent * tiling.k_step * each < chunk * threads:
            chunk //= 2  # all threads share what is made
        together = max(1, int(chunk * threads / (tiling.k_step * each)))
        rows = ceil(extent / together) * together
        found.append(rows if rows < size and not rows & (rows - 1) else size)
    return found[0], found[1]


def sets_of(
    gemm: GemmOnChip, tiling: Tiling, copied: tuple[int, int], groups: int | None = None
) -> int:
    """Of how many steps the loads past the LDS are in flight, of so many workgroups, or of as many
    as there are tiles."""
    if groups is None:
        tiles = ceil(gemm.m / tiling.block[0]) * ceil(gemm.n / tiling.block[1])
        groups = tiles * tiling.split_k * gemm.batches
    chip, words = gemm.chip, resources.words_past_lds(tiling, gemm.intrinsic, gemm.loaded, copied)
    sums = resources.sum_registers(tiling, gemm.intrinsic)
    return register_sets(words, tiling.wave_count, groups, sums, chip)

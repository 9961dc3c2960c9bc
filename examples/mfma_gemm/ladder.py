"""The steps of each chip in their order, and the size at which they are compared."""

from __future__ import annotations

from examples.mfma_gemm import (
    direct_loads,
    fragments_ahead,
    instruction_order,
    k_packing,
    large_tile,
    loads_in_flight,
    one_instruction,
    persistent,
    swizzle,
    transposing_reads,
    wave_tile,
    workgroup_tile,
)
from examples.mfma_gemm.step import Step, TilingOf
from examples.product import Size

FULL = {"gfx942": Size(8192, 4864, 1024), "gfx950": Size(8192, 4096, 1024)}
"""Of tiles of 256 x 256 two for each compute unit of an MI300X or MI355X."""

_STEPS: tuple[tuple[str, str, TilingOf], ...] = (
    ("one_instruction", "16 x 16 elements, each thing in turn", one_instruction.tiling),
    ("wave_tile", "64 x 64 elements a wave", wave_tile.tiling),
    ("workgroup_tile", "four waves share what is fetched", workgroup_tile.tiling),
    ("k_packing", "reads of 16 bytes", k_packing.tiling),
    ("swizzle", "no bank conflicts", swizzle.tiling),
    ("loads_in_flight", "the next step comes meanwhile", loads_in_flight.tiling),
    ("fragments_ahead", "the next fragments, too", fragments_ahead.tiling),
    ("instruction_order", "memory under matrix instructions", instruction_order.tiling),
    ("large_tile", "256 x 256 in eight waves", large_tile.tiling),
    ("transposing_reads", "the LDS turns B around", transposing_reads.tiling),
    ("direct_loads", "from memory into the LDS", direct_loads.tiling),
    ("persistent", "workgroups walk, in the dies' order", persistent.tiling),
)
_ONLY_ON_GFX950 = ("transposing_reads", "direct_loads")
CHIPS = tuple(FULL)


NAMES = tuple(name for name, _, _ in _STEPS)


def ladder(arch: str) -> tuple[Step, ...]:
    """The steps of gfx942 or gfx950. Raises KeyError for another chip."""
    _ = FULL[arch]
    return tuple(
        Step(name, change, arch, tiling(arch))
        for name, change, tiling in _STEPS
        if arch == "gfx950" or name not in _ONLY_ON_GFX950
    )

"""How a GEMM is cut, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mfmadsl.schedule import Tiling


def tiling_facts(tiling: Tiling) -> dict[str, str]:
    """What a page says of the tile, the instruction, and how the parts of K are shared."""
    rows, columns = tiling.block
    tile_rows, tile_columns = tiling.wave_tile
    facts = {
        "tile": f"{rows} x {columns} of C by {tiling.wave_count} waves, {tile_rows} x "
        f"{tile_columns} each; {tiling.k_step} of K at a time, in {tiling.stages} "
        f"stage{'s' * (tiling.stages > 1)}",
        "instruction": tiling.instruction
        + (f", {tiling.k_pack} for a read of the LDS" if tiling.k_pack > 1 else ""),
        "overlap": tiling.overlap + ("" if tiling.swizzle else ", without a swizzle"),
    }
    if tiling.split_k > 1 or tiling.k_waves > 1:
        facts["K"] = (
            f"shared by {tiling.split_k} workgroup{'s' * (tiling.split_k > 1)}, and by "
            f"{tiling.k_waves} group{'s' * (tiling.k_waves > 1)} of waves in each"
        )
    if tiling.persistent:
        facts["grid"] = f"workgroups walk over tiles, {tiling.group} rows of them at a time"
    return facts

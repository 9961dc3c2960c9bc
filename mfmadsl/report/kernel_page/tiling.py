"""How a GEMM is cut, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mfmadsl.argument import check_extent

SOURCES = {
    "given": "as asked for",
    "tuned": "found by `mfmadsl tune`",
    "formula": "the fastest by the formula",
}
"""Where a tiling is from, in words."""


def tiling_facts(tiling: Mapping[str, Any]) -> dict[str, str]:
    """What a page says of the tile, the instruction, how the parts of K are shared, and who chose
    it; of `tiling_json`, or what a file has of that.

    Raises KeyError, TypeError or ValueError for what is none.
    """
    rows, columns = (check_extent("block", each) for each in tiling["block"])
    down, across = (check_extent("waves", each) for each in tiling["waves"])
    k_step, stages, k_pack, split_k, k_waves = (
        check_extent(name, tiling[name])
        for name in ("k_step", "stages", "k_pack", "split_k", "k_waves")
    )
    facts = {
        "tile": f"{rows} x {columns} of C by {down * across * k_waves} waves, {rows // down} x "
        f"{columns // across} each; {k_step} of K at a time, in {stages} "
        f"stage{'s' * (stages > 1)}",
        "instruction": str(tiling["instruction"])
        + (f", {k_pack} for a read of the LDS" if k_pack > 1 else ""),
        "overlap": str(tiling["overlap"]) + ("" if tiling["swizzle"] else ", without a swizzle"),
    }
    if split_k > 1 or k_waves > 1:
        facts["K"] = (
            f"shared by {split_k} workgroup{'s' * (split_k > 1)}, and by "
            f"{k_waves} group{'s' * (k_waves > 1)} of waves in each"
        )
    if tiling["persistent"]:
        facts["grid"] = f"workgroups walk over tiles, {tiling['group']} rows of them at a time"
    return {**facts, "chosen": SOURCES[tiling["source"]]}

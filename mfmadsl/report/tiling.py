"""How a product is cut, as a line and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mfmadsl.model import AttentionTiling, Tiling


def tiling_line(tiling: Tiling) -> str:
    """Tile and step, the instruction, and the waves."""
    block = "x".join(map(str, (*tiling.block, tiling.k_step)))
    waves = "x".join(map(str, (*tiling.waves, tiling.k_waves)))
    parts = f", K in {tiling.split_k} parts" if tiling.split_k > 1 else ""
    return f"{block} of {tiling.instruction}, {waves} waves{parts}"


def tiling_json(tiling: Tiling, source: str) -> dict[str, Any]:
    """Every field, and where it is from: "formula", "tuned" or "given"."""
    return {**asdict(tiling), "source": source}


def attention_line(tiling: AttentionTiling) -> str:
    """How an attention is cut, in one line."""
    parts = [
        f"{tiling.waves} wave{'s' if tiling.waves > 1 else ''} of {tiling.rows} queries",
        f"steps of {tiling.keys} keys",
        tiling.instruction,
    ]
    if tiling.splits > 1:
        parts.append(f"keys in {tiling.splits} parts")
    return ", ".join(parts)

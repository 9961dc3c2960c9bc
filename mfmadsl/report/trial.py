"""A tiling that was tried, as a line and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mfmadsl.tune import Trial


def trial_line(trial: Trial) -> str:
    """Microseconds, and what tells the tiling from others; or why there are none."""
    tiling = trial.tiling
    block, waves = ("x".join(map(str, pair)) for pair in (tiling.block, tiling.waves))
    text = (
        f"{tiling.instruction}, block {block}x{tiling.k_step}, waves {waves}x{tiling.k_waves}, "
        f"stages {tiling.stages}, split_k {tiling.split_k}"
    )
    if trial.seconds is None:
        return f"         -  {text}: {trial.failure}"
    return f"{trial.seconds * 1e6:10.2f} us  {text}{' (known)' if trial.known else ''}"


def trial_json(trial: Trial) -> dict[str, Any]:
    """A trial as JSON."""
    return {
        "tiling": asdict(trial.tiling),
        "seconds": trial.seconds,
        "failure": trial.failure,
        "known": trial.known,
        "refused": trial.refused,
    }

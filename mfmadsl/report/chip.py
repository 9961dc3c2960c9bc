"""The time on a whole chip, as JSON and in lines for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mfmadsl.emulator.profiler import ChipTime

_TOLD = 0.1
"""Shares of the time below this are not worth a word."""


def chip_json(time: ChipTime) -> dict[str, Any]:
    """All that is said of a chip, by the model; shares are parts of `seconds`."""
    traffic = time.traffic
    return {
        "product": time.product.name,
        "modelled": True,
        "clock_mhz": round(time.clock),
        "cycles": time.cycles,
        "seconds": time.seconds,
        "end_to_end_seconds": time.end_to_end,
        "tflops": round(time.tflops, 3),
        "useful_tflops": round(time.useful_tflops, 3),
        "limit": time.limit,
        "shares": {name: round(share, 4) for name, share in time.shares.items()},
        "rounds": time.rounds,
        "launches": time.launches,
        "bytes": {
            "from_l2": round(traffic.requested),
            "into_l2": round(traffic.beyond),
            "from_hbm": round(traffic.memory),
            "stored": round(traffic.stored),
        },
    }


def chip_lines(time: ChipTime) -> list[str]:
    """How long it takes by the model, and what for."""
    shares = sorted(time.shares.items(), key=lambda item: -item[1])
    told = [f"{name} {share:.0%}" for name, share in shares if share >= _TOLD]
    launches = f" in {time.launches} launches" if time.launches > 1 else ""
    rate = f", {time.tflops:.0f} TFLOP/s" if time.flops else ""
    if round(time.useful) < round(time.flops):
        rate += f" of which {time.useful_tflops:.0f} within the matrices"
    told_of = f"{time.product.name}, modelled: {time.seconds * 1e6:.1f} us"
    return [
        f"chip        {told_of} at {time.clock:.0f} MHz{launches}{rate}, limited by {time.limit}",
        *([f"            {', '.join(told)} of the time"] if told else []),
    ]

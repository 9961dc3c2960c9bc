"""The caches of the CPU that this process runs on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from mfmadsl.schedule.host_cpu import host_cpu

_MESHED = frozenset(
    {
        "skylake-avx512", "cascadelake", "cooperlake", "icelake-server", "sapphirerapids",
        "emeraldrapids", "graniterapids", "graniterapids-d", "diamondrapids",
    }
)  # fmt: skip
"""LLVM's names of CPUs whose cores share a third cache over a mesh, which makes it slow for one
(Intel's servers from Skylake on)."""

_RATE, _RATE_OVER_MESH = 21, 4
"""As measured: of a Zen 4, and of an Emerald Rapids."""

_FOLDER = Path("/sys/devices/system/cpu/cpu0/cache")


@dataclass(frozen=True)
class Caches:
    """The bytes that one core has for data in its first and in its second cache.

    `third_rate` is how many of the third one it reads while it multiplies and adds one vector.
    """

    first: int = 32 << 10
    second: int = 1 << 20
    third_rate: int = _RATE


@cache
def host_caches() -> Caches:
    """This machine's, as Linux tells; where it does not, those of a usual server."""
    found = {1: Caches.first, 2: Caches.second}
    for index in sorted(_FOLDER.glob("index*")):
        try:
            level, kind, size = (
                (index / name).read_text().strip() for name in ("level", "type", "size")
            )
            if kind != "Instruction" and int(level) in found and size.endswith("K"):
                found[int(level)] = int(size[:-1]) << 10
        except (OSError, ValueError):
            continue
    rate = _RATE_OVER_MESH if host_cpu().name in _MESHED else _RATE
    return Caches(found[1], found[2], rate)

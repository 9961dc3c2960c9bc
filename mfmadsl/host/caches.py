"""The caches of the CPU that this process runs on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from mfmadsl.host.cpu import host_cpu
from mfmadsl.host.third_cache import USUAL, third_rate

_FOLDER = Path("/sys/devices/system/cpu/cpu0/cache")


@dataclass(frozen=True)
class Caches:
    """The bytes that one core has for data in its first and in its second cache.

    `third_rate` is how many of the third one it reads while it multiplies and adds one vector.
    """

    first: int = 32 << 10
    second: int = 1 << 20
    third_rate: int = USUAL


@cache
def host_caches() -> Caches:
    """This machine's: sizes as Linux tells, and the rate as measured.

    A size that it does not tell is that of a usual server.
    """
    sizes = _sizes()
    rate = third_rate(host_cpu(), sizes)
    return Caches(sizes.get(1, Caches.first), sizes.get(2, Caches.second), rate)


def _sizes() -> dict[int, int]:
    """Bytes of the caches for data, by level."""
    found: dict[int, int] = {}
    for index in sorted(_FOLDER.glob("index*")):
        try:
            level, kind, size = (
                (index / name).read_text().strip() for name in ("level", "type", "size")
            )
            if kind != "Instruction" and size.endswith("K") and int(size[:-1]) > 0:
                found[int(level)] = int(size[:-1]) << 10
        except (OSError, ValueError):
            continue
    return found

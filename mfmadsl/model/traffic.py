"""What the caches of a whole chip make of the lines that its compute units ask for.

Workgroups that run at once share lines: a line that several of a die ask for comes into its L2
once, and one that several dies ask for comes from memory once. Two that ask at once wait alike,
since the line is on its way for both.
"""

from __future__ import annotations

from dataclasses import dataclass

from mfmadsl.model.product import GpuProduct


@dataclass(frozen=True)
class Sharing:
    """The shares of distinct lines among all that resident workgroups ask of their L2s.

    `die` counts a line once for each die, `chip` once.
    """

    die: float
    chip: float


@dataclass(frozen=True)
class MemoryTraffic:
    """Bytes of a launch: read from the L2s, by the L2s, and from HBM; and written."""

    requested: float
    beyond: float
    memory: float
    stored: float


@dataclass(frozen=True)
class Path:
    """The way to memory of one compute unit among others: cycles.

    `read` and `written` are for each byte of a line that it asks of its L2 or writes; `latency` is
    that of a line which is there as soon as it may be.
    """

    read: float
    written: float
    latency: float


def traffic_of(
    product: GpuProduct, requested: float, stored: float, sharing: Sharing, footprint: float,
    warm: bool = False,
) -> MemoryTraffic:  # fmt: skip
    """The traffic of a launch that reads `footprint` different bytes, `requested` with repetitions.

    Rounds of workgroups follow each other: what they find of the last one's lines depends on
    whether all that is read fits into a cache. If it does, and another launch has read it before,
    so that the caches are `warm`, it does not come from behind them at all.
    """
    beyond, memory = requested * sharing.die, requested * sharing.chip
    if footprint <= product.l2_bytes:
        beyond = 0.0 if warm else min(beyond, footprint * product.dies)
    if footprint <= max(product.mall_bytes, product.l2_bytes):
        memory = 0.0 if warm else min(memory, footprint)
    return MemoryTraffic(requested, beyond, min(memory, beyond), stored)


def path_of(
    product: GpuProduct, traffic: MemoryTraffic, sharing: Sharing, units: int, l2_latency: int,
    clock: float = 1.0,
) -> Path:  # fmt: skip
    """The way to memory while so many compute units are busy, in cycles at a share of the highest
    clock. The L2s keep time with the compute units; what is behind them does not."""
    cycles = product.clock * clock / 1000  # of a nanosecond
    share = min(1 / units, product.unit_share) / cycles
    l2 = product.l2_peak * clock / cycles / units
    reads = max(1.0, traffic.requested)
    read = max(
        1 / l2,
        traffic.beyond / reads / (product.beyond_l2 * share),
        traffic.memory / reads / (product.reached_bandwidth * share),
    )
    written = 1 / (product.reached_bandwidth * share)
    first = traffic.memory / max(1.0, reads * sharing.chip)
    new = traffic.beyond / max(1.0, reads * sharing.die)
    far = product.memory_latency
    if product.mall_bytes:
        far = product.mall_latency + first * (product.memory_latency - product.mall_latency)
    return Path(read, written, l2_latency + new * max(0.0, far * cycles - l2_latency))

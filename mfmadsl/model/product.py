"""What a product is: a chip as it is sold, with its clock, its memory and its power."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class GpuProduct:
    """One product. Sizes are in bytes, bandwidths in GB/s and latencies in nanoseconds.

    The letters in brackets are the sources, those of `Architecture` and:

    I: AMD's data sheets of the products.
    J: AMD, "Measuring Max-Achievable FLOPs, Part 2" and "Understanding TAF" (ROCm blogs, 2025 and
       2026): hipBLASLt's best sustained figures, and the clocks at which it ran.
    K: TraceLens (AMD), which takes for MI355X the peak times the ratio that MI325X reaches of its.
    L: HipKittens (arXiv 2511.08083), section 3.4: the price of a miss on MI325X and MI355X.
    M: "Dissecting and Comparing" AMD's and NVIDIA's GPUs (arXiv 2510.27583): what of HBM's peak
       bandwidth MI300X reaches.
    N: AMD, rocm-amdgpu-bench on MI100.
    P: AITER's assembly for MXFP4, 16384 cubed on MI355X (ROCm/FlyDSL, issue 990).
    O: rocm-origami, AMD's analytical model: a split K takes 10,000 cycles more, here of 2100 MHz.

    - `arch`: the chip's name; `compute_units` and `dies`, of what is one device (I).
    - `clock`: the highest, in MHz (I).
    - `l2_bytes`: of each die; `l2_bandwidth`: of all of them at the highest clock (E; N).
    - `mall_bytes`, `mall_bandwidth`: of the cache of all dies, 0 where there is none (I; E).
    - `memory_bytes`: of HBM (I).
    - `memory_bandwidth`: the peak of HBM (I); `memory_share`: how much of it is reached (M).
    - `unit_share`: how much of the bandwidth beyond the L2 one compute unit gets at most (E).
    - `mall_latency`, `memory_latency`: of what misses the L2, and the MALL as well (L).
    - `launch`: from the end of one launch to the start of the next, which reads what it wrote (O).
    - `sustained`: TFLOP/s that the power allows in matrix instructions, by the wider type of A and
      B (J, K; four bits P); those of eight bits are taken for alike, and those of six, of which no
      figure is known, for as much. Where there is none, the highest clock holds.
    """

    name: str
    arch: str
    compute_units: int
    dies: int
    clock: int
    l2_bytes: int
    l2_bandwidth: float
    mall_bytes: int
    mall_bandwidth: float
    memory_bytes: int
    memory_bandwidth: float
    memory_share: float
    unit_share: float
    mall_latency: float
    memory_latency: float
    launch: float
    sustained: Mapping[str, float]

    def power_limit(self, *kinds: str) -> float | None:
        """The TFLOP/s that the power allows of elements of these types, of the type that takes
        most; None where nobody has measured it."""
        return min((self.sustained[kind] for kind in kinds if kind in self.sustained), default=None)

    @property
    def units_of_die(self) -> int:
        """Compute units of a die, rounded up."""
        return -(-self.compute_units // self.dies)

    @property
    def beyond_l2(self) -> float:
        """The bandwidth of what the L2s ask: of the MALL, or of HBM."""
        return self.mall_bandwidth if self.mall_bytes else self.reached_bandwidth

    @property
    def reached_bandwidth(self) -> float:
        """The bandwidth of HBM that kernels reach."""
        return self.memory_bandwidth * self.memory_share

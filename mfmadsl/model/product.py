"""What a product is: a chip as it is sold, with its clock, its memory and its power."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mfmadsl.model.power import Power


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
    R: Keckler et al., "GPUs and the Future of Parallel Computing" (IEEE Micro, 2011): energies at
       28 nm. 32 bytes take 50 pJ in an SRAM of 8 KiB, 26 pJ over 1 mm, 256 over 10, 1000 over 20.
    S: found from measured kernels; docs/chip.md says from which.
    T: Micron, "Ultra-Bandwidth Solutions": HBM2E, 6 pJ a bit.
    O: rocm-origami, AMD's analytical model: a split K takes 10,000 cycles more, here of 2100 MHz.

    - `arch`: the chip's name; `compute_units` and `dies`, of what is one device (I).
    - `clock`: the highest, in MHz (I).
    - `l2_bytes`: of each die; `l2_peak`: of all of them at the highest clock, 2048 bytes a cycle
      and die (D, CDNA 3; N). Compute units of an MI355X were seen to get two thirds of that, held
      up by latencies only (`Architecture`, Q).
    - `mall_bytes`, `mall_bandwidth`: of the cache of all dies, 0 where there is none (I; E).
    - `memory_bytes`: of HBM (I).
    - `memory_bandwidth`: the peak of HBM (I); `memory_share`: how much of it is reached (M).
    - `unit_share`: how much of the bandwidth beyond the L2 one compute unit gets at most (E).
    - `mall_latency`, `memory_latency`: of what misses the L2, and the MALL as well (L).
    - `launch`: from the end of one launch to the start of the next, which reads what it wrote (O).
    - `sustained`: TFLOP/s that the power allows in matrix instructions, by the wider type of A and
      B (J, K; four bits P); those of eight bits are taken for alike, and those of six, of which no
      figure is known, for as much. Tests hold what `power` gives against them.
    - `power`: what its work draws; None where nobody has measured it, and the highest clock holds.
    """

    name: str
    arch: str
    compute_units: int
    dies: int
    clock: int
    l2_bytes: int
    l2_peak: float
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
    power: Power | None

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

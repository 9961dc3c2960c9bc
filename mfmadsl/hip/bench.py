"""A GEMM on a GPU: checked first, then timed, beside what the chip could do at most."""

from __future__ import annotations

from dataclasses import dataclass

from mfmadsl.backend.gpu.kernel import Kernel
from mfmadsl.comparison import Comparison
from mfmadsl.gemm import Gemm
from mfmadsl.hip.run import Ran, run
from mfmadsl.language import library
from mfmadsl.model import GpuProduct, architecture, product_of
from mfmadsl.model.products import products_of


@dataclass(frozen=True)
class Bench:
    """A GEMM's run: `flops` are multiplications and additions of the product itself, and
    `peak_flops`, a second, those of the product's matrix cores at the highest clock."""

    comparison: Comparison
    ran: Ran
    product: GpuProduct
    flops: int
    peak_flops: float

    @property
    def flops_per_second(self) -> float:
        """Multiplications and additions a second."""
        return self.flops / self.ran.median_seconds

    @property
    def share_of_peak(self) -> float:
        """The rate as a share of the chip's highest."""
        return self.flops_per_second / self.peak_flops


def run_gemm(problem: Gemm, kernel: Kernel, repeat: int = 0) -> Bench:
    """Run a kernel on random matrices, compare with NumPy in float64, and time it if that agrees.

    Raises what `run` raises.
    """
    arrays = problem.operands()
    ran = run(kernel, list(arrays))
    comparison = problem.compare(*arrays)
    if repeat and comparison.agrees:
        ran = run(kernel, list(arrays), repeat=repeat)
    product = _product(ran)
    flops = 2 * (problem.batch or 1) * problem.m * problem.n * problem.k
    return Bench(comparison, ran, product, flops, peak_flops(problem.types[0], product))


def peak_flops(dtype: str, product: GpuProduct) -> float:
    """What a product's matrix cores could do in a second with elements of a type, all of them
    multiplying all the time."""
    chip = architecture(product.arch)
    of_a_cycle = [
        each.operations / dict(each.cycles)[chip.name]
        for each in library().values()
        if chip.name in each.chips and not each.sparse and each.a.type.dtype == dtype
    ]
    units = chip.simds * product.compute_units
    return max(of_a_cycle, default=0.0) * units * product.clock * 1e6


def _product(ran: Ran) -> GpuProduct:
    """The product that a GPU's name tells, or the first with its chip."""
    named = (p for p in products_of(ran.arch) if p.name.lower() in ran.device.lower())
    return next(named, product_of(ran.arch))

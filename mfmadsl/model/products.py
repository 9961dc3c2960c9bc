"""The products that have matrix cores: a record of each.

What each field means, in what unit it is and where it is from, `GpuProduct` says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from mfmadsl.argument import check_type, described
from mfmadsl.error import ArgumentError
from mfmadsl.model.chips import ARCHITECTURES, GFX90A, GFX908, GFX942, GFX950
from mfmadsl.model.power import Power
from mfmadsl.model.product import GpuProduct

_MIB = 1024 * 1024
_GIB = 1024 * _MIB


def _by_kind(f16: float, bf16: float, octets: float, **others: float) -> Mapping[str, float]:
    kinds = dict.fromkeys(("fp8", "bf8", "i8", "fp6", "bf6"), octets)
    return MappingProxyType({"f16": f16, "bf16": bf16, **kinds, **others})


_MI300X = Power(
    watts=750,
    idle=200,
    matrix=_by_kind(2.07, 1.67, 1.01),
    lds=3.2,
    l2=9.6,
    beyond=31,
    memory=48,
)
_MI355X = replace(_MI300X, watts=1400, matrix=_by_kind(1.55, 1.24, 0.52, fp4=0.4))

MI300X = GpuProduct(
    name="MI300X",
    arch=GFX942.name,
    compute_units=304,
    dies=8,
    clock=2100,
    l2_bytes=4 * _MIB,
    l2_peak=34_406,
    mall_bytes=256 * _MIB,
    mall_bandwidth=7_310,
    memory_bytes=192 * _GIB,
    memory_bandwidth=5_300,
    memory_share=0.81,
    unit_share=0.015,
    mall_latency=300,
    memory_latency=500,
    launch=4_760,
    sustained=_by_kind(654, 708, 1273),
    power=_MI300X,
)
MI325X = replace(
    MI300X,
    name="MI325X",
    memory_bytes=256 * _GIB,
    memory_bandwidth=6_000,
    sustained=_by_kind(787, 831, 1408),
    power=replace(_MI300X, watts=1000),
)
MI355X = replace(
    MI300X,
    name="MI355X",
    arch=GFX950.name,
    compute_units=256,
    clock=2400,
    l2_peak=39_322,
    mall_bandwidth=8_530,
    memory_bytes=288 * _GIB,
    memory_bandwidth=8_000,
    unit_share=0.008,
    sustained=_by_kind(1515, 1600, 2710, fp4=5590),
    power=_MI355X,
)
MI250X = replace(
    MI300X,
    name="MI250X",  # one of its two dies, which are a device each
    arch=GFX90A.name,
    compute_units=110,
    dies=1,
    clock=1700,
    l2_bytes=8 * _MIB,
    l2_peak=5_500,
    mall_bytes=0,
    mall_bandwidth=0,
    memory_bytes=64 * _GIB,
    memory_bandwidth=1_638,
    unit_share=0.03,
    sustained=MappingProxyType({}),
    power=None,
)
MI100 = replace(
    MI250X,
    name="MI100",
    arch=GFX908.name,
    compute_units=120,
    clock=1502,
    l2_peak=2_530,
    memory_bytes=32 * _GIB,
    memory_bandwidth=1_229,
)

PRODUCTS: dict[str, GpuProduct] = {p.name: p for p in (MI100, MI250X, MI300X, MI325X, MI355X)}

NAMED: Mapping[str, str] = MappingProxyType({
    "MI210": GFX90A.name,
    "MI250": GFX90A.name,
    "MI300A": GFX942.name,
    "MI350X": GFX950.name,
})  # fmt: skip
"""The chips of other products, of which there is no record.

Sources: AMD's data sheets; LLVM's AMDGPU backend guide, processors.
"""


def products_of(arch: str) -> tuple[GpuProduct, ...]:
    """The products with a chip, that which is meant if nobody says which first; maybe none."""
    return tuple(p for p in PRODUCTS.values() if p.arch == arch)


def _as_in_its_family(arch: str) -> Iterator[GpuProduct]:
    chip = ARCHITECTURES.get(arch)
    for product in PRODUCTS.values():
        if chip is not None and ARCHITECTURES[product.arch].family == chip.family:
            units, dies = chip.compute_units, chip.dies
            yield replace(product, name=chip.name, arch=chip.name, compute_units=units, dies=dies)


def product_of(arch: str, name: str | None = None) -> GpuProduct:
    """The product called `name`, or the first with a chip.

    A chip of which no product is known is taken to be sold as those of its family are. Raises
    ArgumentError if there is none of that name with that chip.
    """
    found = products_of(arch) or tuple(_as_in_its_family(arch))
    if name is None:
        if not found:
            raise ArgumentError(f"product: none is known with {described(arch)}")
        return found[0]
    check_type("product", name, str, f"a product's name such as '{MI300X.name}'")
    named = {p.name.lower(): p for p in found}
    if name.lower() not in named:
        known = ", ".join(f"{p.name} ({p.arch})" for p in PRODUCTS.values())
        raise ArgumentError(
            f"product: {described(name)} is none with {arch}: mfmadsl knows {known}"
        )
    return named[name.lower()]

"""What people call a chip: by its processor's name, or by that of a product that has it."""

from __future__ import annotations

from mfmadsl.argument import check_type, described
from mfmadsl.error import ArgumentError
from mfmadsl.model.architecture import Architecture
from mfmadsl.model.chips import ARCHITECTURES, DEFAULT_ARCH, RDNA, WITHOUT_MATRICES
from mfmadsl.model.product import GpuProduct
from mfmadsl.model.products import NAMED, PRODUCTS, products_of
from mfmadsl.nearest import meant, nearest

CHIP_NAMES = (*ARCHITECTURES, *(name.lower() for name in (*PRODUCTS, *NAMED)))
"""All names that a chip has, as people write them."""


def architecture(name: str) -> Architecture:
    """The chip called `name`, or that of the product called so, such as MI300X, in any case.

    Raises ArgumentError, listing those there are, if there is none.
    """
    check_type("arch", name, str, f"a chip's name such as '{DEFAULT_ARCH}'")
    found = chip_called(name)
    if found is None:
        raise ArgumentError(f"arch: {unknown_chip(name)}")
    return ARCHITECTURES[found]


def chip_called(name: str) -> str | None:
    """The chip of that name, or that of the product of that name; None if it is nobody's."""
    if name.lower() in ARCHITECTURES:
        return name.lower()
    product = product_called(name)
    return NAMED.get(name.upper()) if product is None else product.arch


def product_called(name: str) -> GpuProduct | None:
    """The product of that name; None if there is no record of it, or it is no product's."""
    return PRODUCTS.get(name.upper())


def product_names(arch: str) -> list[str]:
    """What the products with a chip are called, those with a record first."""
    recorded = [product.name for product in products_of(arch)]
    return [*recorded, *(name for name, of in NAMED.items() if of == arch)]


def unknown_chip(name: str) -> str:
    """Why there is no chip called `name`, and which there are."""
    known = ", ".join(
        f"{a.name} ({', '.join([a.family, *product_names(a.name)])})"
        for a in ARCHITECTURES.values()
    )
    lower = name.lower()
    if RDNA.fullmatch(lower):
        why = f"{described(name)} is an RDNA chip, which has WMMA instructions instead of MFMA:"
    elif WITHOUT_MATRICES.fullmatch(lower):
        why = f"{described(name)} has no matrix cores:"
    else:
        near = nearest(lower, CHIP_NAMES, 2, 0.75)
        why = f"unknown chip {described(name)}:{f' {meant(near)}' if near else ''}"
    return f"{why} mfmadsl knows {known}"

"""What people call a chip: by its processor's name, or by that of a product that has it."""

from __future__ import annotations

from mfmadsl.argument import check_type, described
from mfmadsl.error import ArgumentError
from mfmadsl.model.architecture import Architecture
from mfmadsl.model.chips import ARCHITECTURES, DEFAULT_ARCH, RDNA, WITHOUT_MATRICES
from mfmadsl.model.product import GpuProduct
from mfmadsl.model.products import PRODUCTS, products_of


def architecture(name: str) -> Architecture:
    """The chip called `name`, or that of the product called so, such as MI300X in any case.

    Raises ArgumentError, listing those there are, if there is none.
    """
    check_type("arch", name, str, f"a chip's name such as '{DEFAULT_ARCH}'")
    product = product_called(name)
    found = ARCHITECTURES.get(product.arch if product is not None else name)
    if found is None:
        raise ArgumentError(f"arch: {unknown_chip(name)}")
    return found


def product_called(name: str) -> GpuProduct | None:
    """The product of that name; None if it is a chip's name, or nobody's."""
    return PRODUCTS.get(name.upper())


def unknown_chip(name: str) -> str:
    """Why there is no chip called `name`, and which there are."""
    known = ", ".join(
        f"{a.name} ({', '.join([a.family, *(p.name for p in products_of(a.name))])})"
        for a in ARCHITECTURES.values()
    )
    if RDNA.fullmatch(name):
        why = f"{described(name)} is an RDNA chip, which has WMMA instructions instead of MFMA"
    elif WITHOUT_MATRICES.fullmatch(name):
        why = f"{described(name)} has no matrix cores"
    else:
        why = f"unknown chip {described(name)}"
    return f"{why}: mfmadsl knows {known}"

"""The products, beside AMD's data sheets."""

from __future__ import annotations

import pytest

from mfmadsl.error import ArgumentError
from mfmadsl.language import library
from mfmadsl.model import ARCHITECTURES, PRODUCTS, Intrinsic, architecture, product_of

PEAKS = {
    ("MI100", "f16"): 184.6,
    ("MI100", "f32"): 46.1,
    ("MI250X", "f16"): 383.0 / 2,
    ("MI250X", "f64"): 95.7 / 2,
    ("MI300X", "f16"): 1307.4,
    ("MI300X", "bf16"): 1307.4,
    ("MI300X", "fp8"): 2614.9,
    ("MI300X", "i8"): 2614.9,
    ("MI300X", "xf32"): 653.7,
    ("MI300X", "f64"): 163.4,
    ("MI325X", "bf16"): 1307.4,
    ("MI355X", "f16"): 2516.6,
    ("MI355X", "bf16"): 2516.6,
    ("MI355X", "fp8"): 5033.2,
    ("MI355X", "i8"): 5033.2,
    ("MI355X", "f64"): 78.6,
}
"""TFLOP/s of dense matrices at the highest clock (data sheets); of MI250X those of one die."""


def peak(name: str, kind: str) -> float:
    """What the library's cycles come to on all compute units."""
    product = PRODUCTS[name]
    chip = architecture(product.arch)
    rates = [
        2 * i.m * i.n * i.k * i.blocks / dict(i.cycles)[chip.name]
        for i in library().values()
        if isinstance(i, Intrinsic)
        and chip.name in i.chips
        and i.a.type.short == kind
        and not i.sparse
    ]
    return max(rates) * chip.simds * product.compute_units * product.clock / 1e6


@pytest.mark.parametrize(("name", "kind"), PEAKS)
def test_clock_and_compute_units_give_the_peak_of_the_data_sheet(name: str, kind: str) -> None:
    assert peak(name, kind) == pytest.approx(PEAKS[name, kind], rel=0.002)


@pytest.mark.parametrize("name", PRODUCTS)
def test_power_allows_between_half_of_the_peak_and_all(name: str) -> None:
    for kind, sustained in PRODUCTS[name].sustained.items():
        if (name, kind) in PEAKS:
            assert 0.45 < sustained / PEAKS[name, kind] < 1


def test_the_clock_under_full_load_is_the_one_that_was_seen() -> None:
    """Where hipBLASLt reached 708 TFLOP/s of bf16 on an MI300X, the clock was 1207 MHz, of which
    its kernels use 94 % (AMD, "Measuring Max-Achievable FLOPs, Part 2")."""
    product = PRODUCTS["MI300X"]
    clock = product.clock * product.sustained["bf16"] / peak("MI300X", "bf16") / 0.94
    assert clock == pytest.approx(1207, rel=0.01)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_each_chip_has_a_product_with_as_many_compute_units_and_dies(arch: str) -> None:
    product, chip = product_of(arch), architecture(arch)
    assert (product.compute_units, product.dies) == (chip.compute_units, chip.dies)


def test_a_product_is_found_by_its_name_however_it_is_written() -> None:
    assert product_of("gfx942", "mi325x") is PRODUCTS["MI325X"]
    assert product_of("gfx942") is PRODUCTS["MI300X"]


@pytest.mark.parametrize(("arch", "name"), [("gfx942", "MI355X"), ("gfx950", "H100")])
def test_a_product_without_the_chip_is_refused(arch: str, name: str) -> None:
    with pytest.raises(ArgumentError, match=rf"product: '{name}' is none with {arch}: .*MI325X"):
        product_of(arch, name)


def test_a_chip_without_products_is_refused() -> None:
    with pytest.raises(ArgumentError, match="product: none is known with 'gfx1100'"):
        product_of("gfx1100")


def test_a_name_of_the_wrong_type_is_refused() -> None:
    with pytest.raises(TypeError, match="product: is a product's name"):
        product_of("gfx942", 300)  # type: ignore[arg-type]

"""Facts of the entries against what LLVM selects."""

from __future__ import annotations

from typing import Any

import pytest

from mfmadsl.language import library
from mfmadsl.model import Intrinsic

EVERY = pytest.mark.parametrize("intrinsic", library().values(), ids=lambda i: i.name)


@EVERY
def test_names_and_registers_are_llvms(
    intrinsic: Intrinsic, llvm_intrinsics: dict[str, Any]
) -> None:
    forms = llvm_intrinsics[intrinsic.call]["forms"]
    c, a, b = (intrinsic.operand(x).register_count for x in "cab")
    last = [1] if intrinsic.sparse else [c, 1, 1] if intrinsic.scales else [c]
    for chip in intrinsic.chips:
        selected = [form for form in forms if chip in form["cpus"]]
        assert {form["mnemonic"] for form in selected} <= set(intrinsic.mnemonics)
        assert [c, a, b, *last] in [form["registers"] for form in selected]


def test_the_library_holds_all_that_llvm_selects_and_nothing_else(
    llvm_intrinsics: dict[str, Any],
) -> None:
    matrix = {k: v for k, v in llvm_intrinsics.items() if "wmma" not in k and "swmmac" not in k}
    known = {(call, chip) for call, v in matrix.items() for f in v["forms"] for chip in f["cpus"]}
    described = {(i.call, chip) for i in library().values() for chip in i.chips}
    assert described == {(call, chip) for call, chip in known if chip.startswith("gfx9")}


@pytest.mark.parametrize(
    ("chip", "dense", "sparse", "scaled"),
    [("gfx908", 20, 0, 0), ("gfx90a", 27, 0, 0), ("gfx942", 32, 14, 0), ("gfx950", 36, 28, 2)],
)
def test_every_chip_has_as_many_as_its_manual_lists(
    chip: str, dense: int, sparse: int, scaled: int
) -> None:
    found = [i for i in library().values() if chip in i.chips]
    assert len([i for i in found if not i.sparse and not i.scales]) == dense
    assert len([i for i in found if i.sparse]) == sparse
    assert len({i.call for i in found if i.scales}) == scaled
    assert len([i for i in found if i.scales]) == 25 * scaled


@EVERY
def test_an_eight_bit_float_is_read_as_the_chip_reads_it(intrinsic: Intrinsic) -> None:
    for operand in (intrinsic.a, intrinsic.b):
        if operand.type.kind == "float" and operand.type.bits == 8:
            fnuz = operand.type.name.endswith("fnuz")
            assert intrinsic.chips == (("gfx942",) if fnuz else ("gfx950",))


@EVERY
def test_names_are_unique_and_lead_back(intrinsic: Intrinsic) -> None:
    assert intrinsic.is_called(intrinsic.name)
    assert intrinsic.is_called(f"v_{intrinsic.name}")
    assert set(intrinsic.operands) >= {"a", "b", "c"}


def test_an_operand_that_is_not_there_is_an_error_that_lists_those_there_are() -> None:
    with pytest.raises(ValueError, match="has no operand `index`, but a, b, c"):
        library()["mfma_f32_16x16x4_f32"].operand("index")


def test_cycles_of_scaled_instructions_depend_on_the_narrower_types() -> None:
    of = {i.name.partition("f8f6f4_")[2]: dict(i.cycles)["gfx950"] for i in library().values()
          if i.scales and i.m == 16}  # fmt: skip
    assert of["fp8_fp8"] == of["fp4_bf8"] == 32
    assert of["fp4_fp4"] == of["bf6_fp4"] == 16

"""A wrong layout is always found: the instructions would not compute the product."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mfmadsl.language import microkernels
from mfmadsl.language.steps import WrongProduct, find_steps
from mfmadsl.model import Microkernel, VectorOperand
from mfmadsl.model.microkernel import products
from tests.language.entries import only
from tests.language.microkernels import DOT, FMA, SUM, TILES, described, replaced

EVERY = pytest.mark.parametrize("kernel", microkernels().values(), ids=lambda m: m.name)
KERNELS = [
    microkernels()[name]
    for name in ("avx2_f32_3x24", "sse2_f64_4x4", "vnni_u8i8_4x32", "amx_bf16_16x16x32")
]


@EVERY
def test_the_steps_of_the_library_make_each_product_once(kernel: Microkernel) -> None:
    made = [
        (kernel.c.place(*c), kernel.a.place(*a), kernel.b.place(*b))
        for step in kernel.steps
        for c, a, b in products(step, kernel.c.elements, kernel.group, kernel.tiles)
    ]
    wanted = product(range(kernel.m), range(kernel.n), range(kernel.k))
    assert sorted(made) == sorted(((i, j), (i, k), (k, j)) for i, j, k in wanted)


def swapped(operand: VectorOperand, first: int, second: int) -> VectorOperand:
    """Two elements of the tile, each in the place of the other."""
    slots = list(operand.layout.slots)
    slots[first], slots[second] = slots[second], slots[first]
    return replace(operand, layout=replace(operand.layout, slots=tuple(slots)))


@given(st.data())
def test_two_elements_in_each_others_places_are_found(data: st.DataObject) -> None:
    """Of one operand alone: whatever the two are, some sum gets another product."""
    kernel = data.draw(st.sampled_from(KERNELS))
    name = data.draw(st.sampled_from("abc"))
    count = len(kernel.operand(name).layout.slots)
    first = data.draw(st.integers(0, count - 1))
    second = data.draw(st.integers(0, count - 1).filter(lambda x: x != first))
    operands = {**kernel.operands, name: swapped(kernel.operand(name), first, second)}
    found = find_steps(operands["a"], operands["b"], operands["c"], kernel.tiles)
    if isinstance(found, WrongProduct):
        return
    # Rows of one register each may change places: then other registers are multiplied.
    operand = kernel.operand(name)
    assert operand.elements == 1, name
    assert sorted(found) != sorted(kernel.steps)


@pytest.mark.parametrize("text", [FMA, DOT, SUM])
def test_registers_may_be_numbered_anew(text: str, tmp_path: Path) -> None:
    """Registers of B in the opposite order are as good: the steps name others."""
    kernel = described(tmp_path, text)
    last = kernel.b.registers - 1
    slots = tuple((last - register, element) for register, element in kernel.b.layout.slots)
    turned = replace(kernel.b, layout=replace(kernel.b.layout, slots=slots))
    found = find_steps(kernel.a, turned, kernel.c, kernel.tiles)
    assert not isinstance(found, WrongProduct)
    assert [step._replace(b=last - step.b) for step in found] == list(kernel.steps)


def test_a_swapped_layout_is_told_by_the_sum_that_gets_something_else() -> None:
    layout = "layout odd(k, x) {\n  register = x % 2\n  element = x / 2\n}\n"
    found = only(layout + replaced(FMA, "columns(k, j, width=16, pack=1)", "odd(k, j)"))
    assert found.code == "product"
    assert found.message == (
        "element 0 of register 0 is C[0,0]: what gives it A[0,0] * B[0,0] gives A[0,0] * B[0,2] "
        "to C[0,1]"
    )
    assert found.span.text == "odd(k, j)"


def test_k_that_are_interleaved_wrongly_are_told() -> None:
    layout = (
        "layout pairs(k, x) {\n  register = k / 4 * 2 + x / 16\n"
        "  element = x % 16 * 2 + k % 2 + k % 4 / 2 * 32\n}\n"
    )
    found = only(layout + replaced(DOT, "columns(k, j, width=16, pack=4)", "pairs(k, j)"))
    assert found.code == "product"
    assert found.message == (
        "element 0 of register 0 is C[0,0], which needs A[0,0] * B[0,0], but it is given "
        "A[0,2] * B[0,1]"
    )
    assert found.span.text == "pairs(k, j)"


def test_a_tile_of_a_that_is_packed_like_b_is_told() -> None:
    layout = (
        "layout turned(x, y) {\n  register = y / 4 % 16 + 16 * (y / 64)\n"
        "  element = x * 4 + y % 4\n}\n"
    )
    found = only(layout + replaced(TILES, "tiles(i, k, width=64)", "turned(i, k)"))
    assert found.code == "product"
    assert "is C[" in found.message
    assert found.span.text == "turned(i, k)"


def test_c_by_columns_is_told() -> None:
    layout = "layout down(i, j) {\n  register = i / 16 * J + j\n  element = i % 16\n}\n"
    text = replaced(FMA, "sums(i, j, width=16)", "down(i, j)")
    text = text.replace("_2x32", "").replace("m=2 n=32", "m=16 n=16")
    found = only(layout + text)
    assert found.code == "product"
    assert found.message == (
        "element 0 of register 0 is C[0,0]: what gives it A[0,0] * B[0,0] gives A[0,0] * B[0,1] "
        "to C[1,0]"
    )

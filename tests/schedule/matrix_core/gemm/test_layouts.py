"""GEMMs of instructions whose elements lie elsewhere than any chip has them: right or refused."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from mfmadsl import Gemm, MfmadslError, emulate, find, sanitize
from mfmadsl.model import Intrinsic, Operand

Order = Callable[[int], int]
PLAIN = find("mfma_f32_16x16x16_f16")


def reordered(operand: Operand, lane: Order = int, register: Order = int) -> Operand:
    """The operand with its elements in other lanes and registers."""
    slots = tuple((lane(x), register(r)) for x, r in operand.layout.slots)
    return replace(operand, layout=replace(operand.layout, slots=slots))


def groups_reversed(lane: int) -> int:
    return lane % 16 + 16 * (3 - lane // 16)


def columns_reversed(lane: int) -> int:
    return lane // 16 * 16 + 15 - lane % 16


def downward(register: int) -> int:
    return 3 - register


def agrees(intrinsic: Intrinsic, scope: str | None = None, n: int = 72, **options: Any) -> bool:
    """Whether the GEMM is right, on a chip that has just this instruction."""
    gemm = Gemm(intrinsic, "gfx942", 80, n, 48, shared_scope=scope, **options)
    kernel, arrays = gemm.build(), gemm.operands()
    run = emulate(kernel, list(arrays), trusted=[intrinsic])
    assert run.trusted == ("v_mfma_f32_16x16x16_f16",)
    return gemm.compare(*arrays).agrees


@pytest.mark.parametrize("b_transposed", [False, True])
@pytest.mark.parametrize(
    "changes",
    [
        {"c": (groups_reversed, int)},
        {"c": (columns_reversed, int)},
        {"c": (int, downward)},
        {"c": (lambda lane: columns_reversed(groups_reversed(lane)), downward)},
        {"a": (int, downward), "b": (int, downward)},
        {"a": (groups_reversed, int), "b": (groups_reversed, int)},
    ],
    ids=["c groups", "c columns", "c registers", "c all", "k in registers", "k in groups"],
)
def test_any_order_of_c_and_any_common_order_of_k(
    changes: dict[str, tuple[Order, Order]], b_transposed: bool
) -> None:
    operands: dict[str, Any] = {
        name: reordered(PLAIN.operand(name), *orders) for name, orders in changes.items()
    }
    assert agrees(replace(PLAIN, **operands), b_transposed=b_transposed)


def bits_shuffled(count: int, generator: random.Random) -> Order:
    """A number's bits in another order."""
    width = count.bit_length() - 1
    order = generator.sample(range(width), width)
    return lambda x: sum((x >> bit & 1) << place for bit, place in enumerate(order))


@pytest.mark.parametrize("scope", [None, "shared"])
@pytest.mark.parametrize("seed", range(4))
def test_lanes_and_registers_in_any_order_of_their_bits(seed: int, scope: str | None) -> None:
    generator = random.Random(seed)
    operands: dict[str, Any] = {
        name: reordered(
            PLAIN.operand(name), bits_shuffled(64, generator), bits_shuffled(4, generator)
        )
        for name in generator.sample("abc", generator.randint(1, 3))
    }
    assert agrees(replace(PLAIN, **operands), scope, n=64)


@pytest.mark.parametrize("seed", range(3))
def test_lanes_in_no_order_at_all_are_refused(seed: int) -> None:
    lanes = random.Random(seed).sample(range(64), 64)
    intrinsic = replace(PLAIN, c=reordered(PLAIN.c, lanes.__getitem__))
    with pytest.raises(MfmadslError, match="the index map is no sum of digits"):
        agrees(intrinsic)


@pytest.mark.parametrize("scope", [None, "shared"])
@pytest.mark.parametrize("name", "abc")
def test_lanes_and_registers_that_count_down_in_one_operand(name: str, scope: str | None) -> None:
    """Of A against those of B, and of B against those of A."""
    changed = reordered(PLAIN.operand(name), groups_reversed, downward)
    changed = reordered(changed, columns_reversed)
    operands: dict[str, Any] = {name: changed}
    assert agrees(replace(PLAIN, **operands), scope, n=64)


@pytest.mark.parametrize("b_transposed", [False, True])
def test_what_counts_down_is_read_the_other_way_round(b_transposed: bool) -> None:
    """Tiles lie turned around in the LDS of this chip, and nothing binds the lanes of A and B."""
    wide = find("mfma_f32_16x16x32_f16")
    a, c = reordered(wide.a, columns_reversed), reordered(wide.c, groups_reversed)
    intrinsic = replace(wide, a=a, c=c)
    gemm = Gemm(intrinsic, "gfx950", 80, 72, 96, b_transposed=b_transposed, a_transposed=True)
    kernel, arrays = gemm.build(), gemm.operands()
    emulate(kernel, list(arrays), trusted=[intrinsic])
    assert gemm.compare(*arrays).agrees


@pytest.mark.parametrize("scope", [None, "shared"])
@pytest.mark.parametrize("name", ["mfma_f32_16x16x16_f16", "mfma_i32_16x16x32_i8"])
def test_narrow_elements_that_lie_otherwise_in_registers_of_a_and_b(
    name: str, scope: str | None
) -> None:
    """LLVM reads words and halves of the LDS that are not aligned, which amdhsa allows."""
    plain = find(name)
    last = plain.a.layout.elements_per_lane - 1
    changed = replace(plain, a=reordered(plain.a, int, lambda register: last - register))
    gemm = Gemm(changed, "gfx942", 32, 32, 64, shared_scope=scope, a_transposed=scope is None)
    kernel, arrays = gemm.build(), gemm.operands()
    assert sanitize(kernel, list(gemm.operands())).faults == ()
    emulate(kernel, list(arrays), trusted=[changed])
    assert gemm.compare(*arrays).agrees


def test_columns_of_which_some_bits_count_down() -> None:
    """Modifiers know lanes of B by what they are, and TVM not that two turns of these are none."""
    assert agrees(replace(PLAIN, c=reordered(PLAIN.c, lambda lane: lane ^ 5)), n=40)

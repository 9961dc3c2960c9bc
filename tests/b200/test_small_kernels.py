"""Mistakes that a kernel of a few statements shows, and what the interpreter refuses."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tvm.tirx import PrimFunc, const

from b200 import Fault, Kind, NotUnderstood, execute
from tests.b200 import small_kernels as kernels
from tests.b200.mutation import changed, operand
from tests.b200.problems import values

ROWS, COLUMNS = kernels.ROWS, kernels.COLUMNS
LATE = pytest.mark.parametrize("late", [True, False], ids=["late", "early"])


def faults(kernel: PrimFunc, *, late: bool = True, seed: int = 0) -> tuple[Fault, ...]:
    """Of a kernel with one matrix."""
    return execute(kernel, [values(ROWS, COLUMNS, 37)], late=late, seed=seed).faults


def product(late: bool = True, seed: int = 0, **how: bool) -> tuple[tuple[Fault, ...], bool]:
    """Of a kernel of one tile, and whether its numbers are right."""
    arrays: list[NDArray[Any]] = [
        values(ROWS, COLUMNS, 37), values(ROWS, COLUMNS, 53), np.zeros((ROWS, ROWS), np.float32)
    ]  # fmt: skip
    found = execute(kernels.one_tile(**how), arrays, late=late, seed=seed).faults
    a, b = (array.astype(np.float64) for array in arrays[:2])
    return found, np.array_equal(arrays[2], a @ b.T)


@LATE
def test_a_deadlock_tells_who_waits_for_what_and_where(late: bool) -> None:
    (fault,) = faults(kernels.waits_for_nobody(0), late=late)
    assert fault.kind is Kind.DEADLOCK
    assert fault.message == (
        "waits for parity 0 of the mbarrier at byte 0: "
        "phase 0 of parity 0 waits for 1 of 1 arrivals and 0 bytes"
    )
    assert fault.where.startswith("CTA 0 warp 2: ")
    assert "mbarrier_wait" in fault.where


def test_the_phase_before_the_first_one_has_ended() -> None:
    assert faults(kernels.waits_for_nobody(1)) == ()


def test_a_phase_has_parity_0_or_1() -> None:
    (fault,) = faults(kernels.waits_for_nobody(2))
    assert fault.kind is Kind.BARRIER
    assert "parity 2" in fault.message


@pytest.mark.parametrize(
    ("kernel", "kind", "message"),
    [
        (kernels.arrives_without_initialisation(), Kind.BARRIER, "there is no mbarrier at byte 0"),
        (kernels.overwrites_a_barrier(), Kind.BARRIER, "was overwritten"),
        (kernels.synchronises_half_a_warp(16), Kind.DIVERGENCE, "16 threads of it are here"),
        (kernels.shares_a_barrier(), Kind.BARRIER, r"of \d+ threads is used with \d+"),
        (kernels.columns_of_tensor_memory(48, 1), Kind.TENSOR_MEMORY, "48 columns"),
        (kernels.columns_of_tensor_memory(512, 2), Kind.TENSOR_MEMORY, "of 0 free"),
        (kernels.columns_of_tensor_memory(256, 2), Kind.TENSOR_MEMORY, "from 256 on are not freed"),
    ],
)  # fmt: skip
def test_a_mistake_is_told(kernel: PrimFunc, kind: Kind, message: str) -> None:
    for late in (True, False):
        for seed in range(3):
            found = faults(kernel, late=late, seed=seed)
            assert {fault.kind for fault in found} == {kind}
            assert any(re.search(message, fault.message) for fault in found), found


def test_all_threads_of_a_warp_may_wait_for_each_other() -> None:
    assert faults(kernels.synchronises_half_a_warp(32)) == ()


@pytest.mark.parametrize("lanes", [1, 3, 32])
def test_a_predicate_says_which_threads_arrive(lanes: int) -> None:
    assert faults(kernels.arrives_with_a_predicate(lanes, 4 * lanes)) == ()
    kinds = {fault.kind for fault in faults(kernels.arrives_with_a_predicate(lanes, 4 * lanes + 1))}
    assert kinds == {Kind.DEADLOCK}


def test_registers_are_asked_for_by_eights() -> None:
    kernel = kernels.asks_for_registers(232)
    assert faults(kernel) == ()
    (fault,) = faults(changed(kernel, "setmaxnreg", 0, operand(0, lambda _: const(100, "uint32"))))
    assert fault.kind is Kind.OUT_OF_BOUNDS
    assert "not 100" in fault.message


def test_a_thread_knows_where_it_is() -> None:
    found = np.full((6, 256, 8), -1, np.float32)
    assert execute(kernels.places(), [found]).faults == ()
    cta, thread = np.indices((6, 256))
    expected = [
        cta % 2, cta // 2, thread // 128, thread // 32 % 4, thread // 32, thread % 32, thread,
        thread % 128,
    ]  # fmt: skip
    np.testing.assert_array_equal(found, np.stack(expected, axis=-1))


def test_a_cta_knows_where_it_is_in_its_cluster() -> None:
    found = np.full((6, 32, 2), -1, np.float32)
    assert execute(kernels.places_in_clusters(), [found], sms=2).faults == ()
    cta = np.indices((6, 32))[0]
    np.testing.assert_array_equal(found, np.stack([cta // 2, cta % 2], axis=-1))


@LATE
@pytest.mark.parametrize("seed", range(3))
def test_tensor_memory_is_where_its_allocation_says(seed: int, late: bool) -> None:
    assert product(late, seed) == ((), True)


@LATE
@pytest.mark.parametrize("seed", range(3))
def test_its_address_is_read_after_a_barrier(seed: int, late: bool) -> None:
    kinds = {fault.kind for fault in product(late, seed, barrier=False)[0]}
    assert Kind.RACE in kinds


@LATE
def test_operands_that_nobody_wrote_are_told(late: bool) -> None:
    found, right = product(late, load=False)
    assert {fault.kind for fault in found} == {Kind.UNINITIALISED}
    assert not right


@LATE
def test_the_layout_of_operands_does_not_change_the_product(late: bool) -> None:
    assert product(late, swizzled=False) == ((), True)


@pytest.mark.parametrize(
    ("what", "named"),
    [
        ("instruction", "cuda.thread_fence"),
        ("modifier", "the modifiers .'relaxed'. of"),
        ("tile operation", "tile operation add"),
        ("kind of loop", "a loop of kind 2"),
        ("multicast", "cta_mask"),
        ("scope", "the copy by a warpgroup"),
        ("expression", "tirx.exp"),
        ("memory", "global memory"),
        ("launch", "no one number of CTAs and of warps"),
        ("shared memory", "232449 bytes"),
    ],
)
def test_what_is_not_understood_is_refused_by_name(what: str, named: str) -> None:
    """Even where it would never be executed: nothing is skipped."""
    given = values(ROWS, COLUMNS, 37)
    before = given.copy()
    with pytest.raises(NotUnderstood, match=named):
        execute(kernels.not_understood(what), [given])
    np.testing.assert_array_equal(given, before)

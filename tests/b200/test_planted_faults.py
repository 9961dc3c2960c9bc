"""One statement of a kernel is taken away or changed: the interpreter notices, in every order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from tvm.tirx import PrimFunc, const

from b200 import Kind, Report, execute
from tests.b200.mutation import (
    Change,
    argument,
    by_lane_0,
    changed,
    exchanged,
    nothing,
    operand,
    shifted,
    unconditional,
)
from tests.b200.problems import PROBLEMS, product

ORDERS = [(0, True), (1, False)]
"""Seeds, and whether what is asynchronous ends as late as it may."""


@dataclass(frozen=True)
class Planted:
    """What is done to a kernel, and of which kinds the faults are, of which one at least is told.

    Attributes:
        step: which kernel.
        name: of the statement.
        number: of the statement, among those of that name.
        change: of it.
        kinds: each order shows a fault of one of these; none for faults that only numbers show.
    """

    step: int
    name: str
    number: int
    change: Change
    kinds: set[Kind] = field(default_factory=set)

    @property
    def kernel(self) -> PrimFunc:
        """With the fault."""
        return changed(PROBLEMS[self.step].kernel, self.name, self.number, self.change)


def words(value: int) -> Callable[[Any], Any]:
    """Another operand of 32 bits."""
    return lambda _: const(value, "uint32")


RACE, BARRIER, DEADLOCK = {Kind.RACE}, {Kind.BARRIER}, {Kind.DEADLOCK}
STAGE = 2 * 128 * 64 * 2  # bytes of a stage, of A and of B
PLANTED = {
    # Phases and waits.
    "the wrong phase of a load": Planted(
        4, "mbarrier_wait", 0, operand(1, lambda phase: phase ^ 1), RACE | DEADLOCK
    ),
    "the wrong phase of an MMA": Planted(
        4, "mbarrier_wait", 1, operand(1, lambda phase: phase ^ 1), RACE | DEADLOCK
    ),
    "no wait for a load": Planted(4, "mbarrier_wait", 0, nothing, RACE),
    "no wait for an MMA": Planted(4, "mbarrier_wait", 1, nothing, RACE),
    "a stage overwritten early": Planted(7, "mbarrier_wait", 1, nothing, RACE | BARRIER),
    "a stage used before it is loaded": Planted(7, "mbarrier_wait", 3, nothing, RACE),
    "sums overwritten before they are read": Planted(7, "mbarrier_wait", 2, nothing, RACE),
    "sums read before they are there": Planted(7, "mbarrier_wait", 0, nothing, RACE),
    "a consumer that does not wait for its stage": Planted(10, "mbarrier_wait", 3, nothing, RACE),
    # Counts.
    "too few bytes": Planted(
        4, "mbarrier_arrive_expect_tx", 0, operand(1, words(STAGE // 2)), RACE
    ),
    "too many bytes": Planted(
        4, "mbarrier_arrive_expect_tx", 0, operand(1, words(STAGE + 128)), DEADLOCK
    ),
    "the bytes of one CTA of two": Planted(
        9, "mbarrier_arrive_expect_tx", 0, operand(1, words(STAGE)), RACE
    ),
    "too few arrivals": Planted(7, "mbarrier_init", 3, operand(1, words(64)), RACE),
    "too many arrivals": Planted(7, "mbarrier_init", 3, operand(1, words(129)), DEADLOCK),
    "no arrivals": Planted(7, "mbarrier_init", 3, operand(1, words(0)), BARRIER),
    "the arrivals of one CTA of two": Planted(9, "mbarrier_init", 3, operand(1, words(128)), RACE),
    "a stage given back by one consumer of two": Planted(
        10, "mbarrier_init", 1, operand(1, words(1)), RACE | DEADLOCK
    ),
    "an arrival left out": Planted(7, "mbarrier_arrive", 0, nothing, DEADLOCK),
    "all threads of a warp load": Planted(4, "IfThenElse", 4, unconditional, BARRIER | {Kind.RACE}),
    # Commits.
    "no commit for the stage": Planted(7, "tcgen05_commit", 0, nothing, DEADLOCK),
    "no commit for the sums": Planted(7, "tcgen05_commit", 1, nothing, DEADLOCK),
    "a commit that tells one CTA of two": Planted(
        9, "tcgen05_commit_multicast", 0, operand(1, lambda _: const(1, "uint16")), DEADLOCK
    ),
    # Fences.
    "no proxy fence before an MMA": Planted(2, "fence_proxy", 0, nothing, RACE),
    "no proxy fence after an MMA": Planted(2, "fence_proxy", 1, nothing, RACE),
    "no proxy fence before a store": Planted(7, "fence_proxy", 0, nothing, RACE),
    "no fence after the barriers' initialisation": Planted(
        7, "fence_mbarrier_init", 0, nothing, RACE
    ),
    "no tcgen05 fence before sums are read": Planted(7, "tcgen05_fence", 0, nothing, RACE),
    "no tcgen05 fence after sums are read": Planted(7, "tcgen05_fence", 1, nothing, RACE),
    "no tcgen05 fence before sums are written": Planted(7, "tcgen05_fence", 2, nothing, RACE),
    # Tensor memory.
    "no wait for the registers": Planted(7, "tcgen05_wait", 0, nothing, {Kind.REGISTER}),
    "sums added to nothing": Planted(
        7, "gemm_async", 0, argument(5, lambda _: const(True, "bool")), {Kind.UNINITIALISED}
    ),
    "sums never added": Planted(7, "gemm_async", 0, argument(5, lambda _: const(False, "bool"))),
    "A and B exchanged": Planted(7, "gemm_async", 0, exchanged(1, 2)),
    "tensor memory never freed": Planted(7, "tcgen05_dealloc", 0, nothing, {Kind.TENSOR_MEMORY}),
    "tensor memory freed while it is read": Planted(
        1, "cta_sync", 2, nothing, {Kind.TENSOR_MEMORY}
    ),
    "tensor memory freed twice as much": Planted(
        7, "tcgen05_dealloc", 0, operand(1, words(256)), {Kind.TENSOR_MEMORY}
    ),
    "too little tensor memory": Planted(
        9, "tcgen05_alloc", 0, operand(1, words(128)), {Kind.TENSOR_MEMORY}
    ),
    # Barriers of threads.
    "no barrier between a copy and its MMA": Planted(1, "cta_sync", 1, nothing, RACE),
    "no barrier after the barriers' initialisation": Planted(
        5, "cta_sync", 0, nothing, RACE | BARRIER
    ),
    "no barrier before shared memory is written again": Planted(
        7, "warpgroup_sync", 0, nothing, RACE
    ),
    "no barrier before a store": Planted(7, "warpgroup_sync", 1, nothing, RACE),
    "no barrier of the cluster at the beginning": Planted(
        9, "cluster_sync", 0, nothing, RACE | BARRIER
    ),
    "no barrier of the cluster at the end": Planted(9, "cluster_sync", 1, nothing, {Kind.LIFETIME}),
    # Stores.
    "no wait before a store's memory is written again": Planted(
        7, "cp_async_bulk_wait_group", 0, nothing, RACE
    ),
    "no wait for the last store": Planted(
        7, "cp_async_bulk_wait_group", 1, nothing, {Kind.LIFETIME}
    ),
    "a store in no group": Planted(7, "cp_async_bulk_commit_group", 0, nothing, {Kind.LIFETIME}),
    # Places.
    "a tile beyond the matrix": Planted(
        4, "copy_async", 0, argument(1, shifted(0, 256)), {Kind.OUT_OF_BOUNDS}
    ),
    "a step beyond K": Planted(
        7, "copy_async", 2, argument(1, shifted(1, 64)), {Kind.OUT_OF_BOUNDS}
    ),
}


def run(step: int, kernel: PrimFunc, seed: int, late: bool) -> tuple[Report, bool]:
    """The report, and whether the numbers are right."""
    arrays = PROBLEMS[step].arrays()
    report = execute(kernel, arrays, seed=seed, late=late)
    return report, np.array_equal(arrays[2], product(arrays))


@pytest.mark.parametrize("what", PLANTED)
def test_a_planted_fault_is_caught(what: str) -> None:
    planted = PLANTED[what]
    kernel = planted.kernel
    for seed, late in ORDERS:
        report, right = run(planted.step, kernel, seed, late)
        kinds = {fault.kind for fault in report.faults}
        if planted.kinds:
            assert kinds & planted.kinds, (seed, late, kinds)
        else:
            assert not report.faults
            assert not right, (seed, late)


@pytest.mark.thorough
def test_a_fault_between_tiles_shows_only_where_an_sm_computes_two() -> None:
    """So a persistent kernel is executed with fewer SMs than it has tiles."""
    for sms, found in ((2, False), (1, True)):
        problem = replace(PROBLEMS[7], sms=sms)
        kernel = changed(problem.kernel, "mbarrier_wait", 2, nothing)
        assert bool(execute(kernel, problem.arrays()).faults) is found


def test_the_thread_that_is_elected_may_be_any() -> None:
    """The elected thread stores, and lane 0 waits: that is the same one only by chance."""
    kernel = changed(PROBLEMS[7].kernel, "IfThenElse", 7, by_lane_0)
    assert run(7, kernel, seed=0, late=True) == (execute_whole(7, seed=0), True)
    for seed in (1, 2):
        kinds = {fault.kind for fault in run(7, kernel, seed=seed, late=True)[0].faults}
        assert Kind.RACE in kinds


def execute_whole(step: int, seed: int) -> Report:
    """The report of a kernel without a fault."""
    return execute(PROBLEMS[step].kernel, PROBLEMS[step].arrays(), seed=seed)


@pytest.mark.parametrize(
    ("step", "number"),
    [
        (1, 0),  # the next barrier orders as much
        (6, 2),  # the commit of the next tile's MMAs tells that the store was waited for
        (7, 1),  # the warpgroup met after its last read, before its first warp frees
    ],
)
def test_a_barrier_that_orders_nothing_more_is_not_missed(step: int, number: int) -> None:
    kernel = changed(PROBLEMS[step].kernel, "cta_sync", number, nothing)
    for seed, late in ORDERS:
        report, right = run(step, kernel, seed, late)
        assert report.faults == ()
        assert right

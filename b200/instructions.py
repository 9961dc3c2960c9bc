"""PTX and CUDA instructions: barriers, fences, waits, and tensor memory's allocation."""

from __future__ import annotations

from collections.abc import Callable

from b200.barriers import MBarrier, ThreadBarrier
from b200.buffers import Compute
from b200.machine import RANK_BIT, Pause, Run, Step, Warp
from b200.memory import barrier_at, make_barrier
from b200.mma import commit
from b200.order import Event, Unit, join
from b200.place import Place, Statement
from b200.report import Kind, NotUnderstood
from b200.tensor_memory import allocate, deallocate, finish_loads

Modifiers = list[str]
Translate = Callable[[list[Compute], Modifiers, Statement], Step]

REGISTERS = range(24, 257, 8)
"""What `setmaxnreg` may ask for."""


WORDS = {
    "init", "arrive", "expect_tx", "release", "cta", "cluster", "shared", "shared::cta",
    "shared::cluster", "b64", "b32", "u32", "mbarrier_init", "async", "bulk", "commit_group",
    "wait_group", "read", "alloc", "dealloc", "relinquish_alloc_permit", "cta_group::1",
    "cta_group::2", "sync", "aligned", "inc", "dec",
}  # fmt: skip
"""Modifiers that the instructions below may have."""


def instruction(effect: Callable[[Warp, Place, list[int]], None]) -> Translate:
    """An instruction that waits for nobody; its operands are the same for all active threads."""

    def translate(operands: list[Compute], modifiers: Modifiers, at: Statement) -> Step:
        if not set(modifiers) <= WORDS:
            raise NotUnderstood(f"the modifiers {sorted(set(modifiers) - WORDS)} of {at}")

        def run(warp: Warp) -> Run:
            place = warp.place(at)
            effect(warp, place, [warp.uniform(one(warp), place, "an operand") for one in operands])
            yield from ()

        return run

    return translate


def barrier_init(warp: Warp, place: Place, operands: list[int]) -> None:
    """`mbarrier.init`, by each active thread."""
    for _ in warp.lanes:
        make_barrier(warp, operands[0], operands[1], place)


def announce_barriers(warp: Warp, place: Place, operands: list[int]) -> None:
    """`fence.mbarrier_init`: what this warp initialised is there for others that wait for it."""
    now = warp.tick()
    for cta in warp.cta.cluster.ctas:
        for barrier in cta.barriers.values():
            if barrier.made.component == warp.component:
                barrier.published.append((warp.component, now))


def arrive_by_threads(warp: Warp, place: Place, where: int, count: int, size: int | None) -> None:
    """Each active thread arrives `count` times; before that it announces `size` bytes."""
    cta, barrier = barrier_at(warp, where, place)
    now = warp.tick()
    if cta is not warp.cta:
        barrier.foreign[warp.component] = Event(warp.component, now, Unit.THREADS, place)
    for _ in warp.lanes:
        ended = barrier.ended
        if size is not None:
            barrier.expect(size)
        barrier.arrive(count, warp.order)
        warp.machine.counts["phases"] += barrier.ended - ended


def arrive(warp: Warp, place: Place, operands: list[int]) -> None:
    """`mbarrier.arrive`, with a count or with 1."""
    arrive_by_threads(warp, place, operands[0], operands[1] if len(operands) > 1 else 1, None)


def arrive_expect(warp: Warp, place: Place, operands: list[int]) -> None:
    """`mbarrier.arrive.expect_tx`."""
    arrive_by_threads(warp, place, operands[0], 1, operands[1])


def expect(warp: Warp, place: Place, operands: list[int]) -> None:
    """`mbarrier.expect_tx`."""
    for _ in warp.lanes:
        barrier_at(warp, operands[0], place)[1].expect(operands[1])


def proxy_fence(operands: list[Compute], modifiers: Modifiers, at: Statement) -> Step:
    """`fence.proxy.async`: orders threads' accesses to shared memory with asynchronous ones."""
    if modifiers not in (
        ["proxy", "async"], ["proxy", "async", "shared::cta"], ["proxy", "async", "shared::cluster"]
    ):  # fmt: skip
        raise NotUnderstood(f"the fence {at}")

    def run(warp: Warp) -> Run:
        join(warp.order.proxied, warp.order.seen)
        yield from ()

    return run


def tensor_fence(operands: list[Compute], modifiers: Modifiers, at: Statement) -> Step:
    """`tcgen05.fence`: before others are told, or after one was told."""
    if modifiers not in (["fence::before_thread_sync"], ["fence::after_thread_sync"]):
        raise NotUnderstood(f"the fence {at}")
    before = modifiers == ["fence::before_thread_sync"]

    def run(warp: Warp) -> Run:
        if before:
            join(warp.order.fenced, warp.order.seen)
        else:
            join(warp.tensor, warp.order.fenced)
        yield from ()

    return run


def wait(operands: list[Compute], modifiers: Modifiers, at: Statement) -> Step:
    """`mbarrier.try_wait.parity` again and again until the phase of that parity has ended."""

    def run(warp: Warp) -> Run:
        place = warp.place(at)
        where, parity = (warp.uniform(one(warp), place, "an operand") for one in operands)
        cta, barrier = barrier_at(warp, where, place)
        if parity not in (0, 1) or cta is not warp.cta:
            raise warp.machine.stop(
                Kind.BARRIER, f"a wait for parity {parity} of a barrier of {cta}", place
            )
        warp.machine.counts["waits"] += 1
        yield from until(barrier, where, parity, place)
        warp.order.acquire(barrier.visible)

    return run


def until(barrier: MBarrier, where: int, parity: int, place: Place) -> Run:
    """Pause as long as the phase of that parity is the present one."""

    def what() -> str:
        byte = where & ((1 << RANK_BIT) - 1)
        return f"waits for parity {parity} of the mbarrier at byte {byte}: {barrier}"

    while not barrier.passed(parity):
        yield Pause(lambda: barrier.passed(parity), what, place)


def meet(warp: Warp, barrier: ThreadBarrier, expected: int, what: str, place: Place) -> Run:
    """Wait with a whole warp until `expected` warps are there."""
    warp.whole(place, what)
    warp.tick()
    meeting = barrier.arrive(warp, expected, warp.order)
    while not barrier.met(meeting):
        yield Pause(
            lambda: barrier.met(meeting),
            lambda: f"waits in {what} with {len(barrier.arrived)} of {expected} warps",
            place,
        )
    warp.order.acquire(barrier.visible)


def cta_sync(operands: list[Compute], modifiers: Modifiers, at: Statement) -> Step:
    """`bar.sync 0` by all threads of the CTA."""

    def run(warp: Warp) -> Run:
        barrier = warp.cta.named.setdefault(0, ThreadBarrier(0))
        yield from meet(warp, barrier, len(warp.cta.warps), "the CTA's barrier", warp.place(at))

    return run


def warpgroup_sync(operands: list[Compute], modifiers: Modifiers, at: Statement) -> Step:
    """`bar.sync` of a number with 128 threads, whose ever they are."""

    def run(warp: Warp) -> Run:
        place = warp.place(at)
        number = warp.uniform(operands[0](warp), place, "the number of a barrier")
        barrier = warp.cta.named.setdefault(number, ThreadBarrier(0))
        yield from meet(warp, barrier, 4, f"barrier {number}", place)

    return run


def cluster_sync(operands: list[Compute], modifiers: Modifiers, at: Statement) -> Step:
    """`barrier.cluster.arrive` and `barrier.cluster.wait` by all threads of the cluster."""

    def run(warp: Warp) -> Run:
        cluster = warp.cta.cluster
        expected = sum(len(cta.warps) for cta in cluster.ctas)
        yield from meet(warp, cluster.barrier, expected, "the cluster's barrier", warp.place(at))

    return run


def warp_sync(warp: Warp, place: Place, operands: list[int]) -> None:
    """A warp goes the same way anyhow."""


def set_registers(warp: Warp, place: Place, operands: list[int]) -> None:
    """`setmaxnreg`: how many registers a thread has does not change what it computes."""
    warp.whole(place, "setmaxnreg")
    if operands[0] not in REGISTERS:
        raise warp.machine.stop(
            Kind.OUT_OF_BOUNDS,
            f"setmaxnreg takes 24, 32 to 256 registers, not {operands[0]}",
            place,
        )


def commit_stores(warp: Warp, place: Place, operands: list[int]) -> None:
    """`cp.async.bulk.commit_group`, by each active thread."""
    for lane in warp.lanes:
        warp.bulk_groups(int(lane)).commit()


def wait_stores(warp: Warp, place: Place, operands: list[int]) -> None:
    """`cp.async.bulk.wait_group`, with or without `.read`: each active thread for its own."""
    for lane in warp.lanes:
        groups = warp.bulk_groups(int(lane))
        warp.order.seen[groups.component] = groups.wait(operands[0])


def wait_loads(operands: list[Compute], modifiers: Modifiers, at: Statement) -> Step:
    """`tcgen05.wait::ld`."""
    if modifiers != ["wait::ld", "sync", "aligned"]:
        raise NotUnderstood(f"the wait {at}")

    def run(warp: Warp) -> Run:
        warp.whole(warp.place(at), "tcgen05.wait::ld")
        finish_loads(warp)
        yield from ()

    return run


def relinquish(warp: Warp, place: Place, operands: list[int]) -> None:
    """`tcgen05.relinquish_alloc_permit`."""
    warp.whole(place, "tcgen05.relinquish_alloc_permit")
    warp.cta.relinquished = True


INSTRUCTIONS: dict[str, Translate] = {
    "ptx.mbarrier_init": instruction(barrier_init),
    "ptx.mbarrier_arrive": instruction(arrive),
    "ptx.mbarrier_arrive_nocount": instruction(arrive),
    "ptx.mbarrier_arrive_expect_tx": instruction(arrive_expect),
    "ptx.mbarrier_expect_tx": instruction(expect),
    "cuda.mbarrier_wait": wait,
    "cuda.mbarrier_wait_acquire_cluster": wait,
    "ptx.fence_mbarrier_init": instruction(announce_barriers),
    "ptx.fence_proxy": proxy_fence,
    "ptx.tcgen05_fence": tensor_fence,
    "cuda.cta_sync": cta_sync,
    "cuda.warpgroup_sync": warpgroup_sync,
    "cuda.cluster_sync": cluster_sync,
    "cuda.warp_sync": instruction(warp_sync),
    "ptx.setmaxnreg": instruction(set_registers),
    "ptx.cp_async_bulk_commit_group": instruction(commit_stores),
    "ptx.cp_async_bulk_wait_group": instruction(wait_stores),
    "ptx.tcgen05_wait": wait_loads,
    "ptx.tcgen05_commit": commit,
    "ptx.tcgen05_commit_multicast": commit,
    "ptx.tcgen05_alloc": instruction(allocate),
    "ptx.tcgen05_dealloc": instruction(deallocate),
    "ptx.tcgen05_relinquish_alloc_permit": instruction(relinquish),
}

"""What must be over when a CTA ends, since its memories are another one's then."""

from __future__ import annotations

from b200.machine import Cta
from b200.order import Clock, Event, Unit, join
from b200.report import Kind


def exit_cta(cta: Cta) -> None:
    """All its warps have ended: enter what they do not know to be over."""
    machine = cta.machine
    known: Clock = {}
    for warp in cta.warps:
        join(known, warp.order.seen)
    for first, (count, event) in cta.allocated.items():
        machine.fault(
            Kind.TENSOR_MEMORY,
            f"{count} columns of tensor memory from {first} on are not freed",
            machine.events[event].place,
        )
    for used in (*cta.shared_shadow.last(), *cta.tensor_shadow.last()):
        check_over(cta, used, known, "uses its memory")
    for offset, barrier in sorted(cta.barriers.items()):
        for arrival in barrier.foreign.values():
            check_over(cta, arrival, known, f"uses its mbarrier at byte {offset}")
        if barrier.transactions:
            machine.fault(
                Kind.BARRIER,
                f"{barrier.transactions} bytes are outstanding at the mbarrier at byte {offset} of "
                f"{cta} when it exits",
                barrier.made.place,
            )
    cta.exited = True


def check_over(cta: Cta, event: Event, known: Clock, what: str) -> None:
    """Something out of another CTA, or asynchronous, has ended before this CTA does."""
    own = event.unit is Unit.THREADS and event.component in {warp.component for warp in cta.warps}
    if not own and not event.within(known):
        cta.machine.fault(
            Kind.LIFETIME, f"nothing orders the end of {cta} after what {what}", event.place
        )

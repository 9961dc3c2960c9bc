"""TMA: `copy_async` between global and shared memory by one thread."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from b200.asynchronous import Queue, Store
from b200.buffers import SHARED, Compute, Elements, Region
from b200.machine import Run, Step, Warp
from b200.memory import (
    barrier_at,
    check_bounds,
    elements,
    enter_read,
    enter_write,
    located,
)
from b200.order import Unit
from b200.place import Place, Statement
from b200.report import Kind, NotUnderstood

if TYPE_CHECKING:
    from b200.expressions import Expressions

DISPATCH = "tma_auto"


def transfer(node: Any, expressions: Expressions, at: Statement) -> Step:
    """A load or a store by each active thread.

    Raises:
        NotUnderstood: other memories, types, shapes, or options.
    """
    target, source = (expressions.region(part, at) for part in node.args)
    if (
        node.scope.name != "thread"
        or target.buffer.dtype != source.buffer.dtype
        or target.squeezed != source.squeezed
    ):
        raise NotUnderstood(f"the copy {at}")
    scopes = target.buffer.scope, source.buffer.scope
    if scopes[0] in SHARED and scopes[1] == "global":
        return load_step(node, target, source, expressions, at)
    if scopes[0] == "global" and scopes[1] in SHARED and not len(node.config):
        return store_step(target, source, at)
    raise NotUnderstood(f"the copy {at}")


def load_step(
    node: Any, target: Region, source: Region, expressions: Expressions, at: Statement
) -> Step:
    """A load: its bytes are counted at an mbarrier, with `cta_group` 2 perhaps at the peer's."""
    if set(node.config) - {"mbar", "cta_group"} or "mbar" not in node.config:
        raise NotUnderstood(f"the options {sorted(node.config)} of {at}")
    barrier = expressions.compute(node.config["mbar"], at)
    pair = int(node.config.get("cta_group", 1)) == 2

    def run(warp: Warp) -> Run:
        for _ in warp.lanes:
            load(warp, (target, source), barrier, pair, warp.place(at))
        yield from ()

    return run


def shared_places(warp: Warp, region: Region, place: Place) -> Elements:
    """The bytes where a part's elements begin, in the warp's own shared memory."""
    buffer = region.buffer
    within = buffer.places[region.box(warp, place)].reshape(-1) * buffer.itemsize
    cta, offset = located(warp, warp.bases[buffer.key], place)
    if cta is not warp.cta:
        raise NotUnderstood(f"a copy with the shared memory of another CTA: {place}")
    check_bounds(warp.machine, cta, offset + within, buffer.itemsize, place)
    return np.asarray(offset + within)


def global_places(warp: Warp, region: Region, place: Place) -> Elements:
    """The part's elements in the argument."""
    return region.buffer.places[region.box(warp, place)].reshape(-1)


def load(
    warp: Warp, parts: tuple[Region, Region], barrier: Compute, pair: bool, place: Place
) -> None:
    """Enter the write to shared memory, and let it come to pass later."""
    machine, cta, (target, source) = warp.machine, warp.cta, parts
    where = warp.uniform(barrier(warp), place, "the address of an mbarrier")
    owner, counter = barrier_at(warp, where, place, by=Unit.TMA)
    if owner is not cta and not (pair and owner.rank ^ 1 == cta.rank):
        raise machine.stop(Kind.BARRIER, f"{owner} is not where this load may be counted", place)
    places = shared_places(warp, target, place)
    index = global_places(warp, source, place)
    number = machine.event(counter.component, None, Unit.TMA, place)
    event = machine.events[number]
    counter.foreign[counter.component] = event
    enter_write(cta, places, number, warp.order)
    memory, to = elements(cta, target.buffer.dtype, places)
    argument = machine.arguments[source.buffer.key]
    size = len(to) * target.buffer.itemsize
    machine.counts["loaded"] += size
    order = warp.order.copy()

    def arrive() -> None:
        memory[to] = argument[index]
        ended = counter.ended
        event.time = ended + 1
        counter.gathered.acquire(order)
        counter.complete(size)
        machine.counts["phases"] += counter.ended - ended

    machine.asynchronous.submit(Queue(), arrive)


def store_step(target: Region, source: Region, at: Statement) -> Step:
    """A store, which belongs to the thread's next group."""

    def run(warp: Warp) -> Run:
        for lane in warp.lanes:
            store(warp, int(lane), (target, source), warp.place(at))
        yield from ()

    return run


def store(warp: Warp, lane: int, parts: tuple[Region, Region], place: Place) -> None:
    """Enter the read of shared memory; it comes to pass at the latest when it is waited for."""
    machine, cta, (target, source) = warp.machine, warp.cta, parts
    groups = warp.bulk_groups(lane)
    places = shared_places(warp, source, place)
    index = global_places(warp, target, place)
    number = machine.event(groups.component, None, Unit.TMA, place)
    event = machine.events[number]
    enter_read(cta, places, number, warp.order)
    memory, of = elements(cta, source.buffer.dtype, places)
    argument = machine.arguments[target.buffer.key]
    machine.counts["stored"] += len(of) * source.buffer.itemsize

    def run() -> None:
        argument[index] = memory[of]

    def set_time(time: int) -> None:
        event.time = time

    if machine.asynchronous.late:
        groups.open.append(Store(run, set_time))
    else:
        run()
        groups.open.append(Store(lambda: None, set_time))

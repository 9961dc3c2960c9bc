"""Tensor memory: its allocation, and `tcgen05.ld` by the warps of a warpgroup."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from b200.buffers import Buffer, Elements, Region
from b200.machine import (
    LANES,
    TENSOR_COLUMNS,
    TENSOR_LANES,
    WARPS,
    WORD,
    Cta,
    Run,
    Step,
    Warp,
)
from b200.memory import enter_write, located, race
from b200.order import Event, Unit, tensor_follows
from b200.place import Place, Statement
from b200.registers import check_loaded
from b200.report import Kind, NotUnderstood

LANE_SHIFT = 16  # in an address: lanes above, columns below
SIZES = (32, 64, 128, 256, 512)  # columns that can be allocated


def columns(first: int, count: int) -> Elements:
    """All cells of columns, of the 128 lanes."""
    lanes = np.arange(TENSOR_LANES)[:, None] * TENSOR_COLUMNS
    return (lanes + np.arange(first, first + count)).reshape(-1)


def allocate(warp: Warp, place: Place, operands: list[int]) -> None:
    """`tcgen05.alloc`: the address of the columns goes to shared memory.

    Raises:
        HaltError: a number of columns that cannot be had.
    """
    where, count = operands
    cta = warp.cta
    warp.whole(place, "tcgen05.alloc")
    free = np.ones(TENSOR_COLUMNS, np.bool_)
    for first, (size, _) in cta.allocated.items():
        free[first : first + size] = False
    steps = range(0, TENSOR_COLUMNS, max(count, 1))
    starts = [first for first in steps if free[first : first + count].all()]
    if count not in SIZES or cta.relinquished or not starts:
        why = (
            "after the permit was given back" if cta.relinquished else f"of {int(free.sum())} free"
        )
        raise warp.machine.stop(
            Kind.TENSOR_MEMORY, f"{count} columns of tensor memory cannot be allocated {why}", place
        )
    event = warp.access(place)
    cta.allocated[starts[0]] = count, event
    target, offset = located(warp, where, place)
    enter_write(target, np.array([offset]), event, warp.order)
    target.shared[offset : offset + WORD].view(np.uint32)[0] = starts[0]


def deallocate(warp: Warp, place: Place, operands: list[int]) -> None:
    """`tcgen05.dealloc`, after all that used the columns.

    Raises:
        HaltError: no such columns are allocated.
    """
    first, count = operands
    cta = warp.cta
    warp.whole(place, "tcgen05.dealloc")
    if cta.allocated.get(first, (0, 0))[0] != count:
        raise warp.machine.stop(
            Kind.TENSOR_MEMORY, f"{count} columns from {first} on are not what was allocated", place
        )
    for event in cta.tensor_shadow.last(columns(first, count)):
        if event.component != warp.component and not event.within(warp.order.seen):
            warp.machine.fault(
                Kind.TENSOR_MEMORY, f"nothing orders this after {event.place}, which uses it", place
            )
    del cta.allocated[first]
    cta.tensor_shadow.forget(columns(first, count))


def check_allocated(warp: Warp, cta: Cta, cells: Elements, place: Place) -> None:
    """The cells belong to allocated columns, and the warp knows of the allocation.

    Raises:
        HaltError: they do not.
    """
    used = np.zeros(TENSOR_COLUMNS, np.bool_)
    used[cells % TENSOR_COLUMNS] = True
    missing = set(np.flatnonzero(used).tolist())
    for first, (count, event) in cta.allocated.items():
        if missing & set(range(first, first + count)):
            made = warp.machine.events[event]
            if made.component != warp.component and not made.within(warp.order.seen):
                race(warp.machine, "use of tensor memory", made, place)
        missing -= set(range(first, first + count))
    if missing:
        raise warp.machine.stop(
            Kind.TENSOR_MEMORY, f"column {min(missing)} of {cta} is not allocated", place
        )


def cells_of(warp: Warp, region: Region, place: Place) -> Elements:
    """The cells of a part of a buffer in tensor memory, in the part's shape.

    Raises:
        HaltError: it leaves tensor memory.
    """
    buffer = region.buffer
    box = region.box(warp, place)
    base = warp.bases[buffer.key]
    lanes = buffer.positions["TLane"][box] + (base >> LANE_SHIFT)
    found = buffer.positions["TCol"][box] + (base & ((1 << LANE_SHIFT) - 1))
    if lanes.max() >= TENSOR_LANES or found.max() >= TENSOR_COLUMNS:
        raise warp.machine.stop(
            Kind.OUT_OF_BOUNDS,
            f"lane {lanes.max()} or column {found.max()} of tensor memory",
            place,
        )
    return np.asarray(lanes * TENSOR_COLUMNS + found)


def check_tensor_buffer(buffer: Buffer) -> None:
    """Refuse what is not 32-bit elements on lanes and columns."""
    if set(buffer.positions) != {"TLane", "TCol"} or buffer.dtype != "float32":
        raise NotUnderstood(f"tensor memory of {buffer.dtype} with the layout {buffer.layout}")


def follower(warp: Warp, event: int) -> Callable[[Event], bool]:
    """Whether an access to tensor memory by this warp comes after another one."""
    now = warp.machine.events[event]
    return lambda earlier: tensor_follows(warp.tensor, now, earlier)


def enter_tensor(warp: Warp, cta: Cta, cells: Elements, event: int, *, write: bool) -> None:
    """Check a read or a write of these cells, which the warp issues."""
    place = warp.machine.events[event].place
    shadow, follows = cta.tensor_shadow, follower(warp, event)
    what = "write of tensor memory" if write else "read of tensor memory"
    for earlier in (shadow.write if write else shadow.read)(cells, event, follows):
        if earlier is None:
            warp.machine.fault(
                Kind.UNINITIALISED, "reads tensor memory that no MMA has written", place
            )
        else:
            race(warp.machine, what, earlier, place)


def load(target: Region, source: Region, at: Statement) -> Step:
    """`tcgen05.ld`: each warp of a warpgroup reads its 32 lanes; row t goes to thread t.

    Raises:
        NotUnderstood: the registers are spread in another way.
    """
    check_tensor_buffer(source.buffer)
    if target.squeezed != source.squeezed or set(target.buffer.positions) != {"tid_in_wg", "m"}:
        raise NotUnderstood(f"a read of tensor memory to {target.buffer}, in {at}")
    if target.buffer.dtype != "float32":
        raise NotUnderstood(f"a read of tensor memory as {target.buffer.dtype}, in {at}")

    def run(warp: Warp) -> Run:
        place = warp.place(at)
        warp.whole(place, "tcgen05.ld")
        cells = cells_of(warp, source, place)
        box = target.box(warp, place)
        threads = target.buffer.positions["tid_in_wg"][box]
        elements = target.buffer.positions["m"][box]
        own = threads // LANES == warp.rank % WARPS
        lanes, index, cells = threads[own] % LANES, elements[own], cells[own.reshape(cells.shape)]
        if (cells // TENSOR_COLUMNS // LANES != warp.rank % WARPS).any():
            raise warp.machine.stop(
                Kind.TENSOR_MEMORY, "a warp reads lanes that are another warp's", place
            )
        check_allocated(warp, warp.cta, cells, place)
        warp.loaded += 1
        event = warp.machine.event(warp.loads, warp.loaded, Unit.TENSOR_LOAD, place)
        enter_tensor(warp, warp.cta, cells, event, write=False)
        warp.machine.counts["read"] += cells.size * 4
        begin_load(warp, target.buffer, (lanes, index), cells, place)
        yield from ()

    return run


def begin_load(
    warp: Warp, buffer: Buffer, to: tuple[Elements, Elements], cells: Elements, place: Place
) -> None:
    """The registers hold nothing until `finish_loads`; what they then hold is read now or then."""
    registers = warp.registers[buffer.key]
    check_loaded(warp, buffer, registers.loading[to], place)
    registers.loading[to] = True
    registers.values[to] = np.nan
    early: NDArray[np.float32] | None = None
    if not warp.machine.asynchronous.late:
        early = warp.cta.tensor[cells]

    def arrive() -> None:
        registers.values[to] = warp.cta.tensor[cells] if early is None else early
        registers.loading[to] = False

    warp.arriving.append(arrive)


def finish_loads(warp: Warp) -> None:
    """`tcgen05.wait::ld`: what was read is there, and nothing reads tensor memory any more."""
    for arrive in warp.arriving:
        arrive()
    warp.arriving = []
    warp.order.seen[warp.loads] = warp.loaded
    warp.tensor[warp.loads] = warp.loaded

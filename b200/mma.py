"""`tcgen05.mma` and `tcgen05.commit`: products that go on beside the threads, in order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from b200.buffers import SHARED, Compute, Elements, Region
from b200.machine import TENSOR_LANES, Cta, Run, Step, Warp
from b200.memory import (
    address,
    barrier_at,
    check_bounds,
    elements,
    enter_read,
    located,
)
from b200.order import Event, Unit, join
from b200.place import Place, Statement
from b200.report import Kind, NotUnderstood
from b200.tensor_memory import (
    cells_of,
    check_allocated,
    check_tensor_buffer,
    enter_tensor,
)

if TYPE_CHECKING:
    from b200.expressions import Expressions

OPTIONS = {"cta_group"}


@dataclass(frozen=True)
class Product:
    """D = A x B^T, or D += A x B^T, where D has a row for each of the 128 lanes.

    With two CTAs, each has its rows of A and of D, and half of the rows of B.
    """

    d: Region
    a: Region
    b: Region
    accumulate: Compute
    ctas: int

    @property
    def shape(self) -> tuple[int, int, int]:
        """Rows of a CTA, columns, and the length of the sums."""
        return (*self.d.squeezed, self.a.squeezed[1])  # type: ignore[return-value]


def gemm(node: Any, expressions: Expressions, at: Statement) -> Step:
    """`gemm_async` by one thread.

    Raises:
        NotUnderstood: other types, shapes, options, or transposed operands.
    """
    product = product_of(node, expressions, at)

    def run(warp: Warp) -> Run:
        for lane in warp.lanes:
            issue(warp, int(lane), product, warp.place(at))
        yield from ()

    return run


def product_of(node: Any, expressions: Expressions, at: Statement) -> Product:
    """The operands, checked."""
    if node.dispatch != "tcgen05" or node.scope.name != "thread" or set(node.config) - OPTIONS:
        raise NotUnderstood(f"the product {at}")
    if len(node.args) != 6 or bool(node.args[3]) or bool(node.args[4]):
        raise NotUnderstood(f"scales or transposed operands in {at}")
    d, a, b = (expressions.region(part, at) for part in node.args[:3])
    ctas = int(node.config.get("cta_group", 1))
    check_tensor_buffer(d.buffer)
    for operand in (a, b):
        if operand.buffer.scope not in SHARED or operand.buffer.dtype != "float16":
            raise NotUnderstood(f"the operand {operand.buffer} of {at}")
    sizes = d.squeezed, a.squeezed, b.squeezed
    if ctas not in (1, 2) or any(len(size) != 2 for size in sizes):
        raise NotUnderstood(f"the shapes {sizes} of {at}")
    (rows, columns), (a_rows, depth), (b_rows, b_depth) = sizes
    if rows != TENSOR_LANES or (rows, columns, depth) != (a_rows, ctas * b_rows, b_depth):
        raise NotUnderstood(f"the shapes {sizes} of {at}")
    return Product(d, a, b, expressions.compute(node.args[5], at), ctas)


def issue(warp: Warp, lane: int, product: Product, place: Place) -> None:
    """Enter what a product accesses, and let it be computed later."""
    queue, component = warp.mma_queue(lane)
    warp.issued[lane] += 1
    event = warp.machine.event(component, warp.issued[lane], Unit.MMA, place)
    accumulate = bool(warp.uniform(product.accumulate(warp), place, "whether to accumulate"))
    cells = cells_of(warp, product.d, place)
    ctas = group(warp, product.ctas, place)
    parts = []
    for cta in ctas:
        check_allocated(warp, cta, cells.reshape(-1), place)
        if accumulate:
            enter_tensor(warp, cta, cells.reshape(-1), event, write=False)
        enter_tensor(warp, cta, cells.reshape(-1), event, write=True)
        parts.append(
            tuple(operand(warp, cta, part, event, place) for part in (product.a, product.b))
        )
    warp.machine.counts["mmas"] += 1
    warp.machine.counts["multiply_adds"] += len(ctas) * int(np.prod(product.shape))

    def compute() -> None:
        b = np.concatenate([take_b() for _, take_b in parts])
        for cta, (take_a, _) in zip(ctas, parts, strict=True):
            sums = np.einsum("ik,jk->ij", take_a(), b)  # without threads, which start slowly
            cta.tensor[cells] = cta.tensor[cells] + sums if accumulate else sums

    warp.machine.asynchronous.submit(queue, compute)


def group(warp: Warp, size: int, place: Place) -> list[Cta]:
    """The CTAs that a product is of: this one, or the pair that it belongs to.

    Raises:
        HaltError: it has no peer, or the peer has ended.
    """
    if size == 1:
        return [warp.cta]
    first = warp.cta.rank & ~1
    ctas = warp.cta.cluster.ctas[first : first + 2]
    if len(ctas) != 2 or any(cta.exited for cta in ctas):
        raise warp.machine.stop(Kind.LIFETIME, "a product of two CTAs lacks one of them", place)
    return ctas


def operand(
    warp: Warp, cta: Cta, region: Region, event: int, place: Place
) -> Callable[[], NDArray[np.float32]]:
    """Enter the read of an operand in a CTA's shared memory; a function that reads it."""
    buffer = region.buffer
    within = buffer.places[region.box(warp, place)].reshape(-1) * buffer.itemsize
    _, offset = located(warp, warp.bases[buffer.key], place)
    places: Elements = offset + within
    check_bounds(warp.machine, cta, places, buffer.itemsize, place)
    enter_read(cta, places, event, warp.order)
    memory, index = elements(cta, buffer.dtype, places)
    return lambda: memory[index].astype(np.float32).reshape(region.squeezed)


def commit(operands: list[Compute], modifiers: list[str], at: Statement) -> Step:
    """`tcgen05.commit`: an mbarrier of each named CTA is told when a thread's MMAs have ended."""
    words = {
        "commit", "cta_group::1", "cta_group::2", "mbarrier::arrive::one", "shared::cluster",
        "multicast::cluster", "b64",
    }  # fmt: skip
    if not set(modifiers) <= words:
        raise NotUnderstood(f"the modifiers of {at}")

    def run(warp: Warp) -> Run:
        place = warp.place(at)
        values = [warp.uniform(one(warp), place, "an operand") for one in operands]
        for lane in warp.lanes:
            issue_commit(warp, int(lane), values, place)
        yield from ()

    return run


def issue_commit(warp: Warp, lane: int, operands: list[int], place: Place) -> None:
    """Let the barrier at an address be told, or those at the same byte of the CTAs of a mask."""
    queue, component = warp.mma_queue(lane)
    warp.issued[lane] += 1
    time = warp.issued[lane]
    order = warp.order.copy()
    order.seen[component] = time
    join(order.fenced, order.seen)  # a commit has a fence::before_thread_sync within it
    targets = [operands[0]]
    if len(operands) == 2:
        offset = operands[0] & 0xFFFFFF
        targets = [address(rank, offset) for rank in range(16) if operands[1] >> rank & 1]
    for where in targets:
        _, barrier = barrier_at(warp, where, place, by=Unit.MMA)
        barrier.foreign[component] = Event(component, time, Unit.MMA, place)

    def tell() -> None:
        for where in targets:
            _, barrier = barrier_at(warp, where, place, by=Unit.MMA)
            ended = barrier.ended
            barrier.arrive(1, order)
            warp.machine.counts["phases"] += barrier.ended - ended

    warp.machine.asynchronous.submit(queue, tell)

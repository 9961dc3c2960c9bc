"""Loads straight into the LDS, past the registers, of a chip that has them for 16 bytes a lane.

Such a chip has them for 4 bytes, too: as many as a row's scales in a step.
"""

from __future__ import annotations

from dataclasses import dataclass

from tvm import tirx
from tvm.sym import detect_linear_equation
from tvm.tirx import Bind, Buffer, Evaluate, Expr

from mfmadsl.passes.main_loop.analysis.loop import Loop
from mfmadsl.passes.main_loop.lds.places import Swizzle, swizzled
from mfmadsl.passes.main_loop.moves.fetch import Fetch, fetch_of
from mfmadsl.passes.main_loop.moves.put import Put
from mfmadsl.passes.tir import device
from mfmadsl.passes.tir.expression import bits_of, constant

LOADS = {4: "buffer.to.lds.4", 16: "buffer.to.lds"}
"""The device functions that load straight into the LDS, by the bytes of a lane."""


@dataclass(frozen=True)
class DirectLoad:
    """A wave's lanes fill the LDS one after another, from byte `start` on; the swizzle is on the
    side of the memory, where each lane fetches what belongs into its place."""

    fetch: Fetch
    buffer: Buffer
    start: Expr
    binds: tuple[Bind, ...]

    def move(self, k: Expr, tiles: dict[int, Buffer]) -> Evaluate:
        """The load of iteration `k`, into another buffer of the same kind if `tiles` has one."""
        tile = tiles.get(self.buffer.__chandle__(), self.buffer)
        name = LOADS[len(self.fetch.run) * self.fetch.size]
        arguments = *self.fetch.arguments(k), tile.data, self.start
        return Evaluate(device.call("int32", name, *arguments))


def direct_load(
    put: Put, lane: tirx.Var, swizzle: Swizzle, loop: Loop, exact: bool, number: int
) -> DirectLoad | None:
    """The load that does what a put and its fetch do, or None if there is none.

    `lane` is that of a wave, which the loop's threads count; `exact` is that of the fetch, and
    `number` in the names of its values. It is of the put alone: where places in the LDS differ in
    which lanes want the same memory, each has its load.
    """
    if not put.memory or put.run[0].guards:
        return None
    place, chunk = put.run[0].place, len(put.run)
    parts = detect_linear_equation(place, [lane])
    if len(parts) != 2 or constant(parts[0]) != chunk:
        return None
    lanes = loop.threads[lane.name]
    moved = [t.mask << t.left for t in swizzle]
    feeding = [t.mask << t.right for t in swizzle]
    if any(m & f for m in moved for f in feeding) or any(m & ~((lanes - 1) * chunk) for m in moved):
        return None
    exchanged = {}
    if swizzle:
        other = lane ^ (swizzled(place, swizzle) >> (chunk.bit_length() - 1))
        # All bits are a lane's: LLVM leaves the mask out, but TVM knows no bounds of an XOR.
        exchanged[lane] = other & (lanes - 1)
    fetch = fetch_of(put.memory, loop, number, exact, exchanged)
    if len(fetch.run) * fetch.size not in LOADS:
        return None
    if not fetch.can_be_direct or not fetch.edges.starts_inside:
        return None
    start = tirx.Var(f"start_{number}", "int32")
    # LLVM does not know that a wave has one threadIdx.y, and would ask before each load.
    uniform = device.uniform(parts[1] * (bits_of(put.buffer.dtype) // 8))
    return DirectLoad(fetch, put.buffer, start, (*fetch.binds, Bind(start, uniform)))

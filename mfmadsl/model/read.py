"""A read of the LDS in which lanes exchange what they read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Read:
    """Each lane gives an address and gets elements from the addresses of others.

    The wave is cut into groups of `lanes` neighbours. A lane reads `registers` elements of `bits`
    bits from its address on, and gets as many, but not the same: `source` says for each lane of a
    group and each of its registers, in this order, the lane of the group from whose address
    the element comes, and which element after that address it is. It is one-to-one. `call` is
    the LLVM intrinsic that emits the instruction; the `chips` have it.
    """

    name: str
    doc: str
    bits: int
    lanes: int
    registers: int
    source: tuple[tuple[int, int], ...]
    call: str
    chips: tuple[str, ...]

    @property
    def lane_bytes(self) -> int:
        """Bytes that a lane reads, from its address on."""
        return self.bits * self.registers // 8

    def origin(self, lane: int, register: int) -> tuple[int, int]:
        """(lane, element) from which a lane of the wave gets a register, which counts elements."""
        first = lane // self.lanes * self.lanes
        source, element = self.source[(lane - first) * self.registers + register]
        return first + source, element

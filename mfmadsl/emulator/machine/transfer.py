"""What moves between memory and registers, and for which lanes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mfmadsl.emulator.machine.bits import Array, Mask, beside, sign_extended
from mfmadsl.emulator.machine.memory import AccessError, Addresses, ByteStore
from mfmadsl.emulator.machine.wave import LANES, Waves
from mfmadsl.emulator.machine.width import Width
from mfmadsl.emulator.text.operand import M0, Register

M0_REGISTER = Register("s", M0, 1)


def active(values: Array, waves: Waves, mask: Mask | None) -> Array:
    """The values of the lanes that take part, (count, 64) if all do, else flat."""
    full = np.broadcast_to(values, (waves.count, LANES))
    return full if mask is None else full[mask]


def reach_global(
    waves: Waves, addresses: Array, mask: Mask | None, size: int, alignment: int = 1
) -> tuple[Addresses, Mask | None]:
    """Offsets in global memory of what the lanes of `mask` access, and the lanes that can.

    Loads and stores may lie anywhere: the chips' memory is set to unaligned accesses, which LLVM
    relies on (`unaligned-access-mode`, part of amdhsa). Others say what they need.

    Raises EmulationError for a lane that cannot, unless whoever watches wants to go on.
    """
    return _reach(
        waves,
        mask,
        lambda m: waves.memory.offsets(active(addresses, waves, m), size, alignment),
    )


def reach_lds(
    waves: Waves, addresses: Array, mask: Mask | None, size: int, alignment: int = 1
) -> tuple[Addresses, Mask | None]:
    """Offsets in LDS of what the lanes of `mask` access, each in that of its workgroup, and the
    lanes that can.

    Loads and stores may lie anywhere there as well: all CDNA chips have unaligned DS accesses
    (LLVM: `FeatureUnalignedDSAccess` of GFX9), and `allowsMisalignedMemoryAccessesImpl` of
    SIISelLowering.cpp relies on them in that mode for 16 to 128 bits. LLVM joins two of them into
    an instruction of two addresses without asking for more.
    """
    groups = waves.workgroup[:, None]
    return _reach(
        waves,
        mask,
        lambda m: waves.lds.offsets(
            active(addresses, waves, m), active(groups, waves, m), size, alignment
        ),
    )


def reach_scratch(
    waves: Waves, addresses: Array, mask: Mask | None, size: int
) -> tuple[Addresses, Mask | None]:
    """Offsets in scratch memory of what the lanes of `mask` access, each in its own piece, and the
    lanes that can.

    They may lie anywhere: LLVM 22 has unaligned accesses to scratch memory on all GFX9 chips
    (`FeatureUnalignedScratchAccess`), and stores words at odd addresses there.
    """
    owners = waves.index[:, None] * LANES + np.arange(LANES)
    return _reach(
        waves,
        mask,
        lambda m: waves.scratch.offsets(
            active(addresses, waves, m), active(owners, waves, m), size, 1
        ),
    )


def _reach(
    waves: Waves, mask: Mask | None, offsets: Callable[[Mask | None], Addresses]
) -> tuple[Addresses, Mask | None]:
    while True:
        try:
            return offsets(mask), mask
        except AccessError as error:
            waves.fault(error.kind, str(error), *waves.first_lane(mask, error.bad))
            lanes = waves.lanes_of(mask).copy()
            lanes[lanes] = ~error.bad.reshape(-1)
            mask = lanes


def load(
    waves: Waves,
    store: ByteStore,
    offsets: Addresses,
    target: Register,
    width: Width,
    mask: Mask | None,
) -> None:
    """Load memory into registers, in the lanes of `mask`."""
    if waves.watch is not None:
        waves.watch.loads(waves, store, offsets, target, width, mask)
    put(waves, read(store, offsets, width), target, width, mask)


def read(store: ByteStore, offsets: Addresses, width: Width) -> Array:
    """What lanes load, extended to words: (words, *offsets.shape)."""
    if width.words:
        return store.load_words(offsets, width.words)
    value = store.load_narrow(offsets, width.size)
    if width.signed:
        value = sign_extended(value, 8 * width.size)
    return value[None]


def put(waves: Waves, words: Array, target: Register, width: Width, mask: Mask | None) -> None:
    """Put loaded words into registers, in the lanes of `mask`."""
    file = waves.vector if target.bank == "v" else waves.accumulation
    for i, word in enumerate(words):
        row = file[target.index + i]
        value = word
        if width.half:
            value = beside(row if mask is None else row[mask], word, width.half)
        if mask is None:
            row[...] = value
        else:
            row[mask] = value


def store(
    waves: Waves,
    memory: ByteStore,
    offsets: Addresses,
    source: Register,
    width: Width,
    mask: Mask | None,
) -> None:
    """Store registers to memory, in the lanes of `mask`."""
    if waves.watch is not None:
        waves.watch.stores(waves, memory, offsets, source, width, mask)
    file = waves.vector if source.bank == "v" else waves.accumulation
    words = file[source.index : source.index + width.registers]
    values = words if mask is None else words[:, mask]
    if width.words:
        memory.store_words(offsets, values)
        return
    value = values[0] >> np.uint32(16) if width.half == "hi" else values[0]
    memory.store_narrow(offsets, value, width.size)


def fetch_to_lds(
    waves: Waves,
    addresses: Array,
    inside: Mask | None,
    lanes: Mask | None,
    place: int,
    width: Width,
) -> None:
    """Move global memory straight into LDS: lane by lane from M0 and the offset (ISA, 9.1.9).

    Lanes that are not `inside` bring zeros.
    """
    size = 4 * width.registers
    offsets, inside = reach_global(waves, addresses, inside, width.size, min(width.size, 4))
    if waves.watch is not None:
        waves.watch.fetches(waves, offsets, width, inside)
    words = np.zeros((size // 4, waves.count, LANES), dtype=np.uint32)
    loaded = read(waves.memory, offsets, width)
    if inside is None:
        words[...] = loaded
    else:
        words[:, inside] = loaded
    _fill_lds(waves, words, lanes, place)


def scratch_to_lds(waves: Waves, offset: Array, place: int, width: Width) -> None:
    """Move each lane's own scratch memory straight into LDS, likewise."""
    offsets, mask = reach_scratch(waves, offset, waves.exec_mask(), width.size)
    words = np.zeros((width.registers, waves.count, LANES), dtype=np.uint32)
    words[:, waves.lanes_of(mask)] = read(waves.scratch, offsets, width).reshape(
        width.registers, -1
    )
    _fill_lds(waves, words, mask, place)


def _fill_lds(waves: Waves, words: Array, lanes: Mask | None, place: int) -> None:
    size = 4 * len(words)
    base = waves.read_scalar(M0_REGISTER, "u32")[..., None] + np.uint32(place)
    targets = base + np.arange(LANES, dtype=np.uint32) * np.uint32(size)
    offsets, mask = reach_lds(waves, targets, lanes, size, min(size, 4))
    if waves.watch is not None:
        waves.watch.fills(waves, offsets, size, mask)
    waves.lds.store_words(offsets, words if mask is None else words[:, mask])


def move_scratch(waves: Waves, offset: Array, data: Register, is_load: bool, width: Width) -> None:
    """Between registers and each lane's own piece of the scratch memory."""
    offsets, mask = reach_scratch(waves, offset, waves.exec_mask(), width.size)
    (load if is_load else store)(waves, waves.scratch, offsets, data, width, mask)

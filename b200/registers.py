"""Buffers that each thread has of its own."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from b200.buffers import Buffer, Elements, Region
from b200.machine import LANES, Registers, Value, Warp
from b200.place import Place
from b200.report import Kind

POISON = -0x55555556  # integers that nobody has set


def make_registers(warp: Warp, buffer: Buffer) -> None:
    """Registers that hold nothing of meaning."""
    size = int(np.prod(buffer.shape))
    poison = np.nan if np.dtype(buffer.dtype).kind == "f" else POISON
    values = np.full((LANES, size), poison, np.float64).astype(
        buffer.dtype if np.dtype(buffer.dtype).kind == "f" else np.int64
    )
    warp.registers[buffer.key] = Registers(values, np.zeros((LANES, size), np.bool_))


def check_loaded(warp: Warp, buffer: Buffer, marks: NDArray[np.bool_], place: Place) -> None:
    """What a `tcgen05.ld` brings is not there before `tcgen05.wait::ld`."""
    if marks.any():
        warp.machine.fault(
            Kind.REGISTER, f"{buffer} is used before tcgen05.wait::ld has waited for it", place
        )


def read_registers(warp: Warp, region: Region, place: Place) -> Value:
    """One register of each thread; one value if all active threads have the same."""
    own = warp.registers[region.buffer.key]
    lanes = warp.lanes
    index = region.of_lanes(warp, region.buffer.places, place)[:, 0]
    check_loaded(warp, region.buffer, own.loading[lanes, index], place)
    found = own.values[lanes, index]
    if (found == found[0]).all():
        value: Value = found[0].item()
        return value
    every = np.zeros(LANES, found.dtype)
    every[lanes] = found
    return every


def write_registers(warp: Warp, region: Region, value: Value, place: Place) -> None:
    """One register of each active thread."""
    own = warp.registers[region.buffer.key]
    lanes = warp.lanes
    index = region.of_lanes(warp, region.buffer.places, place)[:, 0]
    check_loaded(warp, region.buffer, own.loading[lanes, index], place)
    own.values[lanes, index] = value[lanes] if isinstance(value, np.ndarray) else value


def read_block(warp: Warp, buffer: Buffer, index: Elements, place: Place) -> NDArray[np.generic]:
    """Registers `index` (active lanes x elements) of each active thread."""
    own = warp.registers[buffer.key]
    lanes = warp.lanes[:, None]
    check_loaded(warp, buffer, own.loading[lanes, index], place)
    return own.values[lanes, index]


def write_block(
    warp: Warp, buffer: Buffer, index: Elements, values: NDArray[np.generic], place: Place
) -> None:
    """Set registers `index` (active lanes x elements) of each active thread."""
    own = warp.registers[buffer.key]
    lanes = warp.lanes[:, None]
    check_loaded(warp, buffer, own.loading[lanes, index], place)
    own.values[lanes, index] = values

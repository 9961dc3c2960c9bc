"""The swizzle of each tile: the one with the fewest cycles for the accesses of its loop."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from tvm import tirx
from tvm.tirx import Buffer, Expr

from mfmadsl.passes.main_loop.analysis.kernel import EnclosingKernel
from mfmadsl.passes.main_loop.analysis.parsed import MainLoop
from mfmadsl.passes.main_loop.lds.places import Swizzle
from mfmadsl.passes.main_loop.lds.swizzle import WaveAccess, choose, span
from mfmadsl.passes.main_loop.moves.element import Element
from mfmadsl.passes.tir.expression import (
    NotNumbersError,
    bits_of,
    constant,
    depends,
    elements_of,
    loads_of,
    multiple_of,
    numbers,
    terms_of,
    total,
    variables_of,
)


def swizzles_of(
    kernel: EnclosingKernel, main: MainLoop, runs: Sequence[Sequence[Element]]
) -> dict[int, Swizzle]:
    """The choice for each tile whose size and accesses are all known; `runs` are what a thread
    copies into neighbouring places."""
    tiles = {run[0].buffer.__chandle__(): run[0].buffer for run in runs}
    accesses: dict[int, list[WaveAccess | None]] = {handle: [] for handle in tiles}
    for run in runs:
        tile = run[0].buffer
        accesses[tile.__chandle__()].append(_access(kernel, tile, run[0].place, len(run), False))
    for step in main.steps:
        for read in step.reads:
            (load,) = loads_of(read.value)
            index = load.indices[0]
            base = index.base if isinstance(index, tirx.Ramp) else index
            count = len(elements_of(read.indices[0]))
            found = _access(kernel, load.source, base, count, True)
            accesses[load.source.__chandle__()].append(found)
    swizzles = {}
    for handle, tile in tiles.items():
        length, size = constant(tile.shape[0]), bits_of(tile.dtype) // 8
        known = [access for access in accesses[handle] if access is not None]
        if length and len(known) == len(accesses[handle]):
            swizzles[handle] = choose(known, size, length, kernel.chip)
    return swizzles


def _access(
    kernel: EnclosingKernel, tile: Buffer, place: Expr, count: int, is_read: bool
) -> WaveAccess | None:
    """An access of wave 0 in iteration 0; None if others may be aligned otherwise, or unknown."""
    lanes = kernel.threads.extents.get("threadIdx.x", 0)
    wave = kernel.chip.wave_size
    if not lanes or lanes % wave:
        return None
    lane = kernel.threads.variables["threadIdx.x"]
    values: dict[str, npt.ArrayLike] = {v.name: 0 for v in variables_of(place)}
    try:
        where = numbers(place, {**values, lane.name: np.arange(lanes)})
    except NotNumbersError:
        return None
    size = count * bits_of(tile.dtype) // 8
    places = np.broadcast_to(where, (lanes,))[:wave]
    access = WaveAccess(tuple(int(x) for x in places), size, is_read)
    uniform = total([t for t in terms_of(place) if not depends(t, lane)])
    aligned = multiple_of(uniform) % span(access, bits_of(tile.dtype) // 8) == 0
    return access if aligned or constant(uniform) is not None else None

"""The waves that native code changes: where their registers and their memory lie."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np
import numpy.typing as npt

from mfmadsl.emulator.machine.wave import Waves
from mfmadsl.emulator.native.fields import FIELDS, Field

_BLOCK = 16
"""Waves that a thread takes at once, at least: as many as the driver takes."""

_PLACE = {name: place for place, name in enumerate(FIELDS)}


class State:
    """The fields of some waves, as long as they keep their arrays."""

    def __init__(self, waves: Waves) -> None:
        self._arrays = (waves.vector, waves.accumulation, waves.scalar, waves.workgroup)
        self._scc = np.zeros(waves.count, np.bool_)
        self.count = waves.count
        self.fields = np.zeros(len(FIELDS), np.int64)
        memory, lds = waves.memory, waves.lds
        table = memory.table
        self._kept = table
        values: dict[Field, int] = {
            "vector": waves.vector.ctypes.data,
            "accumulation": waves.accumulation.ctypes.data,
            "scalar": waves.scalar.ctypes.data,
            "scc": self._scc.ctypes.data,
            "count": waves.count,
            "first": 0,
            "last": waves.count,
            "workgroup": waves.workgroup.ctypes.data,
            "lds": lds.address,
            "lds_size": lds.size,
            "lds_stride": lds.stride,
            "memory": memory.address,
            "first_address": memory.first_address,
            "segments": len(memory.segments),
            "starts": table.starts.ctypes.data,
            "ends": table.ends.ctypes.data,
            "protected": table.protected.ctypes.data,
            "may_store": 1,
        }
        for name, value in values.items():
            self.fields[_PLACE[name]] = value
        self.address = self.fields.ctypes.data
        self.version = -1  # of what those look at who look at accesses
        self.is_usable = all(array.flags.c_contiguous for array in self._arrays)

    def is_of(self, waves: Waves) -> bool:
        """Whether the waves still have the arrays that they had."""
        vector, accumulation, scalar, workgroup = self._arrays
        return (
            waves.vector is vector
            and waves.accumulation is accumulation
            and waves.scalar is scalar
            and waves.workgroup is workgroup
        )

    @cached_property
    def blocks(self) -> npt.NDArray[np.int64]:
        """Where blocks of waves begin, and behind them how many waves there are. A workgroup is in
        one of them; there are none where the waves of one do not follow one another."""
        apart = np.diff(self._arrays[-1])
        if (apart < 0).any():
            return np.zeros(0, np.int64)
        begins = np.concatenate([np.flatnonzero(apart) + 1, [self.count]])
        chosen = begins.searchsorted(np.arange(_BLOCK, self.count + _BLOCK, _BLOCK))
        ends = np.unique(begins[np.minimum(chosen, len(begins) - 1)])
        return np.concatenate([[0], ends]).astype(np.int64)

    def look(self, places: Mapping[Field, int], version: int) -> None:
        """What those look at who look at accesses."""
        self.version = version
        for name, value in places.items():
            self.fields[_PLACE[name]] = value

    def number_from(self, issued: Mapping[str, int]) -> None:
        """A stretch begins behind so many instructions of its line, by counters."""
        self.fields[_PLACE["lds_ahead"]] = -issued.get("lgkmcnt", 0)
        self.fields[_PLACE["memory_ahead"]] = -issued.get("vmcnt", 0)

    def begin(self, waves: Waves) -> None:
        """Before native code runs."""
        self._scc[...] = waves.scc
        changes = waves.memory.changes
        self.fields[_PLACE["may_store"]] = changes is None or changes.seen

    def end(self, waves: Waves, changes_scc: bool, changes_exec: bool) -> None:
        """After it has run."""
        if changes_scc:
            waves.scc = self._scc.copy()
        if changes_exec:
            waves.forget_exec()

"""The same schedules for NVIDIA: source by TVM's target `cuda`."""

from __future__ import annotations

import re
from dataclasses import dataclass

import tvm
import tvm_ffi
from tvm.s_tir import Schedule
from tvm.target import Target
from tvm.tirx import For


class CudaError(Exception):
    """What the driver refuses, as a sentence."""


@dataclass(frozen=True)
class Source:
    """CUDA C of a kernel, its name and parameters in order, and its launch: extents of x, y, z."""

    text: str
    symbol: str
    parameters: tuple[str, ...]
    grid: tuple[int, int, int]
    block: tuple[int, int, int]


def source(sch: Schedule, arch: str) -> Source:
    """CUDA C of a schedule for an architecture such as sm_90; no GPU and no nvcc are needed."""
    target = Target({"kind": "cuda", "arch": arch}, host="llvm")
    text = str(tvm.compile(sch.mod, target=target).mod.imports[0].inspect_source())
    *_, found = re.finditer(r"^extern .*?(\w+_kernel)\((.*?)\) \{", text, re.MULTILINE)
    parameters = tuple(each.split()[-1] for each in found[2].split(","))
    extents = _extents(sch)
    grid, block = (
        (extents.get(f"{of}.x", 1), extents.get(f"{of}.y", 1), extents.get(f"{of}.z", 1))
        for of in ("blockIdx", "threadIdx")
    )
    return Source(text, found[1], parameters, grid, block)


def _extents(sch: Schedule) -> dict[str, int]:
    """The extent of each axis that loops are bound to."""
    found: dict[str, int] = {}

    def loop(each: For) -> None:
        if each.thread_binding is not None:
            found[str(each.thread_binding.thread_tag)] = int(each.extent)

    tvm_ffi.structural_walk(sch.mod["main"].body, (For, loop))
    return found

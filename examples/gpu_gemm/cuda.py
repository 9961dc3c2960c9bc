"""The same schedules for NVIDIA: source by TVM's target `cuda`, and machine code by nvcc."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import tvm
import tvm_ffi
from tvm.s_tir import Schedule
from tvm.target import Target
from tvm.tirx import For

INSTALL = "pip install 'nvidia-cuda-nvcc>=13,<14' 'nvidia-cuda-runtime>=13,<14'"
_SECONDS = 300


class CudaError(Exception):
    """What nvcc or the driver refuses, as a sentence."""


@dataclass(frozen=True)
class Source:
    """CUDA C of a kernel, its name and parameters in order, and its launch: extents of x, y, z."""

    text: str
    symbol: str
    parameters: tuple[str, ...]
    grid: tuple[int, int, int]
    block: tuple[int, int, int]


@dataclass(frozen=True)
class Cubin:
    """Machine code, and what it takes: registers of a thread, and bytes.

    `spilled` is what a thread stores for want of registers, `shared` is of a workgroup.
    """

    code: bytes
    registers: int
    spilled: int
    shared: int


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


def compiler() -> Path | None:
    """nvcc, from PATH or of the Python package `nvidia-cuda-nvcc`; None if there is none."""
    if found := shutil.which("nvcc"):
        return Path(found)
    spec = find_spec("nvidia")
    folders = spec.submodule_search_locations if spec else None
    found_here = [path for folder in folders or () for path in Path(folder).glob("*/bin/nvcc")]
    return min(found_here, default=None)


def compiled(made: Source, arch: str, nvcc: Path) -> Cubin:
    """Machine code of a source. Raises CudaError with nvcc's words if it refuses."""
    with tempfile.TemporaryDirectory() as folder:
        text, cubin = Path(folder, "kernel.cu"), Path(folder, "kernel.cubin")
        text.write_text(made.text)
        command = [str(nvcc), f"-arch={arch}", "-cubin", "-Xptxas", "-v", "-o", str(cubin)]
        try:
            done = subprocess.run(
                [*command, str(text)], capture_output=True, text=True, timeout=_SECONDS, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise CudaError(f"nvcc did not run: {error}") from None
        if done.returncode:
            words = (done.stderr or done.stdout).strip().splitlines() or ["it says nothing"]
            raise CudaError(f"nvcc refuses the kernel for {arch}: {words[-1]}")
        return Cubin(cubin.read_bytes(), *resources(done.stderr + done.stdout))


def resources(words: str) -> tuple[int, int, int]:
    """Registers, bytes spilled and bytes of shared memory, of what `ptxas -v` says.

    Raises CudaError if it says no registers.
    """

    def number(pattern: str) -> int | None:
        found = re.search(pattern, words)
        return int(found[1]) if found else None

    registers = number(r"Used (\d+) registers")
    if registers is None:
        raise CudaError("ptxas does not say how many registers the kernel takes")
    return (
        registers, number(r"(\d+) bytes spill stores") or 0, number(r"(\d+) bytes smem") or 0
    )  # fmt: skip


def _extents(sch: Schedule) -> dict[str, int]:
    """The extent of each axis that loops are bound to."""
    found: dict[str, int] = {}

    def loop(each: For) -> None:
        if each.thread_binding is not None:
            found[str(each.thread_binding.thread_tag)] = int(each.extent)

    tvm_ffi.structural_walk(sch.mod["main"].body, (For, loop))
    return found

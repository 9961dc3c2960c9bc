"""From a TIRX kernel to CUDA for sm_100a, and on to a cubin where an nvcc is; no GPU is needed."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import tvm
import tvm_ffi
from tvm import IRModule
from tvm.target import Target
from tvm.tirx import AttrStmt, PrimFunc

ARCH = "sm_100a"
SHARED_BYTES = 232448  # that a CTA may have on sm_100: 227 KiB
TENSOR_MEMORY_COLUMNS = 512

TO_INSTALL = "pip install nvidia-cuda-nvcc nvidia-cuda-cccl"
OLDEST = (12, 8)  # the first nvcc that knows sm_100a


@dataclass(frozen=True)
class Lowered:
    """CUDA, and what a launch of it takes: `threads` a CTA, dynamic `shared_bytes` a CTA."""

    source: str
    threads: int
    shared_bytes: int

    def body(self) -> str:
        """The kernel's own function, without the header and the functions that it calls."""
        start = self.source.rindex('extern "C" __global__')
        return self.source[start:]


@dataclass(frozen=True)
class Nvcc:
    """An nvcc, and the folders of headers that it does not know by itself."""

    path: Path
    include: tuple[Path, ...]
    version: tuple[int, int]

    def __str__(self) -> str:
        return f"nvcc {self.version[0]}.{self.version[1]}"


@dataclass(frozen=True)
class Cubin:
    """Machine code; what a thread takes: registers, and bytes that did not fit into them."""

    code: bytes
    registers: int
    spill_stores: int
    spill_loads: int


class CompileError(Exception):
    """nvcc does not take the source; the message is a sentence and what nvcc says."""


def lower(kernel: PrimFunc) -> Lowered:
    """A kernel of this folder as CUDA for sm_100a."""
    target = Target({"kind": "cuda", "arch": ARCH})
    built = tvm.compile(IRModule({"main": kernel}), target=target, tir_pipeline="tirx")
    source = built.mod.imports[0].inspect_source()
    threads = re.findall(r"__launch_bounds__\((\d+)\) \w+\(", source)
    return Lowered(source, int(threads[-1]), shared_bytes(kernel))


def shared_bytes(kernel: PrimFunc) -> int:
    """Of dynamic shared memory that the kernel's pool takes for a CTA."""
    statements: list[AttrStmt] = []
    tvm_ffi.structural_walk(kernel.body, (AttrStmt, statements.append))
    said = (int(x.value) for x in statements if x.attr_key == "tirx.dyn_smem_bytes")
    return max(said, default=0)


def find_nvcc() -> Nvcc | None:
    """The nvcc that pip installed, or else the PATH's; none that is too old for sm_100a."""
    for path, include in (*_of_pip(), *_of_path()):
        version = _version(path)
        if version is not None and version >= OLDEST:
            return Nvcc(path, include, version)
    return None


def compile_cubin(source: str, nvcc: Nvcc) -> Cubin:
    """Compile CUDA for sm_100a.

    Raises:
        CompileError: nvcc does not take it.
    """
    with tempfile.TemporaryDirectory() as folder:
        text, cubin = Path(folder, "kernel.cu"), Path(folder, "kernel.cubin")
        text.write_text(source)
        command = [
            str(nvcc.path), "-cubin", f"-arch={ARCH}", "-std=c++17", "-w", "-Xptxas", "-v",
            *(f"-I{folder}" for folder in nvcc.include), "-o", str(cubin), str(text),
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        said = done.stdout + done.stderr
        if done.returncode or not cubin.exists():
            raise CompileError(f"{nvcc} does not compile the kernel:\n{said.strip()}")
        code = cubin.read_bytes()
    return Cubin(code, *read_usage(said))


def read_usage(said: str) -> tuple[int, int, int]:
    """Registers, bytes of spill stores and bytes of spill loads, of what `ptxas -v` says.

    Raises:
        CompileError: it does not say so of exactly one kernel.
    """
    spills = re.findall(r"(\d+) bytes spill stores, (\d+) bytes spill loads", said)
    registers = re.findall(r"Used (\d+) registers", said)
    if len(registers) != 1 or len(spills) != 1:
        raise CompileError(f"ptxas does not say what one kernel takes:\n{said.strip()}")
    return int(registers[0]), int(spills[0][0]), int(spills[0][1])


def _of_pip() -> list[tuple[Path, tuple[Path, ...]]]:
    """The nvcc of the package nvidia-cuda-nvcc, with the headers of nvidia-cuda-cccl."""
    try:
        files = metadata.files("nvidia-cuda-nvcc") or []
    except metadata.PackageNotFoundError:
        return []
    found = (Path(str(file.locate())) for file in files if file.parts[-2:] == ("bin", "nvcc"))
    return [(path, (path.parent.parent / "include" / "cccl",)) for path in found if path.exists()]


def _of_path() -> list[tuple[Path, tuple[Path, ...]]]:
    path = shutil.which("nvcc")
    return [] if path is None else [(Path(path), ())]


def _version(path: Path) -> tuple[int, int] | None:
    """None if it does not run."""
    try:
        done = subprocess.run([str(path), "--version"], capture_output=True, text=True, check=False)
    except OSError:
        return None
    found = re.search(r"release (\d+)\.(\d+)", done.stdout)
    return None if found is None else (int(found[1]), int(found[2]))

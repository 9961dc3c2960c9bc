"""nvcc, wherever it is, and what it says of a kernel; no GPU is needed."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

TO_INSTALL = "pip install '.[cuda]'"
OLDEST = (12, 8)  # the first that knows sm_100a
_SECONDS = 300


class NvccError(Exception):
    """nvcc does not take the source; the message is a sentence and what nvcc says."""


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
    """Machine code, and what it takes: registers of a thread, bytes of a thread that did not fit
    into them, and bytes of static shared memory of a workgroup."""

    code: bytes
    registers: int
    spill_stores: int
    spill_loads: int
    shared: int


def find_nvcc() -> Nvcc | None:
    """The nvcc that pip installed, or else the PATH's; none that is too old, and none without the
    system's C++ compiler, which nvcc calls."""
    if shutil.which("g++") is None:
        return None
    for path, include in (*_of_pip(), *_of_path()):
        version = _version(path)
        if version is not None and version >= OLDEST:
            return Nvcc(path, include, version)
    return None


def compile_cubin(source: str, arch: str, nvcc: Nvcc) -> Cubin:
    """Compile CUDA of one kernel for an architecture such as sm_90.

    Raises:
        NvccError: nvcc does not take it, or does not run.
    """
    with tempfile.TemporaryDirectory() as folder:
        text, cubin = Path(folder, "kernel.cu"), Path(folder, "kernel.cubin")
        text.write_text(source)
        command = [
            str(nvcc.path), "-cubin", f"-arch={arch}", "-std=c++17", "-w", "-Xptxas", "-v",
            *(f"-I{folder}" for folder in nvcc.include), "-o", str(cubin), str(text),
        ]  # fmt: skip
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise NvccError(f"{nvcc} did not run: {error}") from None
        said = done.stdout + done.stderr
        if done.returncode or not cubin.exists():
            raise NvccError(f"{nvcc} does not compile the kernel for {arch}:\n{said.strip()}")
        return Cubin(cubin.read_bytes(), *read_usage(said))


def read_usage(said: str) -> tuple[int, int, int, int]:
    """Registers, bytes of spill stores and loads, and of shared memory, of what `ptxas -v` says.

    Raises:
        NvccError: it does not say so of exactly one kernel.
    """
    spills = re.findall(r"(\d+) bytes spill stores, (\d+) bytes spill loads", said)
    registers = re.findall(r"Used (\d+) registers(?:.* (\d+) bytes smem)?", said)
    if len(registers) != 1 or len(spills) != 1:
        raise NvccError(f"ptxas does not say what one kernel takes:\n{said.strip()}")
    return int(registers[0][0]), int(spills[0][0]), int(spills[0][1]), int(registers[0][1] or 0)


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
        done = subprocess.run(
            [str(path), "--version"],
            capture_output=True, text=True, errors="replace", timeout=_SECONDS, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r"release (\d+)\.(\d+)", done.stdout)
    return None if found is None else (int(found[1]), int(found[2]))

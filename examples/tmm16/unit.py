"""The accelerator: what its description says, and the C function that stands for it here."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from mfmadsl.language import load_entries
from mfmadsl.model import Accelerator
from mfmadsl.schedule import load_intrinsic

HERE = Path(__file__).parent
SPEC = HERE / "tmm16.mfma"


class NoCompilerError(Exception):
    """What there is to install."""


def described(spec: Path) -> Accelerator:
    """The accelerator of a file.

    Raises:
        SpecFileError, LanguageError: the file is none, or has mistakes.
        ValueError: it describes no accelerator, or several, or not one of floats, as the C is.
    """
    accelerators = load_entries(spec).accelerators
    if len(accelerators) != 1:
        raise ValueError(f"{spec} describes {len(accelerators)} accelerators, not one")
    (found,) = accelerators
    indices = found.a.indices, found.b.indices
    if indices != (("i", "k"), ("j", "k")):
        raise ValueError(f"{spec}: tmm16.c multiplies A[i, k] and B[j, k]")
    for tile in (found.a, found.b, found.c):
        if tile.type.name != "float32":
            raise ValueError(f"{spec}: `{tile.name}` is {tile.type}, but tmm16.c is of float32")
    return found


def module(accelerator: Accelerator) -> ModuleType:
    """What mfmadsl makes of a description: extents, scopes, and the TensorIntrin."""
    return load_intrinsic(accelerator)


@cache
def micro_kernel(m: int, n: int, k: int, function: str) -> str:
    """The C function for a tile as LLVM IR, optimized for this CPU.

    Raises NoCompilerError where the pip package `ziglang`, which carries clang, is not there.
    """
    if find_spec("ziglang") is None:
        raise NoCompilerError("this compiles C with ziglang: pip install '.[linker]'")
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "tmm16.ll")
        options = ["-S", "-emit-llvm", "-O3", "-ffast-math"]
        tile = [f"-DM={m}", f"-DN={n}", f"-DK={k}", f"-Dtmm16={function}"]
        compiler = [sys.executable, "-m", "ziglang", "cc", "-fno-sanitize=all", "-g0"]
        source = str(HERE / "tmm16.c")
        command = [*compiler, *options, *tile, "-o", str(output), source]
        subprocess.run(command, check=True, capture_output=True)
        return output.read_text()

"""Linking an object file into a code object, where a linker is to be found."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from mfmadsl.error import MfmadslError

_NAMES = ("ld.lld", *(f"ld.lld-{version}" for version in range(22, 15, -1)))
_ROCM = Path("/opt/rocm/llvm/bin/ld.lld")


class LinkError(MfmadslError, RuntimeError):
    """The linker refused; the message is its own."""


@cache
def find_linker() -> tuple[str, ...] | None:
    """The command of an lld for ELF: from PATH, from ROCm, or from the pip package ziglang."""
    for name in (*_NAMES, str(_ROCM)):
        if path := shutil.which(name):
            return (path,)
    if importlib.util.find_spec("ziglang"):
        return sys.executable, "-m", "ziglang", "ld.lld"
    return None


def linked(code_object: bytes | None) -> bytes:
    """A code object. Raises LinkError if there is none, since nothing could link it."""
    if code_object is None:
        raise LinkError("no linker found for a code object: install lld, or `pip install ziglang`")
    return code_object


def link(object_file: bytes) -> bytes | None:
    """The code object (.hsaco) for an object file, or None where there is no linker."""
    linker = find_linker()
    if linker is None:
        return None
    with tempfile.TemporaryDirectory(prefix="mfmadsl-") as folder:
        source, target = Path(folder, "kernel.o"), Path(folder, "kernel.hsaco")
        source.write_bytes(object_file)
        command = [*linker, "-shared", str(source), "-o", str(target)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise LinkError(f"{linker[0]}: {done.stderr.strip()}")
        return target.read_bytes()

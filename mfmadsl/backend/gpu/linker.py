"""Linking an object file into a code object, where a linker is to be found."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from mfmadsl.environment.linker import find_linker
from mfmadsl.error import MfmadslError


class LinkError(MfmadslError, RuntimeError):
    """The linker refused; the message is its own."""


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

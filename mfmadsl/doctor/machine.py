"""Python, the package itself, the user's home, and the folder for what takes long to make."""

from __future__ import annotations

import platform
import sys
import tempfile
from pathlib import Path

from mfmadsl.cache_folder import cache_folder
from mfmadsl.doctor.finding import Finding
from mfmadsl.doctor.requirement import installed
from mfmadsl.resources import resource_folder
from mfmadsl.version import __version__

_OLDEST = (3, 10)
_RESOURCES = ("grammars/mfma.lark", "intrinsics/layouts.mfma", "docs/diagnostics.md")
"""One file of each folder that travels with the package."""


def python() -> Finding:
    """The interpreter."""
    found = f"{platform.python_version()}, {sys.executable}"
    if sys.version_info[:2] < _OLDEST or sys.platform != "linux":
        return Finding("Python", "wrong", True, found, "use Python 3.10 or newer, on Linux")
    return Finding("Python", "ok", True, found)


def package() -> Finding:
    """mfmadsl: its version, where it is, and whether its folders came with it."""
    where = Path(__file__).parent.parent
    lacking = [
        name
        for folder, _, file in (each.partition("/") for each in _RESOURCES)
        if not (resource_folder(folder) / file).is_file()
        for name in [f"{folder}/{file}"]
    ]
    if lacking:
        found = f"{__version__} in {where}, without {', '.join(lacking)}"
        return Finding("mfmadsl", "wrong", True, found, "pip install --force-reinstall mfmadsl")
    known = installed("mfmadsl")
    if known is not None and known != __version__:
        found = f"{__version__} in {where}, but pip has installed {known}"
        remedy = "see what PYTHONPATH and the current folder put before it"
        return Finding("mfmadsl", "wrong", False, found, remedy)
    return Finding("mfmadsl", "ok", True, f"{__version__}, {where}")


def home() -> Finding:
    """TVM asks for it when it is imported."""
    try:
        return Finding("home", "ok", True, str(Path.home()))
    except RuntimeError:
        found = "neither HOME nor the system's list of users names a folder"
        return Finding("home", "wrong", True, found, "set HOME to a folder: TVM asks for it")


def cache() -> Finding:
    """Without it all works, and takes longer: what is kept there is made anew by each process."""
    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        return Finding(
            "cache", "wrong", False, f"{folder}: {error.strerror or error}",
            "commands start slower, and the emulated GPU has no place for its library: set "
            "MFMADSL_CACHE to a folder that can be written",
        )  # fmt: skip
    return Finding("cache", "ok", False, str(folder))

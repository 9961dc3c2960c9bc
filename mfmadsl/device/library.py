"""The libraries that programs take for HIP's: compiled when first asked for, and kept."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

from mfmadsl.cache_folder import cache_folder, may_run
from mfmadsl.environment.compilers import Command, find_c_compiler
from mfmadsl.runtime.error import RuntimeBuildError

_NAME = "libamdhip64.so"
_SOURCES = {_NAME: ("hip/*",), "libhiprtc.so": ("hiprtc/*", "hip/channel")}
"""Each library, and its sources."""

_VERSIONS = (5, 6, 7)  # of ROCm, that programs were linked with
_FLAGS = (
    "-std=gnu11", "-D_GNU_SOURCE", "-Werror=implicit-function-declaration", "-O1", "-shared",
    "-fPIC", "-fvisibility=hidden", "-pthread", "-ldl",
)  # fmt: skip


def hip_library() -> Path:
    """The folder that holds libamdhip64.so and libhiprtc.so, to be searched before any other.

    It lies in the user's cache, under a name that changes with the sources. Raises
    RuntimeBuildError if it is not there and cannot be made.
    """
    content = hashlib.sha256(" ".join(_FLAGS).encode())
    for source in (each for library in _SOURCES for each in _sources(library, ".[ch]")):
        content.update(source.name.encode() + b"\0" + source.read_bytes())
    folder = cache_folder() / f"hip-{content.hexdigest()[:16]}"
    if not _is_made(folder):
        _make(folder)
    return folder


def _is_made(folder: Path) -> bool:
    return all(may_run(folder / name) for name in _SOURCES)


def _sources(library: str, suffix: str) -> list[Path]:
    folder = Path(__file__).parent
    return sorted(path for name in _SOURCES[library] for path in folder.glob(name + suffix))


def _make(folder: Path) -> None:
    """Compile beside the place where it belongs, then rename: nobody ever sees half of it."""
    compiler = _compiler()
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(prefix=".hip-", dir=folder.parent))
    except OSError as error:
        raise RuntimeBuildError(
            f"{folder.parent}: {error.strerror}: the compiled library has no place; set "
            "MFMADSL_CACHE to a folder that can be written"
        ) from None
    try:
        for name in _SOURCES:
            _compile(compiler, name, beside / name)
            for version in _VERSIONS:
                (beside / f"{name}.{version}").symlink_to(name)
        (beside / "lib").symlink_to(".")  # as ROCm's folder has it
        with suppress(OSError):  # another process was faster, with the same
            beside.rename(folder)
        if not _is_made(folder):
            raise RuntimeBuildError(
                f"{folder}: is there already, and not as it was made: remove it"
            )
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _compile(compiler: Command, name: str, target: Path) -> None:
    sources = map(str, _sources(name, ".c"))
    command = [*compiler, *_FLAGS, f"-Wl,-soname,{name}", *sources, "-o", str(target)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = done.stderr.strip() or f"it ended with {done.returncode}"
        raise RuntimeBuildError(f"{' '.join(compiler)}: {said}")
    target.chmod(0o755)


def _compiler() -> Command:
    """The C compiler. Raises RuntimeBuildError if there is none."""
    if found := find_c_compiler():
        return found
    raise RuntimeBuildError(
        "there is no C compiler to build the emulated GPU's library with: install gcc or clang, "
        "or the pip package ziglang (pip install 'mfmadsl[linker]')"
    )

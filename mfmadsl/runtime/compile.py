"""The C++ of the runtime, compiled when it is first needed and kept for later.

What is kept has a name that depends on the source, on TVM's version and on the compiler. Several
processes may compile at once: each does it in a folder of its own, and the last rename wins.
"""

from __future__ import annotations

import hashlib
import platform
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import tvm_ffi
from tvm_ffi import libinfo

from mfmadsl.cache_folder import cache_folder, keep, may_run
from mfmadsl.environment.compilers import Command, Compiler, find_compilers
from mfmadsl.runtime.error import RuntimeBuildError

_SOURCE = Path(__file__).parent / "rocm.cc"
_OPTIONS = ("-std=c++17", "-O1", "-fPIC")
_REMEDY = "install a C++ compiler (apt install g++, or pip install ziglang), or name one in CXX"
_KEPT = 4  # older ones than these are removed


def kept_library() -> Path | None:
    """What was compiled before, by the compiler that would be taken now, else by any other."""
    exact = [_place(compiler) for compiler in find_compilers()[:1]]
    others = sorted(cache_folder().glob(f"rocm-{_digest_of_source()}-*.so"))
    return next((path for path in (*exact, *others) if may_run(path)), None)


def compiled_library(folder: Path) -> Path:
    """The runtime, compiled in `folder`, and kept if that is possible. Raises RuntimeBuildError."""
    complaints = []
    for compiler in find_compilers():
        library = folder / "rocm.so"
        if (complaint := _compiled(compiler, library)) is None:
            keep(_place(compiler), library.read_bytes(), "rocm-*.so", _KEPT)
            return library
        complaints.append(f"{shlex.join(compiler.command)}: {complaint}: ")
    raise RuntimeBuildError(
        f"TVM's runtime for GPUs of AMD has to be compiled: {''.join(complaints)}{_REMEDY}"
    )


def _compiled(compiler: Compiler, library: Path) -> str | None:
    """None if it is done, or what the compiler says."""
    objects = str(library.with_suffix(".o"))
    options = *compiler.options, *_OPTIONS
    compiling = *compiler.command, *options, *_headers(), "-c", str(_SOURCE), "-o", objects
    linking = *compiler.linker, *options, "-shared", objects, *_libraries(), "-o", str(library)
    return _complaint(compiling) or _complaint(linking)


def _complaint(command: Command) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        return error.strerror or "cannot be started"
    if done.returncode == 0:
        return None
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    return next((line for line in lines if "error" in line), "".join(lines[-1:])) or "failed"


def _headers() -> list[str]:
    folders = _tvm() / "include", libinfo.find_include_path(), libinfo.find_dlpack_include_path()
    return [word for folder in folders for word in ("-isystem", str(folder))]


def _libraries() -> list[str]:
    """Those that are loaded already, so that every symbol is found.

    The C++ library of TVM stands among them for compilers that have another: what is thrown here
    is caught in TVM, so that the same one has to throw it.
    """
    mapped = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines()}
    return [
        str(_tvm() / "lib" / "libtvm_runtime.so"),
        libinfo.find_libtvm_ffi(),
        *sorted(path for path in mapped if re.search(r"/lib(stdc\+\+|gcc_s)\.so", path)),
    ]


def _tvm() -> Path:
    import tvm

    return Path(tvm.__file__).parent


def _place(compiler: Compiler) -> Path:
    name = f"rocm-{_digest_of_source()}-{_digest_of_compiler(compiler)}.so"
    return cache_folder() / name


def _digest_of_source() -> str:
    import tvm

    versions = f"{tvm.__version__} {tvm_ffi.__version__} {platform.machine()} {_OPTIONS}"
    digest = hashlib.sha256(versions.encode())
    for path in sorted([_SOURCE, *_SOURCE.parent.glob("*.h")]):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _digest_of_compiler(compiler: Compiler) -> str:
    """Another for another command, and for another version of it."""
    words = [*compiler.command, *compiler.options]
    if path := shutil.which(compiler.command[0]):
        real = Path(path).resolve()
        words += [str(real), str(real.stat().st_size), str(real.stat().st_mtime_ns)]
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:8]

"""What is there beside Python: a linker, compilers, llvm-mca, HIP, Triton."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Iterator, Sequence

from mfmadsl.doctor.child import ask, shortened
from mfmadsl.doctor.finding import Finding
from mfmadsl.doctor.requirement import installed
from mfmadsl.environment.compilers import find_c_compiler, find_compilers
from mfmadsl.environment.hip import hip_libraries
from mfmadsl.environment.linker import find_linker

_MCA = "llvm-mca-22"  # whose figures the benchmarks compare with
_SECONDS = 60

_HIP = """
import ctypes
for name in sys.argv[2:]:
    try:
        library = ctypes.CDLL(name)
    except OSError:
        continue
    tell(library=name)
    count = ctypes.c_int()
    error = library.hipGetDeviceCount(ctypes.byref(count))
    tell(error=error, count=count.value)
    break
"""


def programs() -> Iterator[Finding]:
    """One finding for each; the main job needs none of them."""
    yield _program(
        "linker",
        find_linker(),
        "for code objects (`--emit hsaco`) and GPUs: apt install lld, or "
        "pip install 'mfmadsl[linker]'",
    )
    yield _program(
        "C compiler",
        find_c_compiler(),
        "for the emulated GPU (`mfmadsl device`): apt install gcc, or pip install "
        "'mfmadsl[linker]'; CC names another",
    )
    cpp = find_compilers()
    yield _program(
        "C++ compiler",
        cpp[0].command if cpp else None,
        "for TVM's device `tvm.rocm(0)`: apt install g++, or pip install 'mfmadsl[linker]'; CXX "
        "names another",
    )
    mca = shutil.which(_MCA)
    yield _program(
        _MCA, (mca,) if mca else None, "for the benchmarks' second witness: apt install llvm-22"
    )
    yield _hip()
    triton = installed("triton")
    if triton is None:
        remedy = "for benchmarks beside Triton: pip install 'mfmadsl[bench]'"
        yield Finding("Triton", "missing", False, "is not installed", remedy)
    else:
        yield Finding("Triton", "ok", False, triton)


def _program(name: str, command: Sequence[str] | None, remedy: str) -> Finding:
    if command is None:
        return Finding(name, "missing", False, "not found", remedy)
    spoken = shlex.join(command)
    try:
        done = subprocess.run(
            [*command, "--version"], capture_output=True, check=False, timeout=_SECONDS,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return Finding(name, "wrong", False, f"{spoken}: gives no answer", remedy)
    except OSError as error:
        return Finding(name, "wrong", False, f"{spoken}: {error.strerror}", remedy)
    if done.returncode:
        said = shortened(done.stderr.decode(errors="replace")) or f"ends with {done.returncode}"
        return Finding(name, "wrong", False, f"{spoken}: {said}", remedy)
    version = done.stdout.decode(errors="replace").strip().partition("\n")[0]
    return Finding(name, "ok", False, f"{spoken}: {version}" if version else spoken)


def _hip() -> Finding:
    """Whether HIP is there and has a GPU, an emulated one included."""
    remedy = "for a real GPU: install ROCm; for an emulated one: mfmadsl device -- PROGRAM"
    answer = ask(_HIP, hip_libraries())
    told = {name: value for each in answer.told for name, value in each.items()}
    if "library" not in told and not answer.trouble:
        return Finding("HIP", "missing", False, "libamdhip64.so is not found", remedy)
    library = told.get("library", "libamdhip64.so")
    if answer.trouble:
        return Finding("HIP", "wrong", False, f"{library}: {answer.trouble}", remedy)
    if told["error"] or not told["count"]:
        return Finding("HIP", "wrong", False, f"{library}: finds no GPU", remedy)
    return Finding("HIP", "ok", False, f"{library}: {told['count']} GPU{'s' * (told['count'] > 1)}")

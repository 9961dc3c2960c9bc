"""The main job itself, done once on something small; and this CPU, as the job sees it."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mfmadsl.doctor.child import Answer, ask
from mfmadsl.doctor.finding import Finding

_CPUINFO = Path("/proc/cpuinfo")

_JOB = """
import mfmadsl
from mfmadsl.model import DEFAULT_ARCH
tell(entries=len(mfmadsl.library()))
gemm = mfmadsl.Gemm(None, DEFAULT_ARCH, 32, 32, 32)
kernel = gemm.build()
found = gemm.check(kernel)
tell(agrees=bool(found.agrees))
"""

_CPU = """
from mfmadsl.host.cpu import host_cpu
tell(cpu=host_cpu().name, features=host_cpu().features)
"""

_REPORT = "mend what is wrong above; if all of that is ok, reinstall mfmadsl"


def job() -> Iterator[Finding]:
    """The library is read, and a GEMM is scheduled, compiled, emulated and compared with NumPy."""
    answer = ask(_JOB)
    told = _values(answer)
    if "entries" in told:
        yield Finding("library", "ok", True, f"{told['entries']} instructions")
    else:
        yield Finding("library", "wrong", True, _why(answer), _REPORT)
    if told.get("agrees"):
        yield Finding("GEMM", "ok", True, "scheduled, compiled, emulated, and equal to NumPy's")
    else:
        why = "differs from NumPy's" if "agrees" in told else _why(answer)
        yield Finding("GEMM", "wrong", True, why, _REPORT)


def cpu() -> Finding:
    """This CPU. Only GEMMs on the CPU itself need one of x86-64; it is named as LLVM does, or as
    Linux does where TVM cannot be asked."""
    cores = f"{os.cpu_count() or 1} cores"
    if platform.machine() not in ("x86_64", "AMD64"):
        return Finding(
            "CPU", "wrong", False, f"{platform.machine()}, {cores}",
            "GEMMs on the CPU itself need one of x86-64; all else works",
        )  # fmt: skip
    told = _values(ask(_CPU))
    if "cpu" not in told:
        return Finding("CPU", "ok", False, f"{_linux_name()}, {cores}")
    features = ", ".join(told["features"]) or "no vectors that are known here"
    return Finding("CPU", "ok", False, f"{told['cpu']}, {cores}: {features}")


def _values(answer: Answer) -> dict[str, Any]:
    return {name: value for each in answer.told for name, value in each.items()}


def _why(answer: Answer) -> str:
    return answer.trouble or "ends without a word"


def _linux_name() -> str:
    try:
        lines = _CPUINFO.read_text(errors="replace").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else "x86-64"

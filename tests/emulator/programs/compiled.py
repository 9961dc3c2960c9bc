"""Programs in OpenCL C, compiled by clang 22, which `ziglang` brings."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

_OPENCL = ("-x", "cl", "-cl-std=CL2.0", "-cl-no-stdinc")

_PROLOGUE = """\
typedef unsigned char uchar; typedef unsigned short ushort; typedef unsigned int uint;
typedef unsigned long ulong; typedef ulong size_t;
typedef float float4 __attribute__((ext_vector_type(4)));
typedef int int4 __attribute__((ext_vector_type(4)));
#define NOINLINE __attribute__((noinline))
#define LANE __builtin_amdgcn_workitem_id_x()
#define GROUP __builtin_amdgcn_workgroup_id_x()
#define ID (GROUP * 64 + LANE)
#define BARRIER __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup"); \\
  __builtin_amdgcn_s_barrier(); __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup")
"""

_C_PROLOGUE = """\
#define kernel __attribute__((amdgpu_kernel))
#define global __attribute__((address_space(1)))
#define local __attribute__((address_space(3)))
#define constant __attribute__((address_space(4)))
"""
"""What OpenCL C has words for, and C has not; in C, functions may call themselves."""


@cache
def compiled(
    source: str, arch: str, level: int, language: str = "cl", link: str = "--no-undefined"
) -> bytes:
    """The code object of a program, optimized as far as `level` says."""
    with tempfile.TemporaryDirectory() as folder:
        text, target = Path(folder, "program"), Path(folder, "program.o")
        text.write_text((_C_PROLOGUE if language == "c" else "") + _PROLOGUE + source)
        _run(
            "clang", *(_OPENCL if language == "cl" else ("-x", language)), "-w", "-nogpulib",
            "-target", "amdgcn-amd-amdhsa", f"-mcpu={arch}", f"-O{level}",
            "-c", str(text), "-o", str(target),
        )  # fmt: skip
        _run("ld.lld", "-shared", link, str(target), "-o", f"{target}.so")
        return Path(f"{target}.so").read_bytes()


def _run(*command: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ziglang", *command], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(done.stderr)

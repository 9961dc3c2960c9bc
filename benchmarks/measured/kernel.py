"""The kernels that are written in Gluon, compiled here, and what the model says of them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import mfmadsl
from benchmarks.gemm.peer import ROOT, TRITON_FAILED
from benchmarks.measured.figures import Shape
from mfmadsl.emulator.profiler import Profile
from mfmadsl.model import PRODUCTS
from mfmadsl.model.numpy_type import numpy_type

TILE = 256
"""Rows and columns of C of a workgroup of all these kernels."""
OPERANDS = {"f16": "float16", "bf16": "bfloat16", "bf8": "float8_e5m2"}


def output_of(kind: str) -> str:
    """The type of C, for operands of this one."""
    return OPERANDS["f16" if kind == "bf8" else kind]


def compile_all(folder: Path, names: Sequence[str] = ()) -> None:
    """Compile those that are named KERNEL-CHIP-TYPE, or all and Triton's matmul, into a folder.

    In a process of its own, for Triton brings an LLVM that TVM's must not meet.
    """
    folder.mkdir(parents=True, exist_ok=True)
    program = [sys.executable, "-m", "benchmarks.measured.gluon", str(folder), *names]
    if subprocess.run(program, cwd=ROOT, check=False).returncode:
        raise SystemExit(TRITON_FAILED)


def profile(folder: Path, name: str, product: str, kind: str, shape: Shape) -> Profile:
    """A kernel that lies in the folder, of a product that its tiles divide."""
    m, n, k = shape
    values, options = launch(folder, f"{name}-{PRODUCTS[product].arch}-{kind}",
                             np.ones((m, k), numpy_type(OPERANDS[kind])),
                             np.ones((n, k), numpy_type(OPERANDS[kind])),
                             np.zeros((m, n), numpy_type(output_of(kind))))  # fmt: skip
    return mfmadsl.profile(*values, **options, product=product)


def launch(folder: Path, name: str, a: Any, b: Any, c: Any) -> tuple[list[Any], dict[str, Any]]:
    """Text, arguments, grid and block, and by name the LDS bytes, of C = A x B^T."""
    facts = json.loads((folder / f"{name}.json").read_text())
    (m, k), n = a.shape, len(b)
    if m % TILE or n % TILE:
        raise ValueError(f"tiles of {TILE} x {TILE} do not divide a C of {m} x {n}")
    arguments = [a, b, c, *map(np.int32, (m, n, k)), None, None]
    grid, block = (m // TILE * (n // TILE),), (64 * facts["waves"],)
    return [(folder / f"{name}.s").read_text(), arguments, grid, block], {
        "lds_bytes": facts["lds_bytes"]
    }

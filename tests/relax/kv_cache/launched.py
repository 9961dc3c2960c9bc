"""Compiled functions of the cache, called on an emulated GPU under the sanitizer."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tvm

from mfmadsl.device import Options, run_program
from tests.relax.elf import code_objects
from tests.relax.kv_cache.functions import Array, Call

PROGRAM = Path(__file__).with_name("program.py")


@dataclass(frozen=True)
class Launched:
    """Results O and L of each call, the kernels that ran, and the text of all that there are."""

    results: Sequence[tuple[Array, Array]]
    kernels: Sequence[str]
    assembly: Mapping[str, str]


def launched(
    module: tvm.IRModule, target: tvm.target.Target, calls: Sequence[Call], folder: Path
) -> Launched:
    """What becomes of calls of a module's functions."""
    import mfmadsl

    path = folder / "library.so"
    tvm.compile(module, target, tir_pipeline="mfmadsl").export_library(str(path))
    for n, call in enumerate(calls):
        told: dict[str, Any] = {
            f"array{m}": _bits(each) for m, each in enumerate(call.arrays.values())
        }
        told |= {"dtype": call.form.dtype, "function": call.form.name}
        told |= {"offsets": call.offsets, "numbers": call.numbers}
        np.savez(folder / f"{n:02}.call.npz", **told)
    options = Options(str(target.attrs["mcpu"]), sanitize=True)
    ended = run_program([sys.executable, str(PROGRAM), str(folder)], options)
    assert ended.exit_code == 0
    assert [fault for launch in ended.launches for fault in launch.faults] == []
    results = []
    for n, call in enumerate(calls):
        done, names = np.load(folder / f"{n:02}.done.npz"), list(call.arrays)
        o, logarithm = (done[f"array{names.index(name)}"] for name in "ol")
        results.append((o.view(call.dtype).astype(np.float64), logarithm))
    (code_object,) = code_objects(path.read_bytes())
    read = mfmadsl.read_code_object(code_object.data)
    assembly = {name: read.assembly(name) for name in code_object.functions}
    return Launched(results, [launch.symbol for launch in ended.launches], assembly)


def _bits(array: Array) -> Array:
    return array.view(np.uint16) if array.dtype.itemsize == 2 else array

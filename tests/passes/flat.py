"""Functions of flat buffers, in TVM's own language, and what they compute on this CPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from tvm.script import from_source
from tvm.tirx import PrimFunc

import mfmadsl
from mfmadsl.backend.isolate import run_isolated
from tests.backend.guarded import Array, guarded


def function(lengths: Mapping[str, int], body: str) -> PrimFunc:
    """A function of arguments of so many elements: of float32, those in lower case of int32."""
    arguments = ", ".join(
        f'{name}: T.Buffer(({length},), "{"int32" if name.islower() else "float32"}")'
        for name, length in lengths.items()
    )
    lines = "".join(f"    {line}\n" for line in body.strip("\n").splitlines())
    found = from_source(f"@T.prim_func(s_tir=True)\ndef main({arguments}):\n{lines}")
    assert isinstance(found, PrimFunc)
    return found


def body_of(found: PrimFunc) -> str:
    """The text of a function, without its first lines and its indentation."""
    lines = found.script().splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("def main"))
    return "\n".join(line.removeprefix("    ") for line in lines[first + 1 :])


def arrays_of(found: PrimFunc) -> list[Array]:
    """Numbers that name their places, from 1; where the text says no other, C is of 77."""
    return [
        np.full(int(p.shape[0]), 77, np.float32)
        if p.name == "C"
        else np.arange(1, int(p.shape[0]) + 1, dtype=str(p.dtype))
        for p in found.params
    ]


def computed(found: PrimFunc, arrays: list[Array] | None = None) -> list[Array]:
    """What becomes of the arguments, each of which ends, and then begins, where nobody may read."""
    given = arrays_of(found) if arrays is None else arrays
    kernel = mfmadsl.build_for_cpu(found)

    def run(before: bool) -> list[Any]:
        with guarded(*given, before=before) as copies:
            kernel(*copies)
            return [copy.copy() for copy in copies]

    results = [run_isolated(_at(run, before)) for before in (False, True)]
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)
    return results[0]


def _at(run: Callable[[bool], list[Any]], before: bool) -> Callable[[], list[Any]]:
    return lambda: run(before)

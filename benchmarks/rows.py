"""Softmax and normalisations in the chip model: `rows` of Relax's pipeline, and dlight's rules.

.venv/bin/python -m benchmarks.rows [--arch gfx942]       # after `make demo`
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import ml_dtypes  # noqa: F401 - NumPy knows bfloat16 by it
import numpy as np
import tvm
from tvm import relax, tirx
from tvm.s_tir import Schedule
from tvm.s_tir.dlight import gpu
from tvm.tirx import PrimFunc

import mfmadsl
from benchmarks.call import command
from mfmadsl.columns import columns
from mfmadsl.relax.pipeline import fused
from mfmadsl.relax.rows import row_schedule

SHAPES = [(32, 77), (32, 1024), (32, 8192), (1, 128256), (4096, 77), (4096, 1024)]


def softmax(x: Any) -> Any:
    """Of the last axis."""
    return relax.op.nn.softmax(x)


def rms_norm(x: Any, weight: Any) -> Any:
    """Of the last axis."""
    return relax.op.nn.rms_norm(x, weight, axes=-1)


def function_of(
    made: Callable[..., Any], shapes: list[Any], dtype: str, target: tvm.target.Target
) -> PrimFunc:
    """The one function that an operation of Relax becomes."""
    given = [relax.Var(f"x{n}", relax.TensorType(each, dtype)) for n, each in enumerate(shapes)]
    builder = relax.BlockBuilder()
    with builder.function("main", given):
        with builder.dataflow():
            result = builder.emit_output(made(*given))
        builder.emit_func_output(result)
    with target:
        functions = [f for _, f in fused(builder.get(), target).functions_items()]
    (found,) = [each for each in functions if isinstance(each, PrimFunc)]
    return found


def microseconds(schedule: Schedule | None, shape: tuple[int, int], count: int, arch: str) -> float:
    """What the kernel of a schedule takes, of `count` arguments before its result."""
    assert schedule is not None
    kernel = mfmadsl.build(schedule, arch=arch)
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float16)
    arguments = [x, *[x[0]] * (count - 1), np.zeros_like(x)]
    return mfmadsl.profile(kernel, arguments).on_chip.seconds * 1e6


def main() -> int:
    """Print the table."""
    parser = command(__doc__)
    parser.add_argument("--arch", choices=["gfx90a", "gfx942", "gfx950"], default="gfx942")
    arch = parser.parse_args().arch
    target = mfmadsl.target(arch)
    lines = [("", "ROWS", "LENGTH", "KNOWN AS", "ROWS US", "DLIGHT US")]
    for made, is_known in ((softmax, False), (softmax, True), (rms_norm, True)):
        for shape in SHAPES:
            length = shape[1] if is_known else tirx.Var("length", "int64")
            shapes = [(shape[0], length), *[(length,)] * (made is rms_norm)]
            function = function_of(made, shapes, "float16", target)
            ours = row_schedule(function)
            rules = (gpu.Reduction(), gpu.GeneralReduction(), gpu.Fallback())
            with target:
                found = (rule.apply(function, target, False) for rule in rules)
                theirs = next(schedule for schedule in found if schedule is not None)
            ours_us, dlight_us = (
                f"{microseconds(each, shape, len(shapes), arch):.2f}" for each in (ours, theirs)
            )
            known = "a number" if is_known else "a symbol"
            rows, elements = map(str, shape)
            lines.append((made.__name__, rows, elements, known, ours_us, dlight_us))
    print(columns(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())

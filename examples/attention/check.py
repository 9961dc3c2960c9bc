"""Whether a step computes attention: its machine code runs under the sanitizer, beside NumPy."""

from __future__ import annotations

import numpy as np

import mfmadsl
from examples.attention.size import Size, attended
from examples.attention.step import Step
from examples.product import Array
from mfmadsl import EmulationError, Kernel

SMALL = Size(2, 200, 300, 72)
"""Where every step is run: several heads, several tiles of queries and keys, and edges."""

_TOLERANCE = 2.0**-10
"""Weights and results are rounded to float16, each by 2^-11 at most."""


def check(step: Step, size: Size = SMALL) -> str | None:
    """What is wrong with a step's machine code at that size, or None. Raises what `build` does."""
    return wrong_with(step.kernel(size), size, step.causal)


def wrong_with(kernel: Kernel, size: Size, causal: bool) -> str | None:
    """What the sanitizer finds in a kernel, or else where its result is not NumPy's."""
    q, k, v, o = size.arrays()
    try:
        mfmadsl.sanitize(kernel, [q, k, v, o])
    except EmulationError as fault:
        return f"the sanitizer finds: {fault}"
    return difference(o, attended(q, k, v, causal), attended(q, k, np.abs(v), causal))


def difference(o: Array, right: Array, magnitude: Array) -> str | None:
    """Where O is not what is right, as a sentence; None if it is. `magnitude` is what O would be of
    the absolute values of V."""
    wrong = np.argwhere(~(np.abs(o - right) <= _TOLERANCE * magnitude))
    if not len(wrong):
        return None
    place = tuple(wrong[0])
    return (
        f"{len(wrong)} of {o.size} elements are wrong, the first of them "
        f"O[{', '.join(map(str, place))}] = {o[place]:g}, not {right[place]:g}"
    )

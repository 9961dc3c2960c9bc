"""The word behind what a lane loads, where the next lane has loaded it.

Neighbours that are not aligned take a word more than they have. Where the next lane's lie behind
them that word is the first one of its: one move fetches it from there (DPP). Only the last lane of
each row of memory loads it, for which the vector L1 cache is asked for fewer lines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np
import numpy.typing as npt
import tvm_ffi
from tvm import tirx
from tvm.tirx import Expr

from mfmadsl.passes.main_loop.analysis.loop import Loop
from mfmadsl.passes.tir.expression import NotNumbersError, numbers, substitute, variables_of
from mfmadsl.passes.tir.linear import bounded
from mfmadsl.passes.tir.walk import walk

ROW = 16
"""Lanes among which DPP moves words."""

_LANE = "threadIdx.x"
_OTHERS = (0, 1, 3)  # values for which a difference between lanes must be the same
_LINEAR = (tirx.Add, tirx.Sub, tirx.Mul, tirx.Cast, tirx.Var, tirx.IntImm)


def lanes_of_row(own: Expr, length: int, loop: Loop) -> int:
    """How many lanes load `length` bytes each of one row, one after the other; 0 if it is not sure
    of as many as DPP knows. `own` is a lane's offset."""
    if loop.threads.get(_LANE, 1) % ROW:
        return 0
    try:
        steps = _steps(own, loop)
    except NotNumbersError:
        return 0
    place = np.arange(steps.shape[-1])
    for lanes in (ROW, ROW // 2, ROW // 4):
        if (steps[:, place % lanes < lanes - 1] == length).all():
            return lanes
    return 0


def has_none(lanes: int, conditions: Sequence[Expr], loop: Loop, own: Expr) -> Expr | None:
    """Whether the next lane does not have a lane's word: the lane is the last of its row, or the
    next one's load is sent past the end of the buffer by a condition that tells them apart. None if
    no lane is in `own`."""
    lane = next((v for v in variables_of(own) if v.name == _LANE), None)
    if lane is None:
        return None
    kind = str(lane.ty.dtype)
    found: Expr = (lane & tirx.const(lanes - 1, kind)).equal(tirx.const(lanes - 1, kind))
    for condition in conditions:
        if not _is_same_in_row(condition, lanes, loop):
            found = tirx.Or(found, tirx.Not(substitute(condition, {lane: lane + 1})))
    return found


def _is_same_in_row(condition: Expr, lanes: int, loop: Loop) -> bool:
    sides = bounded(condition)
    try:
        steps = [_steps(side, loop) for side in sides or ()]
    except NotNumbersError:
        return False
    inner = [each[:, np.arange(each.shape[-1]) % lanes < lanes - 1] for each in steps]
    return sides is not None and not any(each.any() for each in inner)


def _steps(expression: Expr, loop: Loop) -> npt.NDArray[np.int64]:
    """What each thread but the last adds to the one before, for some values of what is not known of
    threads; a wave's lanes are neighbours.

    Raises NotNumbersError where other values might tell something else.
    """
    names = sorted(loop.threads, key=lambda name: name == _LANE)
    shape = tuple(loop.threads[name] for name in names)
    values = dict(zip(names, np.indices(shape), strict=True))
    others = sorted({v.name for v in variables_of(expression)} - set(names))
    _check_linear(expression, others)

    def at(value: int) -> npt.NDArray[np.int64]:
        apart = {name: value * (n + 1) for n, name in enumerate(others)}
        known: Mapping[str, npt.ArrayLike] = values | apart
        return np.broadcast_to(numbers(expression, known), shape).reshape(prod(shape))

    found = np.stack([at(value) for value in _OTHERS])
    return found[:, 1:] - found[:, :-1]


def _check_linear(expression: Expr, names: Sequence[str]) -> None:
    """Raise NotNumbersError if variables stand under anything but sums and products: what is made
    of them by a remainder may jump anywhere."""

    def check(part: tvm_ffi.Object) -> None:
        if isinstance(part, Expr) and not isinstance(part, _LINEAR):
            jumping.extend(v.name for v in variables_of(part) if v.name in names)

    jumping: list[str] = []
    walk(expression, (Expr, check))
    if jumping:
        raise NotNumbersError(jumping[0])

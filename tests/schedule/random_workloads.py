"""Workloads drawn at random, around products of matrices: a schedule is right, or it is refused.

What is right is what TVM's own code for the CPU computes. Values are small whole numbers, so that
sums are exact in whatever order they are added up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import tvm
from tvm import te, tirx
from tvm.s_tir import Schedule
from tvm.sym import Analyzer
from tvm.tirx import PrimFunc
from tvm.tirx.analysis import undefined_vars

import mfmadsl
from mfmadsl.passes import LoweringError
from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.product.nest import substitute
from tests.schedule.draw import Draw
from tests.schedule.drawn_epilogue import drawn_epilogue
from tests.schedule.drawn_product import drawn_product
from tests.schedule.spoiled import SPOILS

Array = npt.NDArray[Any]
Build = Callable[[PrimFunc], Schedule]


@dataclass(frozen=True)
class RandomWorkload:
    """A function, and what its variables are when it runs; `sound` if it has to be scheduled."""

    seed: int
    function: PrimFunc
    symbols: dict[str, int]
    said: Sequence[str]
    sound: bool

    def operands(self) -> list[Array]:
        """What the arguments hold: whole numbers, and at places that are read by, places."""
        generator = np.random.default_rng(self.seed)
        return [self._operand(parameter, generator) for parameter in self.function.params]

    def _operand(self, parameter: Any, generator: np.random.Generator) -> Array:
        shape = [self._number(extent) for extent in parameter.shape]
        name = str(parameter.dtype)
        dtype = np.dtype(getattr(ml_dtypes, name, name))
        if str(parameter.name).startswith("places"):
            return generator.integers(0, shape[0], shape).astype(dtype)
        return generator.integers(-3, 4, shape).astype(dtype)

    def _number(self, extent: Any) -> int:
        values = {v: tirx.const(self.symbols[v.name], "int32") for v in undefined_vars(extent)}
        return int(Analyzer().simplify(substitute(extent, values)))

    def expected(self) -> list[Array]:
        """What the arguments hold after the function ran on the CPU."""
        tensors = [tvm.runtime.tensor(array) for array in self.operands()]
        tvm.compile(self.function, target={"kind": "llvm", "opt-level": 0})(*tensors)
        return [tensor.numpy() for tensor in tensors]


def random_workload(
    seed: int,
    types: tuple[str, ...] = ("float16", "bfloat16", "int8", "float32"),
    extents: Mapping[str, tuple[int, ...]] = MappingProxyType({}),
) -> RandomWorkload:
    """The workload that a number stands for, of one of these types.

    `extents` has lengths to draw from for axes of some names. Sums in a narrow type are drawn
    without it only: long ones would be rounded.
    """
    draw = Draw(seed, types, extents)
    product = drawn_product(draw)
    results, folded = drawn_epilogue(draw, product)
    function = te.create_prim_func([*draw.arguments, *results])
    sound = folded
    if draw.chance(0.2):
        name = draw.one_of(*SPOILS)
        spoiled = SPOILS[name](function)
        if spoiled is not None:
            function, sound = spoiled, False
    return RandomWorkload(seed, function, draw.symbols, tuple(draw.said), sound)


def check(workload: RandomWorkload, schedule: Build, arch: str = "gfx942") -> bool:
    """Whether a workload was scheduled; then it is right, and otherwise refused in a sentence."""
    reason = ""
    try:
        kernel = mfmadsl.build(schedule(workload.function), arch)
    except (ScheduleError, LoweringError) as error:
        reason = str(error)
    if reason:
        assert "\n" not in reason, reason
        assert not workload.sound, f"{workload.said}: {reason}"
        return False
    found = workload.operands()
    mfmadsl.sanitize(kernel, found)
    for mine, wanted in zip(found, workload.expected(), strict=True):
        np.testing.assert_array_equal(
            mine.astype(np.float64), wanted.astype(np.float64), err_msg=str(workload.said)
        )
    return True

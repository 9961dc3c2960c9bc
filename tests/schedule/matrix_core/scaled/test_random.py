"""Random scaled workloads, written in every way, right or wrong: right under the sanitizer, or
refused.

A number stands for each of them: MFMADSL_FIRST=5000 takes those from there on, not the usual ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from tvm import te
from tvm.tirx import PrimFunc

import mfmadsl
from mfmadsl import ArgumentError, LoweringError, ScheduleError
from mfmadsl.schedule.matrix_core.gemm import gemm_tilings
from tests.cases import FIRST
from tests.schedule.matrix_core.scaled.operands import BITS, by_words, packed, shuffled
from tests.schedule.matrix_core.scaled.test_floats import E8M0, power

SEEDS = range(FIRST, FIRST + 160)
EXTENTS = (1, 7, 16, 17, 33, 64, 100, 130)
ORDERS = {"words": by_words, "shuffled": shuffled}
OF_BYTES = ("bytes", *ORDERS)
CHIPS = ("gfx950", "gfx950", "gfx950", "gfx942", "gfx90a")


@dataclass(frozen=True)
class Drawn:
    """A workload: how it is written, and what is wrong with it."""

    seed: int
    arch: str
    shape: tuple[int, int, int]
    types: tuple[str, str]
    written: str  # in "bytes", "words" or "shuffled", in the "sum", or in blocks "before" it
    scales: tuple[str | None, str | None]  # their types
    group: int
    batch: int | None
    b_along_k: bool
    followed: bool  # by a ReLU
    itself: bool  # A times its own transpose
    has_nan: bool
    tiling: int  # which of those that are offered

    @property
    def sound(self) -> bool:
        """Whether it has to be scheduled."""
        whole = self.group == 32 and self.shape[2] % 32 == 0
        along = self.b_along_k or BITS[self.types[1]] == 8
        return whole and along and set(self.scales) <= {E8M0, "uint8", None}

    @property
    def lead(self) -> tuple[int, ...]:
        return () if self.batch is None else (self.batch,)


def drawn(seed: int) -> Drawn:
    rng = np.random.default_rng(seed + 10**7)

    def of(*choices: Any) -> Any:
        return choices[rng.integers(len(choices))]

    def rarely(share: float) -> bool:
        return bool(rng.random() < share)

    types = of(*BITS), of(*BITS)
    written = of("bytes", "words", "shuffled", "sum", "sum", "before", "before")
    steps = int(rng.integers(1, 5)) * 4 if written == "words" else int(rng.integers(1, 20))
    m, n, k = of(*EXTENTS), of(*EXTENTS), steps * 32
    scales: tuple[str | None, str | None] = of((E8M0, E8M0), ("uint8", E8M0), (E8M0, None))
    batch = of(2, 3) if rarely(0.25) else None
    group, itself, b_along_k, followed = 32, False, True, False
    if written in ("sum", "before"):
        followed = rarely(0.25)
        if rarely(0.1):
            k += of(1, 8, 16)
        if rarely(0.1):
            group = of(16, 64)
        if rarely(0.1):
            scales = of(("float32", E8M0), (E8M0, "int8"), ("float16", None))
        if rarely(0.1):
            itself, n, types, scales = True, m, (types[0], types[0]), (E8M0, E8M0)
        b_along_k = itself or not rarely(0.15)
    return Drawn(
        seed, of(*CHIPS), (m, n, k), types, written, scales, group, batch, b_along_k,
        followed, itself, rarely(0.2), int(rng.integers(8)) if rarely(0.4) else 0,
    )  # fmt: skip


def value_of(scale: Any) -> Any:
    return power(scale) if scale.dtype in (E8M0, "uint8") else scale.astype("float32")


def workload(case: Drawn) -> PrimFunc:
    (m, n, k), lead = case.shape, case.lead
    if case.written in OF_BYTES:
        order = "rows" if case.written == "bytes" else case.written
        return mfmadsl.scaled_matmul(m, n, k, *case.types, order, case.batch)
    groups = -(-k // case.group)
    a = te.placeholder((*lead, m, k), case.types[0], "A")
    of_a: Any = case.scales[0] and te.placeholder((*lead, m, groups), case.scales[0], "SA")
    shapes = ((n, k), (n, groups)) if case.b_along_k else ((k, n), (groups, n))
    b = te.placeholder((*lead, *shapes[0]), case.types[1], "B")
    of_b: Any = case.scales[1] and te.placeholder((*lead, *shapes[1]), case.scales[1], "SB")
    if case.itself:
        b, of_b = a, of_a

    def left(*place: Any) -> Any:
        *which, i, x = place
        value = a[place].astype("float32")
        return value if of_a is None else value * value_of(of_a[(*which, i, x // case.group)])

    def right(*place: Any) -> Any:
        *which, j, x = place
        at, group = (j, x), (j, x // case.group)
        if not case.b_along_k:
            at, group = at[::-1], group[::-1]
        value = b[(*which, *at)].astype("float32")
        return value if of_b is None else value * value_of(of_b[(*which, *group)])

    if case.written == "before":
        left, right = (
            te.compute((*lead, rows, k), each, name)
            for rows, each, name in ((m, left, "A_values"), (n, right, "B_values"))
        )
    r = te.reduce_axis((0, k), "k")

    def total(*place: Any) -> Any:
        *which, i, j = place
        return te.sum(left(*which, i, r) * right(*which, j, r), axis=[r])

    c = te.compute((*lead, m, n), total, "C")
    if case.followed:
        c = te.compute((*lead, m, n), lambda *at: te.max(c[at], te.const(0, "float32")), "D")
    given = [a, of_a] if case.itself else [a, of_a, b, of_b]
    return te.create_prim_func([*(each for each in given if each is not None), c])


@dataclass(frozen=True)
class Operand:
    codes: NDArray[np.uint8]
    scales: NDArray[Any]
    values: NDArray[np.float64]


def operand(case: Drawn, side: int) -> Operand:
    """Any finite elements with scales around one; sometimes one of these is NaN."""
    rng = np.random.default_rng((case.seed, side))
    rows, k = case.shape[side], case.shape[2]
    dtype, kind = case.types[side], case.scales[side]
    element = np.dtype(getattr(ml_dtypes, dtype))
    every = np.arange(1 << BITS[dtype], dtype=np.uint8)
    codes = rng.choice(
        every[np.isfinite(every.view(element).astype(np.float64))], (*case.lead, rows, k)
    )
    shape = (*case.lead, rows, -(-k // case.group))
    if kind in (E8M0, "uint8") or case.written in OF_BYTES:
        scales = rng.integers(118, 137, shape).astype(np.uint8)
        if case.has_nan and case.seed % 2 == side:
            scales[..., 0, 0] = 255  # NaN (OCP Microscaling Formats v1.0, 5.4.1)
        powers = np.where(scales == 255, np.nan, 2.0 ** (scales.astype(np.float64) - 127))
    elif kind is None:
        scales, powers = np.zeros(0, np.uint8), np.ones(shape)
    else:
        scales = rng.integers(1, 9, shape).astype(kind)
        powers = scales.astype(np.float64)
    each = np.repeat(powers, case.group, axis=-1)[..., :k]
    return Operand(codes, scales, codes.view(element).astype(np.float64) * each)


def bytes_of(codes: NDArray[np.uint8], dtype: str) -> NDArray[np.uint8]:
    rows = packed(codes.reshape(-1, codes.shape[-1]), BITS[dtype])
    return rows.reshape(*codes.shape[:-1], -1)


def arrays(case: Drawn, a: Operand, b: Operand, kernel: Any) -> list[NDArray[Any]]:
    """What a kernel takes, by name."""

    def turned(array: NDArray[Any]) -> NDArray[Any]:
        if case.b_along_k or not array.size:
            return array
        return np.ascontiguousarray(np.swapaxes(array, -1, -2))

    scales = [a.scales, b.scales]
    if order := ORDERS.get(case.written):
        scales = [np.stack([order(one) for one in s]) if case.batch else order(s) for s in scales]
    given = {
        "A": bytes_of(a.codes, case.types[0]), "B": turned(bytes_of(b.codes, case.types[1])),
        "SA": scales[0], "SCALE_A": scales[0], "SB": turned(scales[1]), "SCALE_B": scales[1],
    }  # fmt: skip
    *operands, _ = kernel.arguments
    found = []
    for each in operands:
        own = given[each.name]
        narrow = own.dtype == np.uint8 and each.dtype != "uint8"
        found.append(own.view(getattr(ml_dtypes, each.dtype)) if narrow else own)
    return found


def check(case: Drawn) -> None:
    """What is scheduled is right; only what is not sound is refused."""
    try:
        function = workload(case)
        tiling = None
        if case.tiling:
            offered = gemm_tilings(function, arch=case.arch)
            tiling = offered[min(case.tiling, len(offered) - 1)]
        schedule = mfmadsl.gemm_schedule(function, arch=case.arch, tiling=tiling)
        kernel = mfmadsl.build(schedule, case.arch)
    except (ScheduleError, ArgumentError, LoweringError):
        if case.sound:
            raise
        return
    a = operand(case, 0)
    b = a if case.itself else operand(case, 1)
    c = np.full(kernel.arguments[-1].shape, 77, np.float32)
    mfmadsl.sanitize(kernel, [*arrays(case, a, b, kernel), c])
    x, y = a.values, np.swapaxes(b.values, -1, -2)
    wanted = x @ y
    if case.followed:
        wanted = np.fmax(wanted, 0)  # of NaN and a number the number, as the hardware has it
    bound = 2**-23 * (case.shape[2] + 2) * (np.abs(x) @ np.abs(y))
    assert np.array_equal(np.isnan(c), np.isnan(wanted)), case
    assert (np.abs(c - wanted) <= bound)[~np.isnan(bound)].all(), case


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.filterwarnings("ignore::mfmadsl.SlowLoopWarning")
def test_workloads(seed: int) -> None:
    check(drawn(seed))


def test_most_workloads_have_to_be_scheduled() -> None:
    sound = sum(drawn(seed).sound for seed in SEEDS)
    assert 0.6 * len(SEEDS) < sound < 0.95 * len(SEEDS)

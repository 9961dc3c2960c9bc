"""What follows a product is folded where TVM does that right, and else a kernel of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tvm import te, tirx
from tvm.tirx import PrimFunc

import mfmadsl
from mfmadsl.schedule.error import ScheduleError
from tests.schedule.plain_builder import plain_schedule
from tests.schedule.spoiled import SPOILS

M, N, K = 40, 35, 21
ZERO = tirx.const(0, "float32")
After = Callable[[Any], Any]


def function(after: After) -> PrimFunc:
    a = te.placeholder((M, K), name="A", dtype="float16")
    b = te.placeholder((N, K), name="B", dtype="float16")
    r = te.reduce_axis((0, K), name="k")
    c = te.compute(
        (M, N),
        lambda i, j: te.sum(a[i, r].astype("float32") * b[j, r].astype("float32"), axis=[r]),
        name="C",
    )
    found = after(c)
    return te.create_prim_func([a, b, *(found if isinstance(found, list) else [found])])


def stage(shape: tuple[int, ...], element: Callable[..., Any], name: str = "D") -> Any:
    return te.compute(shape, element, name=name)


def chain(c: Any) -> Any:
    d = stage((M, N), lambda i, j: te.max(c[i, j], ZERO))
    e = stage((M, N), lambda i, j: c[i, j] + 1.0, "E")
    return stage((N, M), lambda j, i: d[i, j] * e[i, j], "F")


CASES: dict[str, tuple[After, Callable[[Any], Any], bool]] = {
    "slice": (lambda c: stage((M - 7, N - 1), lambda i, j: c[i, j] + 1.0),
              lambda p: p[: M - 7, : N - 1] + 1, True),
    "turned": (lambda c: stage((N, M), lambda j, i: c[i, j]), lambda p: p.T, True),
    "diamond": (chain, lambda p: (np.maximum(p, 0) * (p + 1)).T, True),
    "shift": (lambda c: stage((M, N - 1), lambda i, j: c[i, j + 1]), lambda p: p[:, 1:], False),
    "flat": (lambda c: stage((M * N,), lambda x: c[x // N, x % N]), lambda p: p.reshape(-1), False),
    "one row": (lambda c: stage((N,), lambda j: c[0, j]), lambda p: p[0], False),
    "copies": (lambda c: stage((2, M, N), lambda z, i, j: c[i, j]), lambda p: np.stack([p, p]),
               False),
    "two places": (lambda c: stage((M, N - 1), lambda i, j: c[i, j] - c[i, j + 1]),
                   lambda p: p[:, :-1] - p[:, 1:], False),
    "backwards": (lambda c: stage((M, N), lambda i, j: c[M - 1 - i, j]), lambda p: p[::-1], False),
    "margin": (lambda c: stage((M, N + 3), lambda i, j: tirx.if_then_else(j < N, c[i, j], ZERO)),
               lambda p: np.pad(p, ((0, 0), (0, 3))), False),
}  # fmt: skip


@pytest.mark.parametrize("split", [1, 2])
@pytest.mark.parametrize("case", CASES)
def test_what_follows_is_right(case: str, split: int) -> None:
    after, expected, folded = CASES[case]
    kernel = mfmadsl.build(plain_schedule(function(after), split), "gfx942")
    generator = np.random.default_rng(3)
    a, b = (generator.integers(-3, 4, (e, K)).astype(np.float16) for e in (M, N))
    wanted = expected(a.astype(np.float64) @ b.astype(np.float64).T)
    found = np.full(wanted.shape, 99, np.float32)
    mfmadsl.emulate(kernel, [a, b, found])
    np.testing.assert_array_equal(found, wanted)
    if split == 1 and folded:
        assert kernel.next is None
    if not folded and case != "margin":
        assert kernel.next is not None


def refused(workload: PrimFunc) -> str:
    with pytest.raises(ScheduleError) as caught:
        plain_schedule(workload)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_what_cannot_follow() -> None:
    r = te.reduce_axis((0, N), name="r")
    both = refused(function(lambda c: [c, stage((M, N), lambda i, j: c[i, j] + 1.0)]))
    assert "`C` is a result besides `D`" in both
    summed = function(lambda c: stage((M,), lambda i: te.sum(c[i, r], axis=[r])))
    assert "there are: `C`, `D`" in refused(summed)
    largest = function(lambda c: stage((M,), lambda i: te.max(c[i, r], axis=[r])))
    assert "one block must be a reduction" in refused(largest)
    conditional = SPOILS["where after the product"](
        function(lambda c: stage((M, N), lambda i, j: c[i, j] + 1.0, "D0"))
    )
    assert "block `D0` runs under the condition" in refused(conditional)

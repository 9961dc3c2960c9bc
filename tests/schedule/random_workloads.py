"""Workloads drawn at random, around products of matrices: a schedule is right, or it is refused.

What is right is what TVM's own code for the CPU computes. Values are small whole numbers, so that
sums are exact in whatever order they are added up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
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
from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.nest import substitute
from tests.schedule.spoiled import SPOILS

Array = npt.NDArray[Any]
Build = Callable[[PrimFunc], Schedule]

EXTENTS = (1, 2, 5, 17, 31, 32, 33, 40, 64, 65)
SUMS = {"float16": "float32", "bfloat16": "float32", "float32": "float32", "int8": "int32"}


@dataclass
class Draw:
    """A seeded generator, and what it has drawn so far."""

    seed: int
    types: tuple[str, ...]
    generator: np.random.Generator = field(init=False)
    arguments: list[Any] = field(default_factory=list)
    symbols: dict[str, int] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.generator = np.random.default_rng(self.seed)

    def one_of(self, *choices: Any) -> Any:
        choice = choices[int(self.generator.integers(len(choices)))]
        if isinstance(choice, str):
            self.said.append(choice)
        return choice

    def chance(self, probability: float) -> bool:
        return bool(self.generator.random() < probability)

    def extent(self, name: str) -> Any:
        number = int(self.one_of(*EXTENTS))
        self.said.append(f"{name}={number}")
        if self.chance(0.15):
            self.symbols[name] = number
            return te.var(name)
        return number

    def argument(self, name: str, shape: tuple[Any, ...], dtype: str) -> Any:
        """One more argument."""
        placeholder = te.placeholder(shape, name=name, dtype=dtype)
        self.arguments.append(placeholder)
        return placeholder


@dataclass(frozen=True)
class RandomWorkload:
    """A function, and what its variables are when it runs; `sound` if it has to be scheduled."""

    seed: int
    function: PrimFunc
    symbols: dict[str, int]
    said: tuple[str, ...]
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
        tvm.compile(self.function, target="llvm")(*tensors)
        return [tensor.numpy() for tensor in tensors]


def random_workload(
    seed: int, types: tuple[str, ...] = ("float16", "bfloat16", "int8", "float32")
) -> RandomWorkload:
    """The workload that a number stands for, of one of these types."""
    draw = Draw(seed, types)
    product = _product(draw)
    results, folded = _epilogue(draw, product)
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
        scheduled = schedule(workload.function)
    except ScheduleError as error:
        reason = str(error)
    if reason:
        assert "\n" not in reason, reason
        assert not workload.sound, f"{workload.said}: {reason}"
        return False
    kernel = mfmadsl.build(scheduled, arch)
    found = workload.operands()
    mfmadsl.sanitize(kernel, found)
    for mine, wanted in zip(found, workload.expected(), strict=True):
        np.testing.assert_array_equal(
            mine.astype(np.float64), wanted.astype(np.float64), err_msg=str(workload.said)
        )
    return True


def _product(draw: Draw) -> Any:
    form = draw.one_of(
        "matrices", "matrices", "matrices", "matrices", "vector", "itself", "convolution",
        "several sums", "batches", "batches",
    )  # fmt: skip
    dtype = draw.one_of(*draw.types)
    sum_type = SUMS[dtype]
    if dtype in ("float16", "bfloat16") and draw.chance(0.1):
        sum_type = dtype
        draw.said.append("narrow sum")
    return _FORMS[form](draw, dtype, sum_type)


def _sum_over(extent: Any, name: str = "k") -> Any:
    return te.reduce_axis((0, extent), name=name)


def _matrices(draw: Draw, dtype: str, sum_type: str) -> Any:
    m, n, k = (draw.extent(name) for name in "mnk")
    a, b = _operand(draw, "A", m, k, dtype), _operand(draw, "B", n, k, dtype)
    r = _sum_over(k)
    swapped = draw.chance(0.3)
    turned = draw.chance(0.5)

    def element(i: Any, j: Any) -> Any:
        left, right = a(i, r), b(j, r)
        return _plain(left, right, sum_type, r, turned)

    if swapped:
        return te.compute((n, m), lambda j, i: element(i, j), name="C")
    return te.compute((m, n), element, name="C")


def _plain(left: Any, right: Any, sum_type: str, r: Any, turned: bool) -> Any:
    left, right = left.astype(sum_type), right.astype(sum_type)
    return te.sum(right * left if turned else left * right, axis=r if isinstance(r, list) else [r])


def _vector(draw: Draw, dtype: str, sum_type: str) -> Any:
    m, k = draw.extent("m"), draw.extent("k")
    a, x = _operand(draw, "A", m, k, dtype), draw.argument("X", (k,), dtype)
    r, turned = _sum_over(k), draw.chance(0.5)
    return te.compute((m,), lambda i: _plain(a(i, r), x[r], sum_type, r, turned), name="C")


def _itself(draw: Draw, dtype: str, sum_type: str) -> Any:
    m, k = draw.extent("m"), draw.extent("k")
    a, r = _operand(draw, "A", m, k, dtype), _sum_over(k)
    return te.compute((m, m), lambda i, j: _plain(a(i, r), a(j, r), sum_type, r, False), name="C")


def _convolution(draw: Draw, dtype: str, sum_type: str) -> Any:
    images, size, channels, filters, stride = (int(draw.one_of(1, 2, 3)) for _ in range(5))
    height, width = (int(draw.one_of(1, 4, 7)) for _ in range(2))
    x = draw.argument("X", (images, height * stride + size, width * stride + size, channels), dtype)
    w = draw.argument("W", (filters, size, size, channels), dtype)
    rs = [_sum_over(e, name) for e, name in ((size, "rh"), (size, "rw"), (channels, "rc"))]
    return te.compute(
        (images, height, width, filters),
        lambda z, h, v, f: _plain(
            x[z, h * stride + rs[0], v * stride + rs[1], rs[2]], w[f, rs[0], rs[1], rs[2]],
            sum_type, rs, False,
        ),
        name="C",
    )  # fmt: skip


def _several_sums(draw: Draw, dtype: str, sum_type: str) -> Any:
    m, n, k = (draw.extent(name) for name in "mnk")
    other = int(draw.one_of(2, 3))
    a, b = draw.argument("A", (m, other, k), dtype), draw.argument("B", (other, k, n), dtype)
    rs = [_sum_over(other, "k0"), _sum_over(k, "k1")]
    return te.compute(
        (m, n), lambda i, j: _plain(a[i, rs[0], rs[1]], b[rs[0], rs[1], j], sum_type, rs, False),
        name="C",
    )  # fmt: skip


def _batches(draw: Draw, dtype: str, sum_type: str) -> Any:
    z, m, n, k = (draw.extent(name) for name in "zmnk")
    own = [draw.chance(0.7), draw.chance(0.5)]
    a = draw.argument("A", (z, m, k) if own[0] else (m, k), dtype)
    b = draw.argument("B", (z, k, n) if own[1] else (k, n), dtype)
    r = _sum_over(k)

    def element(z: Any, i: Any, j: Any) -> Any:
        left = a[z, i, r] if own[0] else a[i, r]
        right = b[z, r, j] if own[1] else b[r, j]
        return _plain(left, right, sum_type, r, False)

    if draw.chance(0.3):
        return te.compute((m, z, n), lambda i, z, j: element(z, i, j), name="C")
    return te.compute((z, m, n), element, name="C")


_FORMS: dict[str, Callable[[Draw, str, str], Any]] = {
    "matrices": _matrices,
    "vector": _vector,
    "itself": _itself,
    "convolution": _convolution,
    "several sums": _several_sums,
    "batches": _batches,
}


def _operand(draw: Draw, name: str, rows: Any, columns: Any, dtype: str) -> Callable[..., Any]:
    """An operand's element at a row and a place of the sum, read or computed in some way."""
    how = draw.one_of(
        "rows", "rows", "rows", "columns", "columns", "reversed", "strided", "shifted", "gathered",
        "sliding", "scaled", "added", "padded", "turned",
    )  # fmt: skip
    if how == "scaled" and dtype not in ("float16", "float32"):
        how = "rows"
    if how in ("sliding", "strided", "shifted") and not all(
        isinstance(x, int) for x in (rows, columns)
    ):
        how = "rows"
    if how == "columns":
        x = draw.argument(name, (columns, rows), dtype)
        return lambda i, k: x[k, i]
    if how == "sliding":
        x = draw.argument(name, (rows + columns,), dtype)
        return lambda i, k: x[i + k]
    shape = (rows * 2, columns) if how == "strided" else (rows, columns)
    if how == "shifted":
        shape = (rows, columns + 1)
    if how == "scaled":
        x = draw.argument(name, shape, "int8")
        scale = draw.argument(f"scale_{name}", (rows,), dtype)
        scaled = te.compute(shape, lambda i, k: x[i, k].astype(dtype) * scale[i], name=f"{name}_f")
        return lambda i, k: scaled[i, k]
    x = draw.argument(name, shape, dtype)
    if how == "gathered":
        places = draw.argument(f"places_{name}", (rows,), "int32")
        return lambda i, k: x[places[i], k]
    if how == "added":
        one = te.compute(shape, lambda i, k: x[i, k] + tirx.const(1, dtype), name=f"{name}_one")
        two = te.compute(shape, lambda i, k: one[i, k] + one[i, k], name=f"{name}_two")
        return lambda i, k: two[i, k]
    if how == "padded":
        zero = tirx.const(0, dtype)
        padded = te.compute(
            shape, lambda i, k: tirx.if_then_else(i >= 1, x[i - 1, k], zero), name=f"{name}_padded"
        )
        return lambda i, k: padded[i, k]
    if how == "turned":
        turned = te.compute((columns, rows), lambda k, i: x[i, k], name=f"{name}_turned")
        return lambda i, k: turned[k, i]
    return {
        "reversed": lambda i, k: x[rows - 1 - i, k],
        "strided": lambda i, k: x[i * 2, k],
        "shifted": lambda i, k: x[i, k + 1],
    }.get(how, lambda i, k: x[i, k])


def _epilogue(draw: Draw, c: Any) -> tuple[list[Any], bool]:
    """The results after a product, and whether they must be possible."""
    last, sound = c, True
    for step in range(int(draw.generator.integers(4))):
        how = draw.one_of(
            "bias", "bias", "residual", "relu", "relu", "scale", "cast", "turned", "diamond",
            "slice", "shift", "flat", "broadcast", "two places", "margin", "places", "again",
        )  # fmt: skip
        last = _step(draw, last, how, f"D{step}", c)
    if draw.chance(0.04) and last is not c:
        draw.said.append("two results")
        return [c, last], False
    return [last], sound


def _step(draw: Draw, x: Any, how: str, name: str, c: Any) -> Any:
    """One element-wise block; the plain one where the shape does not fit."""
    dtype, shape, rank = str(x.dtype), tuple(x.shape), len(x.shape)
    one = tirx.const(1, dtype)

    def compute(of: Callable[..., Any], new: tuple[Any, ...] = shape) -> Any:
        return te.compute(new, of, name=name)

    if how in ("bias", "scale"):
        v = draw.argument(f"{how}_{name}", (shape[-1],), dtype)
        if how == "bias":
            return compute(lambda *p: x(*p) + v[p[-1]])
        return compute(lambda *p: x(*p) * v[p[-1]])
    if how == "residual":
        v = draw.argument(f"residual_{name}", shape, dtype)
        return compute(lambda *p: x(*p) + v(*p))
    if how == "cast":
        return compute(lambda *p: x(*p).astype("float16" if dtype == "float32" else "float32"))
    if how == "turned" and rank > 1:
        return compute(lambda *p: x(*p[:-2], p[-1], p[-2]), (*shape[:-2], shape[-1], shape[-2]))
    if how == "diamond":
        left = te.compute(shape, lambda *p: x(*p) + one, name=f"{name}_left")
        right = te.compute(shape, lambda *p: te.max(x(*p), one), name=f"{name}_right")
        return compute(lambda *p: left(*p) + right(*p))
    number = int(shape[-1]) if isinstance(shape[-1], tirx.IntImm | int) else 0
    if how in ("slice", "shift", "two places") and number > 1:
        shorter = (*shape[:-1], number - 1)
        if how == "slice":
            return compute(lambda *p: x(*p) + one, shorter)
        if how == "shift":
            return compute(lambda *p: x(*p[:-1], p[-1] + 1), shorter)
        return compute(lambda *p: x(*p[:-1], p[-1] + 1) + x(*p), shorter)
    if how == "flat" and rank == 2 and number:
        return compute(lambda p: x(p // number, p % number) + one, (shape[0] * number,))
    if how == "broadcast":
        return compute(lambda *p: x(*p[1:]) + one, (2, *shape))
    if how == "margin" and number:
        return compute(
            lambda *p: tirx.if_then_else(p[-1] < number, x(*p), one), (*shape[:-1], number + 3)
        )
    if how == "places" and rank > 1:
        return compute(lambda *p: tirx.Select(p[0] > p[-1], x(*p), one))
    if how == "again" and str(c.dtype) == dtype and len(c.shape) == rank and c is not x:
        same = all(str(a) == str(b) for a, b in zip(c.shape, shape, strict=True))
        return compute(lambda *p: x(*p) + (c(*p) if same else one))
    return compute(lambda *p: te.max(x(*p), tirx.const(0, dtype)))

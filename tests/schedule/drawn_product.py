"""Products of matrices drawn at random, with blocks that compute their factors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import te, tirx

from tests.schedule.draw import Draw

SUMS = {"float16": "float32", "bfloat16": "float32", "float32": "float32", "int8": "int32"}


def drawn_product(draw: Draw) -> Any:
    """The tensor `C`, a product."""
    form = draw.one_of(
        "matrices", "matrices", "matrices", "matrices", "vector", "itself", "convolution",
        "several sums", "batches", "batches",
    )  # fmt: skip
    dtype = draw.one_of(*draw.types)
    sum_type = SUMS[dtype]
    if dtype in ("float16", "bfloat16") and draw.chance(0.1) and not draw.extents:
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
    chosen = draw.argument("places_B", (z,), "int32") if own[1] and draw.chance(0.4) else None
    r = _sum_over(k)

    def element(z: Any, i: Any, j: Any) -> Any:
        left = a[z, i, r] if own[0] else a[i, r]
        right = b[z if chosen is None else chosen[z], r, j] if own[1] else b[r, j]
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

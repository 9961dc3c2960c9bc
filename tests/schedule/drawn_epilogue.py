"""Element-wise blocks after a product, drawn at random."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import te, tirx

from tests.schedule.draw import Draw


def drawn_epilogue(draw: Draw, c: Any) -> tuple[list[Any], bool]:
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

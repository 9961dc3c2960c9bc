"""Loops and blocks of a function that is built: each is written where what it holds is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TypeVar

from tvm.script.ir_builder import IRBuilder
from tvm.script.ir_builder import tirx as script
from tvm.tirx import Expr, PrimFunc

from mfmadsl.passes.tir.expression import loads_of

Named = TypeVar("Named")


def named(name: str, value: Named) -> Named:
    """A buffer or variable, with a name in the function."""
    IRBuilder.name(name, value)
    return value


def held(name: str, value: Expr) -> Expr:
    """A value that is read of memory, once; another stays as it is."""
    return named(name, script.bind(value)) if loads_of(value) else value


@contextmanager
def bound(extent: Expr | int, tag: str, name: str) -> Iterator[Expr]:
    """A loop over threads or workgroups."""
    with script.thread_binding(0, extent, tag) as loop:
        yield named(name, loop)


def loops(*extents: Expr | int) -> Iterator[tuple[Expr, ...]]:
    """Loops around what stands in a `for` statement, which runs once."""
    with ExitStack() as stack:
        yield tuple(stack.enter_context(script.serial(0, extent)) for extent in extents)


@contextmanager
def block(
    name: str, outer: Sequence[tuple[Expr | int, Expr]], shape: Sequence[int], summed: bool = False
) -> Iterator[tuple[list[Expr], list[Expr]]]:
    """A block at places of `outer` axes, (extent, value), in loops over a tile of a shape.

    Gives these axes, and those of the tile, of which the last may be summed over.
    """
    for inner in loops(*shape):
        with script.sblock(name):
            places = [script.axis.spatial(extent, value) for extent, value in outer]
            kinds = [script.axis.spatial] * len(shape)
            if summed:
                kinds[-1] = script.axis.reduce
            own = zip(kinds, shape, inner, strict=True)
            yield places, [axis(extent, loop) for axis, extent, loop in own]


@contextmanager
def function_like(source: PrimFunc) -> Iterator[IRBuilder]:
    """A function with the name, the attributes and the parameters of another; the builder has it
    once its body is written."""
    with IRBuilder() as builder, script.prim_func(s_tir=True):
        script.func_name(str(source.attrs.get("global_symbol", "main")) if source.attrs else "main")
        script.func_attr(dict(source.attrs or {}))
        for parameter in source.params:
            script.arg(parameter.name, parameter)
        yield builder

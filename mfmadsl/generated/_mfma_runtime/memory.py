"""Pairs that fill, load and store the registers of an operand.

Written by `mfmadsl compile` beside the modules that it generates.
"""

# mypy: disable-error-code="untyped-decorator,no-any-return"
# ruff: noqa: N806, N812 (buffers are called like matrices, and TVMScript `T`)

from collections.abc import Callable, Sequence
from typing import Any

from tvm import tirx
from tvm.script import tirx as T

from .block import block_axes, unknown_strides, whole
from .operand import Operand
from .registration import Pair


def fill(operand: Operand) -> Callable[[], Pair]:
    """What makes the pair that zeroes the accumulator."""

    def make() -> Pair:
        dtype, shape, registers, slot = operand

        @T.prim_func(s_tir=True)
        def desc(c: T.handle) -> None:
            C = T.match_buffer(c, registers, dtype, offset_factor=1, scope="warp")
            with T.sblock("root"):
                T.reads()
                T.writes(whole(C))
                for loops in T.grid(*shape):
                    with T.sblock("fill"):
                        at = T.meta_var(block_axes(shape, loops, "vblock", "vi", "vj"))
                        lane, register = T.meta_var(slot(*at))
                        T.reads()
                        T.writes(C[lane, register])
                        C[lane, register] = tirx.const(0, dtype)

        @T.prim_func(s_tir=True)
        def impl(c: T.handle) -> None:
            C = T.match_buffer(c, registers, dtype, offset_factor=1, scope="warp")
            with T.sblock("root"):
                T.reads()
                T.writes(whole(C))
                lane = T.env_thread("threadIdx.x")
                T.launch_thread(lane, registers[0])
                for register in T.serial(0, registers[1]):
                    C[lane, register] = tirx.const(0, dtype)

        return desc, impl

    return make


def load(
    operand: Operand, element: Callable[..., Any], transposed: bool = False
) -> Callable[[str], Pair]:
    """What makes the pair that loads a tile from memory of a scope into registers.

    `element` is what of memory a lane takes for an element of its registers; transposed, memory
    holds columns of rows.
    """

    def make(scope: str) -> Pair:
        dtype, shape, registers, slot = operand
        if transposed:
            shape, slot = _turned(shape), lambda *at: operand.slot(*_turned(at))

        @T.prim_func(s_tir=True)
        def desc(held: T.handle, memory: T.handle) -> None:
            M = T.match_buffer(memory, shape, dtype, offset_factor=1, scope=scope)
            R = T.match_buffer(held, registers, dtype, offset_factor=1, scope="warp")
            with T.sblock("root"):
                T.reads(whole(M))
                T.writes(whole(R))
                for loops in T.grid(*shape):
                    with T.sblock("load"):
                        at = T.meta_var(block_axes(shape, loops, "vblock", "vrow", "vcolumn"))
                        lane, register = T.meta_var(slot(*at))
                        T.reads(M[at])
                        T.writes(R[lane, register])
                        R[lane, register] = M[at]

        @T.prim_func(s_tir=True)
        def impl(held: T.handle, memory: T.handle) -> None:
            strides = T.meta_var(unknown_strides(shape))
            M = T.match_buffer(memory, shape, dtype, offset_factor=1, scope=scope, strides=strides)
            R = T.match_buffer(held, registers, dtype, offset_factor=1, scope="warp")
            with T.sblock("root"):
                T.reads(whole(M))
                T.writes(whole(R))
                lane = T.env_thread("threadIdx.x")
                T.launch_thread(lane, registers[0])
                for register in T.serial(0, registers[1]):
                    R[lane, register] = element(M, lane, register)

        return desc, impl

    return make


def store(operand: Operand, element: Callable[..., Any]) -> Callable[[str], Pair]:
    """What makes the pair that stores the accumulator in memory of a scope.

    `element` is what of memory a lane writes from an element of its registers.
    """

    def make(scope: str) -> Pair:
        dtype, shape, registers, slot = operand

        @T.prim_func(s_tir=True)
        def desc(held: T.handle, memory: T.handle) -> None:
            R = T.match_buffer(held, registers, dtype, offset_factor=1, scope="warp")
            M = T.match_buffer(memory, shape, dtype, offset_factor=1, scope=scope)
            with T.sblock("root"):
                T.reads(whole(R))
                T.writes(whole(M))
                for loops in T.grid(*shape):
                    with T.sblock("store"):
                        at = T.meta_var(block_axes(shape, loops, "vblock", "vi", "vj"))
                        lane, register = T.meta_var(slot(*at))
                        T.reads(R[lane, register])
                        T.writes(M[at])
                        M[at] = R[lane, register]

        @T.prim_func(s_tir=True)
        def impl(held: T.handle, memory: T.handle) -> None:
            strides = T.meta_var(unknown_strides(shape))
            R = T.match_buffer(held, registers, dtype, offset_factor=1, scope="warp")
            M = T.match_buffer(memory, shape, dtype, offset_factor=1, scope=scope, strides=strides)
            with T.sblock("root"):
                T.reads(whole(R))
                T.writes(whole(M))
                lane = T.env_thread("threadIdx.x")
                T.launch_thread(lane, registers[0])
                for register in T.serial(0, registers[1]):
                    T.buffer_store(M, R[lane, register], element(M, lane, register).indices)

        return desc, impl

    return make


def _turned(shape: Sequence[Any]) -> tuple[Any, ...]:
    *blocks, rows, columns = shape
    return *blocks, columns, rows

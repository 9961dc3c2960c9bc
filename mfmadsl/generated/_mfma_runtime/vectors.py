"""Registers of a CPU: sums that are zeroed, what is broadcast, and the tile registers of AMX.

Written by `mfmadsl compile` beside the modules that it generates.
"""

# mypy: disable-error-code="untyped-decorator,no-any-return"
# ruff: noqa: N806, N812 (buffers are called like matrices, and TVMScript `T`)

from collections.abc import Callable
from typing import Any

from tvm import DataType, tirx
from tvm.script import tirx as T

from .block import block_axes, whole
from .operand import Index, Operand
from .registration import Pair

TILE_SHAPES = 64
"""Bytes that say how many rows tile registers have, and how long they are."""

_TILES, _ROWS, _ROW_BYTES = 8, 16, 64
_LENGTHS, _HEIGHTS = 16, 48  # where those of each tile begin, in two bytes and in one


def fill_vectors(operand: Operand) -> Callable[[], Pair]:
    """What makes the pair that zeroes the sums in a buffer of registers and their elements."""

    def make() -> Pair:
        dtype, shape, registers, slot = operand
        count, elements = registers

        @T.prim_func(s_tir=True)
        def desc(c: T.handle) -> None:
            C = T.match_buffer(c, registers, dtype, offset_factor=1)
            with T.sblock("root"):
                T.reads()
                T.writes(whole(C))
                for loops in T.grid(*shape):
                    with T.sblock("fill"):
                        at = T.meta_var(block_axes(shape, loops, "vi", "vj"))
                        register, element = T.meta_var(slot(*at))
                        T.reads()
                        T.writes(C[register, element])
                        C[register, element] = tirx.const(0, dtype)

        @T.prim_func(s_tir=True)
        def impl(c: T.handle) -> None:
            stride = T.int32()
            C = T.match_buffer(c, registers, dtype, offset_factor=1, strides=[stride, 1])
            with T.sblock("root"):
                T.reads()
                T.writes(whole(C))
                for register in T.unroll(count):
                    C[register, T.ramp(0, 1, elements)] = T.Broadcast(
                        tirx.const(0, dtype), elements
                    )

        return desc, impl

    return make


def repeated(buffer: Any, register: Index, times: int) -> Any:
    """A vector that holds the elements of a row of the buffer again and again."""
    count = int(buffer.shape[1])
    if count == 1:
        return T.Broadcast(buffer[register, 0], times)
    held = buffer[register, T.ramp(0, 1, count)]
    word = T.reinterpret(f"int{count * DataType(buffer.dtype).bits}", held)
    return T.reinterpret(f"{buffer.dtype}x{count * times}", T.Broadcast(word, times))


def tile_shapes(byte: Index) -> Any:
    """A byte of the shapes: every tile register has 16 rows of 64 bytes."""
    low = (byte - _LENGTHS) % 2 == 0
    length = tirx.all(byte >= _LENGTHS, byte < _LENGTHS + 2 * _TILES, low)
    height = tirx.all(byte >= _HEIGHTS, byte < _HEIGHTS + _TILES)
    first, none = _number(1), _number(0)
    sizes = tirx.Select(length, _number(_ROW_BYTES), tirx.Select(height, _number(_ROWS), none))
    return tirx.Select(byte == 0, first, sizes)


def set_tile_shapes(shapes: Any) -> Any:
    """Configure the tile registers by a 64-byte table."""
    return _call("llvm.x86.ldtilecfg", T.address_of(shapes[0]))


def load_tile(tile: int, buffer: Any, row: int, stride: Any) -> Any:
    """Rows `row` and on become those of a tile register; `stride` counts elements."""
    where, step = T.address_of(buffer[row, 0]), _bytes(buffer, stride)
    return _call("llvm.x86.tileloadd64", _number(tile), where, step)


def store_tile(tile: int, buffer: Any, row: int, stride: Any) -> Any:
    """Store a tile register, row by row."""
    where, step = T.address_of(buffer[row, 0]), _bytes(buffer, stride)
    return _call("llvm.x86.tilestored64", _number(tile), where, step)


def multiply_tiles(intrinsic: str, c: int, a: int, b: int) -> Any:
    """C += A x B of tile registers."""
    return _call(intrinsic, _number(c), _number(a), _number(b))


def release_tiles() -> Any:
    """Give the tile registers back."""
    return _call("llvm.x86.tilerelease")


def _call(intrinsic: str, *arguments: Any) -> Any:
    return T.call_llvm_intrin("", T.llvm_lookup_intrinsic_id(intrinsic), *arguments)


def _number(value: int) -> Any:
    return tirx.const(value, "uint8")


def _bytes(buffer: Any, stride: Any) -> Any:
    return tirx.Cast("int64", stride) * (DataType(buffer.dtype).bits // 8)

"""The few words in which kernels are written: TVM's IR builder, for one lane at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import tvm
from tvm import tirx
from tvm.script.ir_builder import IRBuilder
from tvm.tirx.script.builder import ir as T

from mfmadsl.model.architecture import WAVE_SIZE

KINDS = {1: "i8", 2: "i16", 4: "i32", 8: "v2i32", 16: "v4i32"}
"""What the device functions for buffers are called, by the bytes that they move."""


@dataclass(frozen=True)
class Piece:
    """Statements that are not written yet, so that a schedule can put them in their place; `cost`
    is the number of machine instructions that they become."""

    write: Callable[[], None]
    cost: int = 1


def piece(write: Callable[..., None], *arguments: Any, cost: int = 1) -> Piece:
    """What calling `write` with these arguments emits."""
    return Piece(partial(write, *arguments), cost)


def let(name: str, value: Any) -> Any:
    """A value computed once."""
    if isinstance(value, int | tirx.IntImm | tirx.Var):
        return value
    variable = T.bind(value)
    IRBuilder.name(name, variable)
    return variable


def local(name: str, length: int, dtype: str) -> Any:
    """Registers of a lane; those that are used together should be one array."""
    return _named(name, T.sblock_alloc_buffer((length,), dtype, scope="local"))


def shared(name: str, length: int, dtype: str) -> Any:
    """Memory of a workgroup."""
    return _named(name, T.sblock_alloc_buffer((length,), dtype, scope="shared"))


def workspace(name: str, length: Any, dtype: str) -> Any:
    """Memory of all workgroups, of all launches."""
    return _named(name, T.sblock_alloc_buffer((length,), dtype, scope="global"))


def _named(name: str, buffer: Any) -> Any:
    IRBuilder.name(name, buffer)
    return buffer


def vector(index: Any, length: int) -> Any:
    """`length` consecutive indices."""
    return index if length == 1 else T.ramp(index, 1, length)


def load(buffer: Any, index: Any, length: int = 1) -> Any:
    return buffer[vector(index, length)]


def store(buffer: Any, value: Any, index: Any, length: int = 1) -> None:
    T.buffer_store(buffer, value, [vector(index, length)])


def of_length(dtype: str, length: int) -> str:
    return dtype if length == 1 else f"{dtype}x{length}"


def bytes_of(dtype: str) -> int:
    """Of one element."""
    return int(tvm.DataType(dtype).bits) // 8


def reinterpret(value: Any, dtype: str) -> Any:
    """The same bits."""
    return T.reinterpret(dtype, value)


def device(dtype: str, name: str, *arguments: Any) -> Any:
    """A call of one of the functions in `target/device_functions.ll`."""
    return T.call_extern(dtype, f"mfmadsl.{name}", *arguments)


def intrinsic(dtype: str, name: str, *arguments: Any) -> Any:
    return T.call_llvm_pure_intrin(dtype, name, *arguments)


def evaluate(expression: Any) -> None:
    T.evaluate(expression)


def barrier() -> None:
    """All waves of the workgroup, and what they have written to the LDS."""
    evaluate(T.call_llvm_intrin("void", "llvm.amdgcn.s.barrier"))


def keep_order() -> None:
    """LLVM's scheduler moves nothing across this."""
    evaluate(T.call_llvm_intrin("void", "llvm.amdgcn.sched.barrier", T.int32(0)))


def wait_for_lds() -> None:
    """All LDS accesses of this wave are done: one wait where LLVM would put one before each use."""
    _wait(0xC07F)


def wait_for_memory() -> None:
    """All loads from memory of this wave are done."""
    _wait(0x0F70)


def _wait(counters: int) -> None:
    # The fields of the immediate: CDNA3 ISA, section 4.4; one that is all ones does not wait.
    evaluate(T.call_llvm_intrin("void", "llvm.amdgcn.s.waitcnt", T.int32(counters)))


def uniform(value: Any) -> Any:
    """A value that is the same in all lanes, in a scalar register."""
    return T.call_llvm_intrin("int32", "llvm.amdgcn.readfirstlane", value)


def select(condition: Any, yes: Any, no: Any) -> Any:
    return T.Select(condition, yes, no)


def wide(value: Any) -> Any:
    return T.int64(value) if isinstance(value, int) else T.cast(value, "int64")


def narrow(value: Any) -> Any:
    return value if isinstance(value, int) else T.cast(value, "int32")


@contextmanager
def repeat(name: str, times: Any) -> Iterator[Any]:
    """A loop that stays one."""
    with T.serial(0, times) as variable:
        IRBuilder.name(name, variable)
        yield variable


@dataclass(frozen=True)
class Launch:
    """One kernel: `body` takes the workgroup, the wave and the lane."""

    grid: tuple[Any, Any, Any]
    waves: int
    body: Callable[[tuple[Any, ...], Any, Any], None]


def function(parameters: Sequence[Any], launches: Callable[[], Sequence[Launch]]) -> tirx.PrimFunc:
    """A function of these parameters that launches kernels, one after another.

    `launches` is called where they may allocate memory that they share. Barriers, widths and the
    layout of memory are as written: `target` leaves them alone.
    """
    with IRBuilder() as builder, T.prim_func(s_tir=True):
        T.func_name("main")
        with T.sblock("root"):
            T.reads()
            T.writes()
            for launch in launches():
                _emit_launch(launch)
    written = builder.get()
    attributes = {"global_symbol": "main", "tirx.noalias": True, "mfmadsl.as_written": True}
    return tirx.PrimFunc(list(parameters), written.body, written.ret_type).with_attr(attributes)


def _emit_launch(launch: Launch) -> None:
    with (
        T.launch_thread("blockIdx.x", launch.grid[0]) as x,
        T.launch_thread("blockIdx.y", launch.grid[1]) as y,
        T.launch_thread("blockIdx.z", launch.grid[2]) as z,
        T.launch_thread("threadIdx.y", launch.waves) as wave,
        T.launch_thread("threadIdx.x", WAVE_SIZE) as lane,
        T.sblock("gemm"),
    ):
        T.reads()
        T.writes()
        launch.body((x, y, z), let("wave", uniform(wave)), lane)


def least(a: Any, b: Any) -> Any:
    return min(a, b) if isinstance(a, int) and isinstance(b, int) else T.min(a, b)


def most(a: Any, b: Any) -> Any:
    return max(a, b) if isinstance(a, int) and isinstance(b, int) else T.max(a, b)

"""What `build_for_cpu` returns: a function for arrays of this machine, and its code as text."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import tvm_ffi

from mfmadsl.backend.argument import Argument
from mfmadsl.error import ArgumentError, ArgumentTypeError

_Array = npt.NDArray[Any]
_THREAD = threading.local()


@dataclass(frozen=True)
class CpuKernel:
    """Machine code for one CPU, which is called with arrays.

    `arguments` are what a call takes, in their order, those in `outputs` are written. `cpu` is the
    name that LLVM has for what the code is for.
    """

    symbol: str
    cpu: str
    llvm_ir: str = field(repr=False)
    assembly: str = field(repr=False)
    arguments: tuple[Argument, ...]
    outputs: frozenset[str]
    run: Callable[..., object] | None = field(repr=False)

    def __call__(self, *arrays: object) -> None:
        """Run it on arrays of NumPy, or on any that DLPack hands on without a copy.

        Raises ArgumentError for another number of arrays, another shape or type, elements that do
        not lie one after another, an output that shares memory with another argument or cannot be
        written, and where the code is for another CPU than this machine's; ArgumentTypeError for
        what is no array.
        """
        if self.run is None:
            raise ArgumentError(f"{self.symbol}: is code for {self.cpu}, which this CPU cannot run")
        run = self.run
        if self._shared and not hasattr(_THREAD, "has_workers"):
            run = _keeping_cores(run)
        # The code checks all the rest, and fast; saying what is wrong takes longer.
        if self._lie_well(arrays):
            try:
                run(*arrays)
                return
            except (TypeError, ValueError, BufferError):
                pass
        run(*map(_handed_on, self._checked(arrays)))

    def _lie_well(self, arrays: Sequence[object]) -> bool:
        """Whether these are arrays of NumPy that begin with an element, and no output shares memory
        with another of them."""
        for array in arrays:
            if type(array) is not np.ndarray or not array.flags.aligned:
                return False
        if len(arrays) != len(self.arguments):
            return False
        return all(not np.may_share_memory(arrays[i], arrays[j]) for i, j in self._pairs)

    @cached_property
    def _shared(self) -> bool:
        """Whether TVM's workers share the work."""
        return "TVMBackendParallelLaunch" in self.llvm_ir

    @cached_property
    def _pairs(self) -> tuple[tuple[int, int], ...]:
        """The places of an output and of another argument."""
        numbered = list(enumerate(self.arguments))
        return tuple(
            (i, j) for i, a in numbered if a.name in self.outputs for j, _ in numbered if i != j
        )

    def _checked(self, arrays: Sequence[object]) -> list[_Array]:
        """The arrays, if they are what the arguments are."""
        if len(arrays) != len(self.arguments):
            names = ", ".join(argument.name for argument in self.arguments)
            raise ArgumentError(f"{self.symbol}: takes {names}, not {len(arrays)} arrays")
        given = [
            _checked(argument, array, argument.name in self.outputs)
            for argument, array in zip(self.arguments, arrays, strict=True)
        ]
        for i, j in self._pairs:
            if np.may_share_memory(given[i], given[j]):
                raise ArgumentError(
                    f"{self.arguments[i].name}: is an output and shares memory with"
                    f" {self.arguments[j].name}: give it an array of its own"
                )
        return given


def _keeping_cores(run: Callable[..., object]) -> Callable[..., object]:
    """A function's first call in a thread, which leaves the thread the cores that it had.

    TVM makes the workers of a thread then, and binds it to one core where it takes the cores for
    unequal: whatever else the thread does, and starts, would share that one.
    """
    if not hasattr(os, "sched_getaffinity"):
        return run

    def first(*arguments: object) -> None:
        cores = os.sched_getaffinity(0)
        try:
            run(*arguments)
        finally:
            if os.sched_getaffinity(0) != cores:
                os.sched_setaffinity(0, cores)
        _THREAD.has_workers = True

    return first


def _checked(argument: Argument, value: object, written: bool) -> _Array:
    """The array that a value is, if it is one for the argument."""
    array = _array(argument.name, value)
    if array.dtype.name != argument.dtype or not array.dtype.isnative:
        raise ArgumentError(f"{argument.name}: has elements of {array.dtype}, not {argument.dtype}")
    if array.shape != argument.shape:
        raise ArgumentError(f"{argument.name}: has shape {array.shape}, not {argument.shape}")
    if not array.flags.c_contiguous:
        raise ArgumentError(
            f"{argument.name}: its elements must lie one after another, but it has strides of"
            f" {array.strides} bytes: np.ascontiguousarray makes a copy that does"
        )
    if not array.flags.aligned:
        raise ArgumentError(f"{argument.name}: begins in the middle of an element: copy it")
    if written and not array.flags.writeable:
        raise ArgumentError(f"{argument.name}: is an output, but the array is read-only")
    return array


def _array(name: str, value: object) -> _Array:
    if isinstance(value, np.ndarray):
        return value
    try:
        return np.from_dlpack(value)  # type: ignore[arg-type]
    except (AttributeError, TypeError, BufferError, RuntimeError, ValueError) as error:
        raise ArgumentTypeError(f"{name}: is no array of this machine's memory: {error}") from None


def _handed_on(array: _Array) -> object:
    """The same memory, as the code takes it.

    NumPy's DLPack hands on nothing that is read-only, and no types but its own.
    """
    if not array.flags.writeable:
        memory = (ctypes.c_char * array.nbytes).from_address(array.ctypes.data)
        array = np.ndarray(array.shape, array.dtype, memoryview(memory))
    if array.dtype.kind != "V":
        return array
    bits = tvm_ffi.from_dlpack(array.view(f"u{array.itemsize}"), require_alignment=0)
    return bits._create_view(array.shape, array.dtype.name)

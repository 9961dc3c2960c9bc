"""`target.build.rocm`: kernels that our pipeline has lowered become one code object of ours.

It is handed to TVM's own builder where that would link its own, so that it ends up in a module of
kind `hip`, which TVM's ROCm runtime loads: there and then, or from an exported library.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import tvm
import tvm_ffi
from tvm.target import Target

from mfmadsl.backend.gpu.linker import link, linked
from mfmadsl.backend.gpu.llvm import emit_object
from mfmadsl.backend.isolate import run_isolated
from mfmadsl.passes import LoweringError
from mfmadsl.relax.lowering import LLVM_IR, PIPELINE

SCHEDULED = "mfmadsl.scheduled"
"""The attribute of a module that we scheduled: TVM's own lowering would spoil it."""

_BUILD = "target.build.rocm"
_lock = threading.Lock()  # of the names that TVM's builder calls


def code_object_of(module: tvm.IRModule, arch: str) -> bytes:
    """The code object of lowered kernels: one, since a runtime reads the metadata of but one.

    Raises LinkError where there is no linker, or it refuses.
    """
    kernels = [str(function.attrs[LLVM_IR]) for function in module.functions.values()]
    return linked(link(run_isolated(lambda: emit_object(kernels, arch))))


def build_module(
    module: tvm.IRModule, target: Target, theirs: Callable[..., Any]
) -> tvm.runtime.Module:
    """The runtime module of kernels for ROCm; `theirs` builds those that others have lowered.

    Raises LoweringError if we have scheduled them and others have lowered them, and LinkError.
    """
    if not any(LLVM_IR in function.attrs for function in module.functions.values()):
        if SCHEDULED in (module.attrs or {}):
            raise LoweringError(
                f'the module is scheduled by relax_pipeline="{PIPELINE}": say'
                f' tir_pipeline="{PIPELINE}", too'
            )
        return theirs(module, target)
    code_object = code_object_of(module, str(target.attrs["mcpu"]))
    answers: dict[str, Callable[..., Any]] = {
        "tvm_callback_rocm_link": lambda _: bytearray(code_object),
        "tvm_callback_rocm_bitcode_path": list,
    }
    with answered_here(answers):
        return theirs(module, target)


@contextmanager
def answered_here(answers: Mapping[str, Callable[..., Any]]) -> Iterator[None]:
    """What this thread asks by these names is answered so; others get the answers that they would
    have got, and so does this thread afterwards."""
    here = threading.get_ident()
    with _lock:
        before = {name: tvm.get_global_func(name, allow_missing=True) for name in answers}
        try:
            for name, answer in answers.items():
                own = _of_thread(here, answer, before[name])
                tvm.register_global_func(name, own, override=True)
            yield
        finally:
            for name, theirs in before.items():
                if theirs is None:
                    tvm_ffi.registry.remove_global_func(name)
                else:
                    tvm.register_global_func(name, theirs, override=True)


def _of_thread(
    thread: int, answer: Callable[..., Any], other: Callable[..., Any] | None
) -> Callable[..., Any]:
    def answered(*arguments: Any) -> Any:
        if threading.get_ident() == thread or other is None:
            return answer(*arguments)
        return other(*arguments)

    return answered


def _register() -> None:
    theirs = tvm.get_global_func(_BUILD)

    def build_rocm(module: tvm.IRModule, target: Target) -> tvm.runtime.Module:
        return build_module(module, target, theirs)

    tvm.register_global_func(_BUILD, build_rocm, override=True)


_register()

"""TVM's names for GPUs of AMD, which load the runtime when TVM first asks for one of them.

`import tvm` calls `autoload` at its end. It costs nothing without a GPU: nothing is compiled or
loaded then.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import tvm_ffi

from mfmadsl.environment.compilers import find_compilers
from mfmadsl.environment.hip import hip_is_there, hip_libraries
from mfmadsl.error import ArgumentError
from mfmadsl.runtime.compile import compiled_library, kept_library
from mfmadsl.runtime.error import HipError, RuntimeBuildError

_TVM = "0.27."  # whose interfaces in C++ the runtime knows
_DEVICES = ("device_api.rocm", "device_api.rocm_host")
_NAMES = (
    *_DEVICES,
    "runtime.timer.rocm",
    "runtime.get_rocm_stream",
    "ffi.Module.load_from_bytes.hip",
    "ffi.Module.load_from_bytes.hsaco",
)
_CHIP = "tvm_callback_rocm_get_arch"

MEASURE = "mfmadsl.measure"
"""The function that `mfmadsl tune` calls on servers of TVM's RPC: it takes a job as JSON and how
often to repeat it, and answers in JSON."""

_hidden = ContextVar("hidden", default=False)
_loading = threading.Lock()
_loaded: list[Any] = []


def autoload() -> None:
    """Make `tvm.rocm(0)` a device.

    Does nothing with another TVM than 0.27, with one that has ROCm of its own, and where there is
    neither HIP nor a way to have the runtime, so that TVM is as it was.
    """
    import tvm

    if not tvm.__version__.startswith(_TVM):
        return
    if find_compilers() or kept_library() is not None or hip_is_there():
        register()


def register() -> None:
    """Give TVM the names that load the runtime, unless it has a device for ROCm."""
    if tvm_ffi.get_global_func(_NAMES[0], allow_missing=True) is not None:
        return
    _name_errors()
    for name in _NAMES:
        tvm_ffi.register_global_func(name, _loads_first(name), override=True)
    otherwise = tvm_ffi.get_global_func(_CHIP, allow_missing=True)
    if otherwise is not None:
        tvm_ffi.register_global_func(_CHIP, _asks_the_device(otherwise), override=True)


def load() -> None:
    """Load the runtime, once; it is compiled if that has not been done.

    Raises RuntimeBuildError if that cannot be done. HIP is looked for later, when it is used.
    """
    with _loading:
        if not _loaded:
            _name_errors()
            module = _runtime()
            module.register_rocm(":".join(hip_libraries()))
            _loaded.append(module)


@contextmanager
def without_devices() -> Iterator[None]:
    """Within it this thread's TVM hears that there is no GPU.

    TVM asks for one whenever it makes a target or a kernel, to know what is stated anyway. In a
    process that was forked it must not: HIP does not survive that. Nothing is compiled for it.
    """
    runtime, token = _loaded[:1], _hidden.set(True)
    for each in runtime:
        each.hide_devices(1)
    try:
        yield
    finally:
        _hidden.reset(token)
        for each in runtime:
            each.hide_devices(-1)


def _name_errors() -> None:
    """What is raised below TVM, in C++ or by these functions, arrives as itself above it."""
    for kind in (HipError, ArgumentError, RuntimeBuildError):
        tvm_ffi.register_error(kind.__name__)(kind)


def _runtime() -> Any:
    if (kept := kept_library()) is not None:
        try:
            return tvm_ffi.load_module(str(kept))
        except RuntimeError:  # it is broken, or of another system
            pass
    with tempfile.TemporaryDirectory(prefix="mfmadsl-") as folder:
        library = compiled_library(Path(folder))
        try:
            return tvm_ffi.load_module(str(library))
        except RuntimeError as error:
            raise RuntimeBuildError(
                f"TVM's runtime for GPUs of AMD was compiled, but is not loaded: {error}"
            ) from None


def _loads_first(name: str) -> Callable[..., Any]:
    def first(*arguments: Any) -> Any:
        if name in _DEVICES and _hidden.get():
            return None  # to TVM there is no such device
        load()  # which puts its own function under the name
        return tvm_ffi.get_global_func(name)(*arguments)

    return first


def _asks_the_device(otherwise: Callable[[], str]) -> Callable[[], str]:
    """The chip of a target that names none: TVM asks the program rocminfo, or takes gfx900."""

    def chip() -> str:
        import tvm

        device = tvm.rocm(0)
        return str(device.compute_version) if device.exist else otherwise()

    return chip

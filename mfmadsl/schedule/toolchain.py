"""Refusing a TVM that is known to crash, before it does."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from mfmadsl.error import MfmadslError

_TVM = "0.27"
_FFI = "0.1.14"
_REMEDY = "pip install 'apache-tvm>=0.27,<0.28' 'apache-tvm-ffi>=0.1.14,<0.1.15'"


class ToolchainError(MfmadslError, ImportError):
    """TVM is missing, or of a version that is known to crash."""


def require_supported_tvm() -> None:
    """Raise ToolchainError unless the installed TVM and its FFI are the pair that works.

    With apache-tvm-ffi 0.1.15, which plain `pip install apache-tvm` takes, tensorizing a schedule
    ends the process with a segmentation fault.
    """
    for package, wanted in (("apache-tvm", _TVM), ("apache-tvm-ffi", _FFI)):
        try:
            found = version(package)
        except PackageNotFoundError:
            raise ToolchainError(f"mfmadsl needs {package} {wanted}: {_REMEDY}") from None
        if found != wanted and not found.startswith(f"{wanted}."):
            message = f"mfmadsl works with {package} {wanted}.x, but {found} is installed"
            raise ToolchainError(f"{message}: {_REMEDY}")

"""Refusing a TVM that is known to crash, before it does."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from mfmadsl.error import MfmadslError

_WANTED = {"apache-tvm": "0.27", "apache-tvm-ffi": "0.1.14"}
TVM_REMEDY = "pip install 'apache-tvm>=0.27,<0.28' 'apache-tvm-ffi>=0.1.14,<0.1.15'"
"""What brings the pair that works."""


class ToolchainError(MfmadslError, ImportError):
    """TVM is missing, or of a version that is known to crash."""


def require_supported_tvm() -> None:
    """Raise ToolchainError unless the installed TVM and its FFI are the pair that works.

    With apache-tvm-ffi 0.1.15, which plain `pip install apache-tvm` takes, tensorizing a schedule
    ends the process with a segmentation fault.
    """
    for package, wanted in _WANTED.items():
        try:
            found = str(version(package))
        except PackageNotFoundError:
            raise ToolchainError(f"mfmadsl needs {package} {wanted}: {TVM_REMEDY}") from None
        if found != wanted and not found.startswith(f"{wanted}."):
            message = f"mfmadsl works with {package} {wanted}.x, but {found} is installed"
            raise ToolchainError(f"{message}: {TVM_REMEDY}")

"""What stops code generation."""

from __future__ import annotations

from mfmadsl.error import MfmadslError


class CodegenError(MfmadslError, RuntimeError):
    """LLVM refused the kernel; the message is LLVM's."""

"""What goes wrong with a GPU, and before there is one."""

from __future__ import annotations

from mfmadsl.error import MfmadslError


class HipError(MfmadslError, RuntimeError):
    """HIP refused what was asked of a GPU, or there is no HIP; the message has HIP's own name."""


class RuntimeBuildError(MfmadslError, RuntimeError):
    """TVM's runtime for GPUs of AMD, or the library of the emulated GPU, cannot be compiled; the
    message says what is missing."""

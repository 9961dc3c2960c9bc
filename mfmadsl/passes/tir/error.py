"""What stops a pass: a kernel that no code can be made of, or a loop it does not understand."""

from __future__ import annotations

from dataclasses import dataclass

import tvm_ffi

from mfmadsl.error import MfmadslError


class LoweringError(MfmadslError, ValueError):
    """The module is no GPU kernel, or does not fit the chip."""


tvm_ffi.register_error(LoweringError.__name__, LoweringError)  # else TVM hands on a RuntimeError


@dataclass(frozen=True)
class NotUnderstoodError(MfmadslError):
    """A loop that a pass leaves as it is, with TVM's own barriers, and why."""

    reason: str

    def __str__(self) -> str:
        return self.reason

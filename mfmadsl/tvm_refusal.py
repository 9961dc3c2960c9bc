"""What TVM refuses, in one line and as an exception of ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mfmadsl.error import MfmadslError

_LONGEST = 300


@contextmanager
def tvm_refusal(argument: str, refusal: type[MfmadslError]) -> Iterator[None]:
    """Make exceptions that TVM itself raises inside the `with` a `refusal`, with TVM's reason.

    All others are mistakes of ours, or of the caller's functions, and pass as they are.
    """
    try:
        yield
    except MfmadslError:
        raise
    except Exception as error:
        if not hasattr(error, "__tvm_ffi_error__"):
            raise
        raise refusal(f"{argument}: TVM refuses it: {_reason(str(error))}") from error


def _reason(message: str) -> str:
    """The reason alone: TVM shows the whole module before it."""
    _, _, after = message.rpartition("Error message:")
    first = next((line.strip() for line in after.splitlines() if line.strip()), "no reason given")
    return first[:_LONGEST]

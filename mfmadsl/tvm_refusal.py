"""What TVM refuses, in one line and as an exception of ours."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from mfmadsl.error import MfmadslError

_LONGEST = 300
_UNCOVERED = "is not a stage pipeline"
_TOO_LARGE = re.compile(r"Literal value (\d+) exceeds range of int32")


@contextmanager
def tvm_refusal(argument: str, refusal: type[MfmadslError]) -> Iterator[None]:
    """Make exceptions that TVM itself raises inside the `with` a `refusal`, with their reason.

    All others are mistakes of ours, or of the caller's functions, and pass as they are.
    """
    try:
        yield
    except MfmadslError:
        raise
    except Exception as error:
        if not hasattr(error, "__tvm_ffi_error__"):
            raise
        raise refusal(f"{argument}: {_reason(str(error))}") from error


def _reason(message: str) -> str:
    """The reason alone, in words of ours if known: TVM shows the whole module before it."""
    if (large := _TOO_LARGE.search(message)) is not None:
        return (
            f"an index of the kernel may reach {large[1]}, and 2147483647 is the largest of 32 "
            "bits: make extents smaller, or give numbers for those that are not known"
        )
    if _UNCOVERED in message:
        return (
            "TVM cannot prove that its blocks compute all that others read of them: make extents"
            " numbers, symbols, or numbers times symbols, and schedule what `prepared` returns"
        )
    _, _, after = message.rpartition("Error message:")
    first = next((line.strip() for line in after.splitlines() if line.strip()), "no reason given")
    return f"TVM refuses it: {first[:_LONGEST]}"

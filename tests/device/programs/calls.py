"""Calls of hip-python, each of which has to succeed or to fail, and what of a program was wrong."""

from __future__ import annotations

from typing import Any

from hip import hip

E = hip.hipError_t
wrong: list[str] = []


def call(result: Any) -> Any:
    """What a call gives, which has to succeed."""
    error, *values = result if isinstance(result, tuple) else (result,)
    if error != E.hipSuccess:
        raise RuntimeError(f"{error!r}")
    return values[0] if len(values) == 1 else values


def check(what: str, holds: Any) -> None:
    """Note what does not hold."""
    if not holds:
        wrong.append(what)


def fails(error: Any, result: Any) -> None:
    """Note a call that ends otherwise than with an error."""
    found = result[0] if isinstance(result, tuple) else result
    check(f"{found!r}, not {error!r}", found == error)


def tell(what: str) -> None:
    """Print what was wrong, or that all is right."""
    print("\n".join(wrong) or f"all {what} are right")

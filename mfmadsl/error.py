"""The root of all exceptions of the package: what a user's mistake ends in."""

from __future__ import annotations


class MfmadslError(Exception):
    """Something that was given to mfmadsl is not right; the message says what, and how to mend it.

    Every exception of the package derives from it. See docs/errors.md for which function raises
    which.
    """


class SlowLoopWarning(UserWarning):
    """A kernel is slower than it looks: no pass understands a loop, or the chip lacks what would
    multiply its operands as they are."""


class ArgumentError(MfmadslError, ValueError):
    """An argument of a function has a value that the function does not take."""


class ArgumentTypeError(ArgumentError, TypeError):
    """An argument of a function is of a type that the function does not take."""

"""Writing a file whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from mfmadsl.error import MfmadslError


class OutputError(MfmadslError, ValueError):
    """A place that cannot be written to, and why."""


def write_file(path: Path, content: bytes, *, private: bool = False) -> None:
    """Put `content` at `path` in one step: written beside it, then renamed.

    A private file can be read by its user only. Raises OutputError if it cannot be written.
    """
    try:
        descriptor, beside = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
            if not private:
                os.chmod(beside, 0o666 & ~_umask())
            os.replace(beside, path)
        except BaseException:
            os.unlink(beside)
            raise
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror}") from None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask

"""Writing a file whole or not at all, and writing through what is no file."""

from __future__ import annotations

import errno
import os
import re
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from mfmadsl.error import MfmadslError

_MOST_LINKS = 40  # like Linux (path_resolution(7))
_DESCRIPTORS = re.compile(r"/proc/(\d+)(?:/task/\d+)?/fd")


class OutputError(MfmadslError, ValueError):
    """A place that cannot be written to, and why."""


def write_file(path: Path, content: bytes, *, private: bool = False) -> None:
    """Put `content` at `path` in one step: written beside it, then renamed.

    Symbolic links are followed, and a file that is there keeps its mode and, where the system
    lets it, its owner. A private file can be read by its user only, whatever was there. What is no
    regular file (a device, a pipe, an open descriptor such as /dev/stdout) is written through, and
    stays what it is. Raises OutputError if that cannot be done.
    """
    check_output(str(path))
    try:
        place = _followed(path)
        there = _status(place)
        process = _process_of(place)
        if process is not None or (there is not None and not stat.S_ISREG(there.st_mode)):
            with os.fdopen(_opened(place, process), "wb") as file:
                file.write(content)
        else:
            _replace(place, there, content, private)
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror}") from None


def check_output(text: str) -> None:
    """Raise OutputError for a path that no file can have."""
    name = text.rpartition("/")[2]
    if not text:
        raise OutputError("the name of the file to write is empty")
    if not name or name in (".", ".."):
        raise OutputError(f"{text}: cannot be written: it names a folder, not a file")
    if "\0" in text:
        raise OutputError(f"{text!r}: cannot be written: no file has such a name")


def _replace(place: Path, there: os.stat_result | None, content: bytes, private: bool) -> None:
    """Write a regular file beside the one that is there, and rename it."""
    if there is not None and not os.access(place, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    # A fixed length: the name itself may be as long as a name can be.
    descriptor, beside = tempfile.mkstemp(prefix=".mfmadsl-", dir=place.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        if there is not None and not private:
            with suppress(PermissionError):
                os.chown(beside, there.st_uid, there.st_gid)
            os.chmod(beside, stat.S_IMODE(there.st_mode))
        elif not private:
            os.chmod(beside, 0o666 & ~_umask())
        os.replace(beside, place)
    except BaseException:
        os.unlink(beside)
        raise


def _followed(path: Path) -> Path:
    """Where the links of `path` lead, which need not be there; the last may be a descriptor."""
    for _ in range(_MOST_LINKS):
        if _process_of(path) is not None or not path.is_symlink():
            return path
        path = path.parent / os.readlink(path)
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def _status(place: Path) -> os.stat_result | None:
    try:
        return place.stat()
    except FileNotFoundError:
        return None


def _process_of(path: Path) -> int | None:
    """Whose open file a path is, if it is one of the links that Linux shows for those."""
    found = _DESCRIPTORS.fullmatch(os.path.realpath(path.parent))
    return int(found[1]) if found and path.name.isdigit() else None


def _opened(place: Path, process: int | None) -> int:
    """A descriptor to write through. Of our own open files a copy: opened anew they would be
    emptied, and written from the start."""
    if process == os.getpid():
        return os.dup(int(place.name))
    # Without O_CREAT: what is gone by now is not to become a file.
    return os.open(place, os.O_WRONLY | os.O_TRUNC | os.O_NOCTTY)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask

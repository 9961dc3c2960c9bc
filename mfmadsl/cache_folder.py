"""Where files lie that are kept between processes: they cost time when they are lost, no more."""

from __future__ import annotations

import os
from pathlib import Path

from mfmadsl.output import OutputError, write_file

_NOWHERE = Path(os.devnull, "mfmadsl")  # nobody can make a folder there, nor keep a file


def cache_folder() -> Path:
    """Where the XDG specification wants it; MFMADSL_CACHE names another."""
    if own := os.environ.get("MFMADSL_CACHE"):
        return Path(own)
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base) / "mfmadsl"
    try:
        return Path.home() / ".cache" / "mfmadsl"
    except RuntimeError:  # the user has no home
        return _NOWHERE


def only_ours(status: os.stat_result) -> bool:
    """Whether a file is this user's, and nobody else could write it: it may run as code then."""
    return status.st_uid == os.geteuid() and not status.st_mode & 0o022


def may_run(path: Path) -> bool:
    """Whether there is a file, and it is `only_ours`."""
    try:
        return only_ours(path.stat())
    except OSError:
        return False


def keep(path: Path, content: bytes, siblings: str, most: int) -> None:
    """Write a file of the cache and remove the oldest of its siblings, a pattern, beyond `most`.

    Where that is not possible nothing happens: the file is made again the next time.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_file(path, content, private=True)
        stale = sorted(path.parent.glob(siblings), key=lambda each: each.stat().st_mtime)
        for old in stale[:-most]:
            old.unlink(missing_ok=True)
    except (OSError, OutputError):
        return

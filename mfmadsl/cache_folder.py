"""Where files lie that are kept between processes: they cost time when they are lost, no more."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """Where the XDG specification wants it; MFMADSL_CACHE names another."""
    if own := os.environ.get("MFMADSL_CACHE"):
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "mfmadsl"


def only_ours(status: os.stat_result) -> bool:
    """Whether a file is this user's, and nobody else could write it: it may run as code then."""
    return status.st_uid == os.geteuid() and not status.st_mode & 0o022

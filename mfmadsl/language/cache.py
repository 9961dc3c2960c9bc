"""What takes long to make and never changes, kept between processes: the library, the parser.

A cache is a file of the user's, named by a digest of all that it was made from. One that is
missing, cannot be written, or is not the user's own costs time and nothing else.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from mfmadsl.cache_folder import cache_folder, keep, only_ours

_KEPT = 8  # older caches than these are removed

Value = TypeVar("Value")


def cached(kind: str, sources: Sequence[Path], make: Callable[[], Value]) -> Value:
    """`make()`, or what it gave when the files of `sources` were last the same; never None."""
    path = cache_folder() / f"{kind}-{_digest(sources)}.pickle"
    found: Value | None = _read(path)
    if found is None:
        found = make()
        keep(path, pickle.dumps(found), f"{kind}-*.pickle", _KEPT)
    return found


def _digest(sources: Sequence[Path]) -> str:
    """A digest of the texts, of the code that reads them, and of the Python that pickles."""
    package = Path(__file__).parent.parent
    code = sorted([*package.glob("language/*.py"), *package.glob("model/*.py")])
    digest = hashlib.sha256(sys.version.encode())
    for path in (*sources, *code):
        digest.update(str(path).encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:32]


def _read(path: Path) -> Any:
    """A pickle can run code when it is read: only files that nobody else could write are."""
    try:
        with path.open("rb") as file:
            if not only_ours(os.fstat(file.fileno())):
                return None
            return pickle.load(file)
    except Exception:  # whatever is wrong with it: it is made anew
        return None

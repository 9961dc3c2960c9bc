"""The folders that travel with the package: `grammars/`, `intrinsics/`, and of `docs/` one page.

They lie at the top of the repository, where a reader looks first. A wheel carries them inside
the package; an editable install finds them beside it.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path


def resource_folder(name: str) -> Path:
    """The folder `name` of the installed package, else of the checkout it runs from."""
    package = Path(str(files("mfmadsl")))
    packaged = package / name
    return packaged if packaged.is_dir() else package.parent / name

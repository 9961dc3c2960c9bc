"""Writing generated modules: whole or not at all, and never over somebody else's file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from mfmadsl.codegen.module import MARKER
from mfmadsl.output import OutputError, write_file

_PACKAGE = f'''"""Matrix-core intrinsics for TVM: each module is imported when it is first used.

{MARKER}
"""

from importlib import import_module
from pkgutil import iter_modules


def __getattr__(name):
    if name not in __dir__():
        raise AttributeError(f"module {{__name__!r}} has no attribute {{name!r}}")
    return import_module(f"{{__name__}}.{{name}}")


def __dir__():
    return [module.name for module in iter_modules(__path__)]
'''


def write_modules(texts: Mapping[str, str], folder: Path) -> list[Path]:
    """Write each text to `folder/NAME.py`, making the folder if need be; the paths.

    The folder becomes a package that imports its modules on demand, unless it has an `__init__.py`
    of its own, which stays. Raises OutputError, before anything is written, if a module there is
    not one of ours.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:  # a zero byte in a name is a ValueError
        reason = getattr(error, "strerror", None) or str(error)
        raise OutputError(f"{folder}: cannot be made a folder: {reason}") from None
    paths = {folder / f"{name}.py": text for name, text in texts.items()}
    for path in paths:
        _refuse_foreign(path)
    for path, text in paths.items():
        write_file(path, text.encode("utf-8"))
    package = folder / "__init__.py"
    if not package.exists() and not package.is_symlink():
        write_file(package, _PACKAGE.encode("utf-8"))
    return list(paths)


def _refuse_foreign(path: Path) -> None:
    if not path.exists() and not path.is_symlink():
        return
    try:
        # A pipe would wait for somebody to write, and a device may never end.
        ours = path.is_file() and MARKER.encode() in path.read_bytes()
    except OSError:
        ours = False
    if not ours:
        raise OutputError(
            f"{path}: exists and was not written by mfmadsl; move it or choose another folder"
        )

"""Writing generated modules: whole or not at all, and never over somebody else's file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from mfmadsl.codegen.package import package_text
from mfmadsl.codegen.render import MARKER
from mfmadsl.codegen.runtime import RUNTIME, RUNTIME_MARKER, runtime_texts
from mfmadsl.output import OutputError, write_file


def write_modules(texts: Mapping[str, str], folder: Path) -> list[Path]:
    """Write each text to `folder/NAME.py`, making the folder if need be; the paths.

    The folder of the runtime that they share is written beside them. The folder becomes a package
    that imports on demand all modules of ours that lie there, unless it has an `__init__.py` of its
    own, which stays. Raises OutputError, before any file is written, if a module there, or a file
    that has the name of one of the runtime's, is not one of ours.
    """
    _make_folder(folder)
    paths = {folder / f"{name}.py": text for name, text in texts.items()}
    runtime = {folder / RUNTIME / name: text for name, text in runtime_texts().items()}
    for path in paths:
        _refuse_foreign(path, MARKER)
    for path in runtime:
        _refuse_foreign(path, RUNTIME_MARKER)
    _make_folder(folder / RUNTIME)
    for path, text in (runtime | paths).items():
        write_file(path, text.encode("utf-8"))
    package = folder / "__init__.py"
    if not _is_there(package) or _is_ours(package, MARKER):
        write_file(package, package_text(_modules(folder, texts)).encode("utf-8"))
    return list(paths)


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:  # a zero byte in a name is a ValueError
        reason = getattr(error, "strerror", None) or str(error)
        raise OutputError(f"{folder}: cannot be made a folder: {reason}") from None


def _modules(folder: Path, written: Iterable[str]) -> list[str]:
    """The names of the modules of ours in a folder: those just written, and earlier ones."""
    found = {path.stem for path in folder.glob("[a-z]*.py") if path.stem.isidentifier()}
    earlier = {
        name for name in found.difference(written) if _is_ours(folder / f"{name}.py", MARKER)
    }
    return sorted({*written, *earlier})


def _refuse_foreign(path: Path, marker: str) -> None:
    if _is_there(path) and not _is_ours(path, marker):
        raise OutputError(
            f"{path}: exists and was not written by mfmadsl; move it or choose another folder"
        )


def _is_there(path: Path) -> bool:
    return path.exists() or path.is_symlink()


def _is_ours(path: Path, marker: str) -> bool:
    try:
        # A pipe would wait for somebody to write, and a device may never end.
        return path.is_file() and marker.encode() in path.read_bytes()
    except OSError:
        return False

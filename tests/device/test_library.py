"""The library in the place of HIP's: compiled once, and never taken from where others write."""

from __future__ import annotations

import ctypes
import re
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import hip
import pytest

from mfmadsl import RuntimeBuildError
from mfmadsl.device import library
from mfmadsl.device.library import hip_library


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("MFMADSL_CACHE", str(folder))
    return folder


def program(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_it_is_there_under_the_names_that_programs_were_linked_with(cache: Path) -> None:
    folder = hip_library()
    assert folder.parent == cache
    names = {path.name for path in folder.iterdir()}
    libraries = {
        f"{name}{version}"
        for name in ("libamdhip64.so", "libhiprtc.so")
        for version in ("", ".5", ".6", ".7")
    }
    assert names == {*libraries, "lib"}
    assert (folder / "lib/libamdhip64.so").samefile(folder / "libamdhip64.so")
    assert (folder / "libamdhip64.so.7").resolve() == (folder / "libamdhip64.so").resolve()


DECLARED = re.compile(r"^cdef [^(]*?\b(hip\w+)\(", re.M)
REFUSED = re.compile(r"^WITHOUT\((\w+),", re.M)


def test_each_function_of_hip_is_there_and_most_do_something() -> None:
    """Those that hip-python declares, after HIP's headers; the others say that they are refused."""
    declared = set(DECLARED.findall((Path(hip.__file__).parent / "chip.pxd").read_text()))
    loaded = ctypes.CDLL(str(hip_library() / "libamdhip64.so"))
    refused = set(REFUSED.findall((Path(library.__file__).parent / "hip/refused.c").read_text()))
    assert len(declared) > 480
    assert [name for name in sorted(declared) if not hasattr(loaded, name)] == []
    assert refused <= declared
    assert len(declared - refused) >= 380


def test_each_function_of_the_compiler_is_there() -> None:
    declared = set(DECLARED.findall((Path(hip.__file__).parent / "chiprtc.pxd").read_text()))
    loaded = ctypes.CDLL(str(hip_library() / "libhiprtc.so"))
    assert len(declared) > 15
    assert [name for name in sorted(declared) if not hasattr(loaded, name)] == []


@pytest.mark.thorough
def test_several_that_want_it_at_once_find_one(cache: Path) -> None:
    with ThreadPoolExecutor(3) as pool:
        folders = set(pool.map(lambda _: hip_library(), range(3)))
    assert len(folders) == 1
    assert [path.name for path in cache.iterdir()] == [folders.pop().name]


def test_it_is_compiled_once(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = hip_library()
    monkeypatch.setattr(library, "_compiler", lambda: pytest.fail("it is there"))
    assert hip_library() == folder


def test_without_a_compiler_one_is_told_what_to_install(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(RuntimeBuildError, match="install gcc or clang, or the pip package ziglang"):
        hip_library()
    assert not cache.exists() or not list(cache.iterdir())


def test_what_a_compiler_refuses_is_told_and_leaves_nothing(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", str(program(tmp_path / "cc", "echo no headers >&2; exit 1")))
    with pytest.raises(RuntimeBuildError, match="no headers"):
        hip_library()
    assert not list(cache.iterdir())


def test_a_cache_that_is_no_folder_is_told(cache: Path) -> None:
    cache.write_text("")
    with pytest.raises(RuntimeBuildError, match="set MFMADSL_CACHE to a folder"):
        hip_library()


@pytest.mark.thorough
def test_a_library_that_others_may_write_is_not_taken(cache: Path) -> None:
    kept = hip_library() / "libamdhip64.so"
    kept.chmod(kept.stat().st_mode | stat.S_IWOTH)
    with pytest.raises(RuntimeBuildError, match="is there already, and not as it was made"):
        hip_library()

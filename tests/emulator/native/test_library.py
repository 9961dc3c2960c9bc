"""Native code on disk: found again, and never run when it is not what was written."""

from __future__ import annotations

from pathlib import Path

import pytest

from mfmadsl.emulator.native import library as module
from mfmadsl.emulator.native.library import Library
from mfmadsl.emulator.native.name import name_of
from tests.emulator.native.both import KEEPING, known


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MFMADSL_CACHE", str(tmp_path))
    return tmp_path


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of all that LLVM compiles from here on."""
    names: list[str] = []
    real = module._compiled

    def compile_some(writers: dict[str, module.Writer]) -> bytes:
        names.extend(writers)
        return real(writers)

    monkeypatch.setattr(module, "_compiled", compile_some)
    return names


def load(*texts: str) -> list[str]:
    """Load the code of instructions in a library of its own; gives the names of their forms."""
    found = [known(text, KEEPING) for text in texts]
    forms = {name_of(each.step.form): each.step.form for each in found if each}
    assert all(Library().addresses(forms).values())
    return list(forms)


def files(folder: Path) -> dict[str, Path]:
    return {path.name: path for path in folder.glob("native-*/*")}


def test_code_is_found_again(folder: Path, compiled: list[str]) -> None:
    names = load("v_add_u32 v1, v2, v3", "v_xor_b32 v1, v2, v3")
    load("v_xor_b32 v5, v7, v9")  # the same code
    assert compiled == names
    assert set(names) < set(files(folder))


@pytest.mark.parametrize("content", [b"", b"0" * 64, b"nothing that is known"])
def test_what_is_broken_is_compiled_again(
    content: bytes, folder: Path, compiled: list[str]
) -> None:
    (name,) = load("v_add_u32 v1, v2, v3")
    for path in files(folder).values():
        path.write_bytes(content)
    load("v_add_u32 v1, v2, v3")
    assert compiled == [name, name]
    load("v_add_u32 v1, v2, v3")
    assert compiled == [name, name]


def test_what_others_can_write_is_not_run(folder: Path, compiled: list[str]) -> None:
    (name,) = load("v_add_u32 v1, v2, v3")
    for path in files(folder).values():
        path.chmod(0o666)
    load("v_add_u32 v1, v2, v3")
    assert compiled == [name, name]


def test_no_folder_is_no_fault(monkeypatch: pytest.MonkeyPatch, compiled: list[str]) -> None:
    monkeypatch.setenv("MFMADSL_CACHE", "/dev/null/nowhere")
    load("v_add_u32 v1, v2, v3")
    assert len(compiled) == 1

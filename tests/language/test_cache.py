"""The cache of the library: found again, made anew, and trusted only where it is the user's."""

from __future__ import annotations

from pathlib import Path

import pytest

from mfmadsl.language import cache, library, load
from mfmadsl.model import Intrinsic
from tests.language.entries import HALF


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Counts how often the library is made; the cache is a folder of the test's."""
    monkeypatch.setenv("MFMADSL_CACHE", str(tmp_path / "cache"))
    (tmp_path / "half.mfma").write_text(HALF)
    return []


def ask(folder: Path, made: list[int]) -> dict[str, Intrinsic]:
    def make() -> dict[str, Intrinsic]:
        made.append(1)
        return {i.name: i for i in load(folder / "half.mfma")}

    return cache.cached("half", [folder / "half.mfma"], make)


def entry(folder: Path) -> Path:
    (found,) = (folder / "cache").glob("half-*.pickle")
    return found


def test_it_is_made_once_and_comes_back_the_same(tmp_path: Path, made: list[int]) -> None:
    assert ask(tmp_path, made) == ask(tmp_path, made)
    assert len(made) == 1


def test_a_changed_file_makes_it_anew(tmp_path: Path, made: list[int]) -> None:
    ask(tmp_path, made)
    (tmp_path / "half.mfma").write_text(HALF.replace("gfx942=16", "gfx942=17"))
    (changed,) = ask(tmp_path, made).values()
    assert dict(changed.cycles)["gfx942"] == 17
    assert len(made) == 2


@pytest.mark.parametrize("content", [b"", b"no pickle", b"\x80\x05."])
def test_a_broken_cache_makes_it_anew(tmp_path: Path, made: list[int], content: bytes) -> None:
    expected = ask(tmp_path, made)
    entry(tmp_path).write_bytes(content)
    assert ask(tmp_path, made) == expected
    assert ask(tmp_path, made) == expected
    assert len(made) == 2


def test_a_cache_that_others_may_write_is_not_read(tmp_path: Path, made: list[int]) -> None:
    ask(tmp_path, made)
    entry(tmp_path).chmod(0o666)
    ask(tmp_path, made)
    assert len(made) == 2


def test_without_a_place_for_it_all_works(
    tmp_path: Path, made: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MFMADSL_CACHE", "/proc/nowhere")
    assert ask(tmp_path, made) == ask(tmp_path, made)
    assert len(made) == 2


def test_old_caches_are_removed(tmp_path: Path, made: list[int]) -> None:
    for number in range(12):
        (tmp_path / "half.mfma").write_text(HALF + f"// {number}\n")
        ask(tmp_path, made)
    assert len(list((tmp_path / "cache").glob("half-*.pickle"))) == 8


def test_the_library_that_comes_out_of_it_is_the_one_that_goes_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MFMADSL_CACHE", str(tmp_path))
    first = cache.cached("copy", [], library)
    again: dict[str, Intrinsic] = cache.cached("copy", [], dict)
    assert again is not first
    assert again == first
    assert list(again) == list(first)
    half = again["mfma_f32_16x16x16_f16"].a.layout
    assert half.element(*half.slot(3, 5)) == (0, 3, 5)

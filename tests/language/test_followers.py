"""A chip with the instructions of another one needs no more than its record."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from mfmadsl.language import load
from mfmadsl.language.library import load_entries
from mfmadsl.language.llvm import llvm_intrinsics
from mfmadsl.model import ARCHITECTURES
from mfmadsl.model.chips import with_followers
from tests.language.entries import HALF

NEW = "gfx943"


@pytest.fixture
def follower(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An invented chip: gfx942 with more LDS."""
    old = ARCHITECTURES["gfx942"]
    chip = replace(old, name=NEW, instructions_of=old.name, lds_bytes=96 * 1024)
    monkeypatch.setitem(ARCHITECTURES, NEW, chip)
    llvm_intrinsics.cache_clear()
    yield NEW
    llvm_intrinsics.cache_clear()


def spec(folder: Path, cycles: str) -> Path:
    path = folder / "half.mfma"
    text = HALF.replace("gfx942=16", cycles)
    assert text != HALF or cycles == "gfx942=16"
    path.write_text(text)
    return path


def test_it_has_what_the_other_one_has(follower: str, tmp_path: Path) -> None:
    (entry,) = load(spec(tmp_path, "gfx942=16"))
    assert dict(entry.cycles)[follower] == dict(entry.cycles)["gfx942"] == 16
    assert entry.chips[-1] == follower


def test_what_an_entry_says_of_it_counts(follower: str, tmp_path: Path) -> None:
    (entry,) = load(spec(tmp_path, f"gfx942=16 {follower}=8"))
    assert dict(entry.cycles)[follower] == 8
    assert entry.chips.count(follower) == 1


def test_it_has_nothing_of_the_others(follower: str, tmp_path: Path) -> None:
    (entry,) = load(spec(tmp_path, ""))
    assert follower not in entry.chips
    assert llvm_intrinsics()["llvm.amdgcn.mfma.f32.16x16x32.f16"].chips == ("gfx950",)


def test_reads_of_the_lds_follow_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    old = ARCHITECTURES["gfx950"]
    monkeypatch.setitem(
        ARCHITECTURES, "gfx951", replace(old, name="gfx951", instructions_of=old.name)
    )
    folder = Path(__file__).parents[2] / "intrinsics"
    paths = [path for path in folder.rglob("*.mfma") if "\nread " in path.read_text()]
    assert paths
    for path in paths:
        for read in load_entries(path).reads:
            assert read.chips == (*with_followers(["gfx950"]),) == ("gfx950", "gfx951")


def test_no_chip_of_ours_follows_another_one() -> None:
    assert with_followers(["gfx942"]) == ("gfx942",)

"""The caches that Linux tells of, and what is taken where it does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from mfmadsl.host import caches as module
from mfmadsl.host.caches import Caches, host_caches
from mfmadsl.model import Cpu


def told(folder: Path, *caches: tuple[str, str, str]) -> Caches:
    """What is found where Linux tells (level, type, size) of some caches."""
    for number, values in enumerate(caches):
        index = folder / f"index{number}"
        index.mkdir(parents=True)
        for name, value in zip(("level", "type", "size"), values, strict=True):
            (index / name).write_text(f"{value}\n")
    return host_caches.__wrapped__()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(module, "_FOLDER", tmp_path / "cache")
    monkeypatch.setattr(module, "host_cpu", lambda: Cpu("znver4", ()))
    monkeypatch.setattr(module, "third_rate", lambda cpu, sizes: Caches.third_rate)
    return tmp_path / "cache"


def test_those_of_data_are_taken(folder: Path) -> None:
    found = told(
        folder, ("1", "Data", "48K"), ("1", "Instruction", "32K"), ("2", "Unified", "2048K"),
        ("3", "Unified", "307200K"),
    )  # fmt: skip
    assert found == Caches(48 << 10, 2 << 20)


def test_where_nothing_is_told_it_is_a_usual_server(folder: Path) -> None:
    assert told(folder) == Caches(32 << 10, 1 << 20)


def test_the_rate_of_the_third_is_that_of_these_sizes(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[Cpu, dict[int, int]]] = []

    def rate(cpu: Cpu, sizes: dict[int, int]) -> int:
        asked.append((cpu, sizes))
        return 4

    monkeypatch.setattr(module, "third_rate", rate)
    found = told(folder, ("1", "Data", "48K"), ("3", "Unified", "307200K"))
    assert found == Caches(48 << 10, 1 << 20, 4)
    assert asked == [(Cpu("znver4", ()), {1: 48 << 10, 3: 300 << 20})]


@pytest.mark.parametrize(
    "odd",
    [
        ("x", "Data", "48K"),
        ("1", "Data", ""),
        ("1", "Data", "K"),
        ("1", "Data", "48M"),
        ("1", "Data", "0K"),
    ],
)
def test_what_cannot_be_read_is_left_out(folder: Path, odd: tuple[str, str, str]) -> None:
    assert told(folder, odd, ("2", "Unified", "512K")) == Caches(32 << 10, 512 << 10)


def test_a_size_that_is_not_told_is_left_out(folder: Path) -> None:
    (folder / "index0").mkdir(parents=True)
    (folder / "index0" / "level").write_text("1\n")
    assert host_caches.__wrapped__() == Caches()


def test_this_machines_are_some() -> None:
    assert host_caches().first >= 4 << 10
    assert host_caches().second > host_caches().first

"""The folder of what is made once: where it is, and which files of it may run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mfmadsl.cache_folder import cache_folder, keep, may_run


@pytest.mark.parametrize(
    ("mode", "ours"), [(0o600, True), (0o644, True), (0o755, True), (0o664, False), (0o646, False)]
)
def test_what_others_may_write_does_not_run(mode: int, ours: bool, tmp_path: Path) -> None:
    file = tmp_path / "code.so"
    file.touch()
    file.chmod(mode)
    assert may_run(file) == ours


def test_what_is_not_there_does_not_run(tmp_path: Path) -> None:
    assert not may_run(tmp_path / "code.so")


@pytest.mark.parametrize(
    ("set_", "expected"),
    [
        ({"MFMADSL_CACHE": "/a", "XDG_CACHE_HOME": "/b", "HOME": "/c"}, "/a"),
        ({"MFMADSL_CACHE": "", "XDG_CACHE_HOME": "/b", "HOME": "/c"}, "/b/mfmadsl"),
        ({"MFMADSL_CACHE": "", "XDG_CACHE_HOME": "", "HOME": "/c"}, "/c/.cache/mfmadsl"),
    ],
)
def test_where_it_is(set_: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in set_.items():
        monkeypatch.setenv(name, value)
    assert cache_folder() == Path(expected)


def test_the_oldest_files_of_a_kind_go(tmp_path: Path) -> None:
    for age, name in enumerate(("new-1", "b-0", "a-0", "old-0")):
        file = tmp_path / f"{name}.so"
        file.touch()
        os.utime(file, (1000 - age, 1000 - age))
    (tmp_path / "other.txt").touch()
    keep(tmp_path / "latest.so", b"code", "*.so", 3)
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        "b-0.so", "latest.so", "new-1.so", "other.txt",
    ]  # fmt: skip
    assert (tmp_path / "latest.so").read_bytes() == b"code"

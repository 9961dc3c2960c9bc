"""Writing: whole or not at all, and never over somebody else's file."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mfmadsl.codegen import MARKER, write_modules
from mfmadsl.output import OutputError, write_file

OURS = f'"""{MARKER}"""\n'


def test_modules_are_written_into_a_folder_that_is_made(tmp_path: Path) -> None:
    paths = write_modules({"one": OURS, "two": OURS + "x"}, tmp_path / "new" / "folder")
    assert [path.name for path in paths] == ["one.py", "two.py"]
    assert [path.read_text() for path in paths] == [OURS, OURS + "x"]


def test_the_folder_becomes_a_package_that_imports_on_demand(tmp_path: Path) -> None:
    write_modules({"one": OURS + "value = 1\n", "two": OURS}, tmp_path / "generated")
    program = (
        "import sys, generated; assert 'generated.one' not in sys.modules;"
        "assert dir(generated) == ['one', 'two']; assert generated.one.value == 1;"
        "assert 'generated.two' not in sys.modules; assert not hasattr(generated, 'three')"
    )
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True)


def test_a_package_of_the_users_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "__init__.py").write_text("mine = 1\n")
    write_modules({"one": OURS}, tmp_path)
    assert (tmp_path / "__init__.py").read_text() == "mine = 1\n"


def test_a_generated_file_is_overwritten(tmp_path: Path) -> None:
    write_modules({"one": OURS}, tmp_path)
    write_modules({"one": OURS + "new"}, tmp_path)
    assert (tmp_path / "one.py").read_text() == OURS + "new"


@pytest.mark.parametrize("content", [b"precious = 1\n", b"", b"\xff\xfe"])
def test_a_foreign_file_is_kept_and_nothing_is_written(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "two.py").write_bytes(content)
    with pytest.raises(OutputError, match=r"two\.py: exists and was not written by mfmadsl"):
        write_modules({"one": OURS, "two": OURS}, tmp_path)
    assert (tmp_path / "two.py").read_bytes() == content
    assert os.listdir(tmp_path) == ["two.py"]


def test_a_link_to_nowhere_is_a_foreign_file(tmp_path: Path) -> None:
    (tmp_path / "one.py").symlink_to(tmp_path / "nowhere")
    with pytest.raises(OutputError, match="was not written by mfmadsl"):
        write_modules({"one": OURS}, tmp_path)


def test_what_is_no_file_is_foreign_and_nobody_waits_for_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "one.py")
    (tmp_path / "two.py").symlink_to("/dev/zero")
    for name in ("one", "two"):
        with pytest.raises(OutputError, match="was not written by mfmadsl"):
            write_modules({name: OURS}, tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["one.py", "two.py"]


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="file/sub: cannot be made a folder: Not a directory"):
        write_modules({"one": OURS}, tmp_path / "file" / "sub")


def test_a_folder_that_cannot_be_written() -> None:
    # Permissions do not keep root out, but nobody makes a folder in /proc.
    with pytest.raises(OutputError, match=r"/proc/_mfma_runtime: cannot be made a folder: "):
        write_modules({"one": OURS}, Path("/proc"))


def test_a_write_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "name").mkdir()
    with pytest.raises(OutputError, match="cannot be written: Is a directory"):
        write_file(tmp_path / "name", b"content")
    assert os.listdir(tmp_path) == ["name"]


def test_a_file_gets_the_permissions_that_the_user_asked_for(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("")
    write_file(tmp_path / "ours", b"content")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "plain").stat().st_mode

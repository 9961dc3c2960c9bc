"""Where a file is written, and what stays as it was."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from mfmadsl.output import OutputError, write_file


def listing(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def device(folder: Path, name: str, number: int) -> Path:
    """A device of one's own: a mistake of root's is not to cost the machine its /dev/null."""
    path = folder / name
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, number))
        path.open("wb").close()
    except PermissionError:  # who may not make devices may not replace them either
        path.unlink(missing_ok=True)
        path.symlink_to(f"/dev/{name}")
    return path


def test_a_file_is_made_beside_nothing_else(tmp_path: Path) -> None:
    write_file(tmp_path / "new", b"content")
    assert (tmp_path / "new").read_bytes() == b"content"
    assert listing(tmp_path) == ["new"]


def test_a_device_stays_a_device(tmp_path: Path) -> None:
    null = device(tmp_path, "null", 3)
    write_file(null, b"content")
    assert stat.S_ISCHR(null.stat().st_mode)
    assert listing(tmp_path) == ["null"]


def test_a_device_that_is_full_says_so(tmp_path: Path) -> None:
    full = device(tmp_path, "full", 7)
    with pytest.raises(OutputError, match="full: cannot be written: No space left on device"):
        write_file(full, b"content")
    assert stat.S_ISCHR(full.stat().st_mode)


def test_a_link_to_a_device_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/dev/null")
    write_file(tmp_path / "link", b"content")
    assert os.readlink(tmp_path / "link") == "/dev/null"
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_a_pipe_is_written_through(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    write_file(pipe, b"content")
    reader.join()
    assert read == [b"content"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert listing(tmp_path) == ["pipe"]


@pytest.mark.parametrize("place", ["stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_an_open_file_is_appended_to_and_not_emptied(tmp_path: Path, place: str) -> None:
    """As `>> log` would have it."""
    folder = tmp_path / "dev"
    folder.mkdir()
    (folder / "stdout").symlink_to("/proc/self/fd/1")  # as /dev/stdout is
    log = tmp_path / "log"
    log.write_text("before\n")
    program = (
        "from mfmadsl.output import write_file; from pathlib import Path;"
        f"write_file(Path({str(folder / place)!r}), b'content\\n'); print('after')"
    )
    with log.open("a") as file:
        subprocess.run([sys.executable, "-c", program], stdout=file, check=True)
    assert log.read_text() == "before\ncontent\nafter\n"
    assert (folder / "stdout").is_symlink()
    assert listing(tmp_path) == ["dev", "log"]


def test_a_descriptor_that_is_not_open() -> None:
    with pytest.raises(OutputError, match="cannot be written: Bad file descriptor"):
        write_file(Path("/dev/fd/987"), b"content")


def test_links_are_followed_and_stay(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/target").write_text("old")
    (tmp_path / "first").symlink_to("second")
    (tmp_path / "second").symlink_to("folder/target")
    write_file(tmp_path / "first", b"new")
    assert (tmp_path / "folder/target").read_bytes() == b"new"
    assert (tmp_path / "first").is_symlink()
    assert (tmp_path / "second").is_symlink()
    assert listing(tmp_path / "folder") == ["target"]


def test_a_link_to_nothing_makes_its_target(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("target")
    write_file(tmp_path / "link", b"new")
    assert (tmp_path / "target").read_bytes() == b"new"
    assert (tmp_path / "link").is_symlink()


@pytest.mark.parametrize(
    ("target", "message"),
    [("nowhere/file", "No such file or directory"), ("link", "Too many levels of symbolic links")],
)
def test_a_link_that_leads_nowhere(tmp_path: Path, target: str, message: str) -> None:
    (tmp_path / "link").symlink_to(target)
    with pytest.raises(OutputError, match=f"link: cannot be written: {message}"):
        write_file(tmp_path / "link", b"new")
    assert listing(tmp_path) == ["link"]


def test_a_file_keeps_its_mode_and_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(0o640)
    if os.geteuid() == 0:
        os.chown(path, 1234, 5678)
    before = path.stat()
    write_file(path, b"new")
    after = path.stat()
    assert (after.st_mode, after.st_uid, after.st_gid) == (
        before.st_mode, before.st_uid, before.st_gid
    )  # fmt: skip
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize(("mask", "mode"), [(0o007, 0o660), (0o022, 0o644), (0o077, 0o600)])
def test_a_new_file_has_the_mode_that_the_user_wants(tmp_path: Path, mask: int, mode: int) -> None:
    before = os.umask(mask)
    try:
        write_file(tmp_path / "new", b"content")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == mode


def test_a_file_that_another_process_has_open_is_written_anew(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("much more than there will be\n")
    waiting = [sys.executable, "-c", "input()"]
    with (
        log.open("a") as file,
        subprocess.Popen(waiting, stdin=subprocess.PIPE, stdout=file) as other,
    ):
        write_file(Path(f"/proc/{other.pid}/fd/1"), b"new\n")
        other.communicate(b"\n")
    assert log.read_text() == "new\n"


def test_a_private_file_is_its_users_whatever_was_there(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(0o666)
    write_file(path, b"new", private=True)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_file_that_may_not_be_written_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write everywhere
    with pytest.raises(OutputError, match="file: cannot be written: Permission denied"):
        write_file(path, b"new")
    assert path.read_text() == "old"


def test_a_name_as_long_as_names_can_be(tmp_path: Path) -> None:
    write_file(tmp_path / ("x" * 255), b"content")
    with pytest.raises(OutputError, match="cannot be written: File name too long"):
        write_file(tmp_path / ("x" * 256), b"content")
    assert listing(tmp_path) == ["x" * 255]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("..", r"\.\.: cannot be written: it names a folder"),
        ("some/..", "it names a folder"),
        (".", "it names a folder"),
        ("a\0b", "no file has such a name"),
    ],
)
def test_what_is_no_name_of_a_file_is_refused(path: str, message: str) -> None:
    with pytest.raises(OutputError, match=message):
        write_file(Path(path), b"content")


def test_a_write_that_is_interrupted_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    (tmp_path / "file").write_text("old")
    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_file(tmp_path / "file", b"new")
    assert (tmp_path / "file").read_text() == "old"
    assert listing(tmp_path) == ["file"]

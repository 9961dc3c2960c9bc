"""Long work tells how far it has come, on a terminal and nowhere else."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from mfmadsl.cli.progress import ProgressRate
from tests.emulator.waves import kernel
from tests.test_readme import ROOT

CODE = """
	s_load_dwordx2 s[4:5], s[0:1], 0x0
	v_lshlrev_b32_e32 v1, 2, v0
	s_waitcnt lgkmcnt(0)
	global_store_dword v1, v0, s[4:5]"""


def on_a_terminal(command: list[str], cwd: Path) -> tuple[str, str]:
    """What a command writes to standard output, and to standard error, which is a terminal."""
    outer, inner = pty.openpty()
    with subprocess.Popen(command, cwd=cwd, stdout=subprocess.PIPE, stderr=inner) as process:
        os.close(inner)
        told = b""
        while True:
            try:
                piece = os.read(outer, 4096)
            except OSError:  # Linux says so at the end of a terminal
                break
            if not piece:
                break
            told += piece
        assert process.stdout is not None
        output = process.stdout.read().decode()
    os.close(outer)
    return output, told.decode()


@pytest.mark.parametrize("command", ["emulate", "sanitize", "profile"])
def test_workgroups_are_counted_on_a_terminal_only(command: str, tmp_path: Path) -> None:
    (tmp_path / "k.s").write_text(kernel(CODE))
    call = [
        sys.executable, "-m", "mfmadsl", command, "k.s", "--grid", "600", "--block", "64",
        "--arg", "uint32[64]=0",
    ]  # fmt: skip
    piped = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert piped.stderr == ""
    output, told = on_a_terminal(call, tmp_path)
    assert output == piped.stdout
    work = {"emulate": "emulating", "sanitize": "sanitizing", "profile": "profiling"}[command]
    lines = [line.removeprefix("\x1b[K") for line in told.split("\r")]
    total = 2 if command == "profile" else 600
    assert f"{work} 0 of {total} workgroups" in lines
    if command != "profile":
        assert f"{work} 513 of 600 workgroups" in lines
    assert told.endswith("\r\x1b[K")


def test_a_terminal_is_left_clean_where_a_kernel_fails(tmp_path: Path) -> None:
    (tmp_path / "k.s").write_text(kernel(CODE))
    call = [
        sys.executable, "-m", "mfmadsl", "emulate", "k.s", "--grid", "1", "--block", "64",
        "--arg", "uint32[3]=0",
    ]  # fmt: skip
    _, told = on_a_terminal(call, tmp_path)
    assert "workgroups\r\x1b[Kerror: line" in told


def test_the_installation_is_quiet_where_nobody_looks(tmp_path: Path) -> None:
    """With an interpreter that prints what it is asked for, as pip prints what it does."""
    python = tmp_path / "venv/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text('#!/bin/sh\necho "$@"\n')
    python.chmod(0o755)
    call = ["sh", str(ROOT / "scripts/install.sh"), "venv", ".[test]"]
    piped = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert (piped.stdout, piped.stderr) == ("", "-m pip install --quiet --editable .[test]\n")
    output, told = on_a_terminal(call, tmp_path)
    assert (output, told.strip()) == ("", "-m pip install --editable .[test]")


def test_the_time_that_is_left_is_told_once_something_has_shown_it() -> None:
    pace = ProgressRate(began=100.0)
    assert pace.told(0, 1000, 101.0) == ""
    assert pace.told(0, 1000, 107.4) == ", 7 s"
    pace = pace.with_mark(1, 110.0)
    assert pace.told(1, 1000, 110.0) == ", 10 s"
    # 10 in 5 seconds, whatever the first one took
    assert pace.with_mark(11, 115.0).told(11, 1000, 115.0) == ", 15 s, about 8 min 14 s left"
    assert pace.told(2, 20_001, 112.0) == ", 12 s, about 11 h 6 min left"


def test_another_launch_begins_anew() -> None:
    pace = ProgressRate(began=0.0).with_mark(5, 1.0)
    assert pace.with_mark(0, 50.0) == ProgressRate(50.0)

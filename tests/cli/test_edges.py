"""The command line where files, pipes and people are not as one would wish."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from mfmadsl.cli.mistakes import sections
from mfmadsl.emulator import EmulationError
from tests.cli.command import SMALL, run, spec
from tests.cli.test_kernel import CODE, LAUNCH
from tests.emulator.waves import kernel
from tests.language.entries import HALF, spoiled

UNTIDY = HALF.replace("  shape   m", "shape m")


def process(*arguments: object, **options: Any) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "mfmadsl", *map(str, arguments)]
    done: subprocess.CompletedProcess[bytes]
    done = subprocess.run(command, check=False, timeout=120, **options)
    return done


@pytest.mark.parametrize(
    "arguments", [["list"], ["list", "--format", "json"], ["--explain", "name"], ["-h"]]
)
def test_a_full_disk_is_told_in_a_line(arguments: list[str]) -> None:
    with open("/dev/full", "w") as full:
        done = process(*arguments, stdout=full, stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (1, b"error: cannot write: No space left on device\n")


def test_errors_that_cannot_be_told_still_end_with_their_code() -> None:
    with open("/dev/full", "w") as full:
        assert process("check", "nowhere.mfma", stderr=full).returncode == 1


@pytest.mark.parametrize("arguments", [["list"], ["list", "--format", "json"], ["schema"]])
def test_a_reader_that_goes_away_ends_a_command_without_a_word(arguments: list[str]) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    done = process(*arguments, stdout=write_end, stderr=subprocess.PIPE)
    os.close(write_end)
    assert (done.returncode, done.stderr) == (1, b"")


def test_an_interrupt_ends_a_command_with_130(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    program = (  # what is started in the background may ignore interrupts
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler);"
        "from mfmadsl.cli import main; main(['check', sys.argv[1]])"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "pipe")]
    waiting = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    writer = os.open(tmp_path / "pipe", os.O_WRONLY)  # opens once the command reads
    waiting.send_signal(signal.SIGINT)
    _, told = waiting.communicate(timeout=60)
    os.close(writer)
    assert (waiting.returncode, told) == (130, b"interrupted\n")


@pytest.mark.parametrize(
    ("raised", "code", "message"),
    [
        (KeyboardInterrupt(), 130, "interrupted\n"),
        (MemoryError("Unable to allocate 8 EiB"), 1, "error: out of memory: Unable to allocate"),
        (MemoryError(), 1, "error: out of memory\n"),
        (RecursionError(), 1, "error: the input is nested too deeply\n"),
        (EmulationError("no such thing"), 1, "error: no such thing\n"),
        (OSError(28, "No space left on device", "/tmp/x"), 1, "error: /tmp/x: No space left"),
    ],
)
def test_whatever_happens_is_told_in_a_line(
    raised: BaseException, code: int, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails() -> None:
        raise raised

    monkeypatch.setattr("mfmadsl.cli.library.library_intrinsics", fails)
    result = run("list")
    assert result.exit_code == code
    assert result.stderr.startswith(message)
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("output", ["", ".", "..", "folder/", "folder/..", "/"])
def test_what_names_no_file_is_refused_before_any_work(output: str, tmp_path: Path) -> None:
    result = run(*SMALL, "--emit", "asm", "-o", output)
    assert result.exit_code == 2
    assert "Invalid value for '-o'" in result.output
    saved = run("emulate", tmp_path / "nowhere.s", "--save", f"0={output}")
    assert saved.exit_code == 2


def test_a_kernel_goes_to_a_device_and_through_a_link(tmp_path: Path) -> None:
    assert run(*SMALL, "--emit", "asm", "-o", "/dev/null").exit_code == 0
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    (tmp_path / "link").symlink_to("target")
    assert run(*SMALL, "--emit", "asm", "-o", tmp_path / "link").exit_code == 0
    assert "v_mfma" in (tmp_path / "target").read_text()
    full = run(*SMALL, "--emit", "asm", "-o", "/dev/full")
    assert (full.exit_code, full.stderr) == (
        1, "error: /dev/full: cannot be written: No space left on device\n"
    )  # fmt: skip


def test_an_array_is_saved_through_a_pipe(tmp_path: Path) -> None:
    (tmp_path / "kernel.s").write_text(kernel(CODE, lds=512))
    os.mkfifo(tmp_path / "pipe")
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    result = run("emulate", tmp_path / "kernel.s", *LAUNCH, "--save", f"0={tmp_path}/pipe")
    reader.join()
    assert result.exit_code == 0
    assert read[0].startswith(b"\x93NUMPY")
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_fmt_follows_links_and_keeps_modes(tmp_path: Path) -> None:
    path = spec(tmp_path, UNTIDY)
    path.chmod(0o600)
    (tmp_path / "link.mfma").symlink_to(path.name)
    assert run("fmt", tmp_path / "link.mfma").exit_code == 0
    assert (tmp_path / "link.mfma").is_symlink()
    assert "  shape   m=16" in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_fmt_changes_no_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=lambda: (tmp_path / "pipe").write_text(UNTIDY))
    writer.start()
    result = run("fmt", tmp_path / "pipe")
    writer.join()
    assert result.exit_code == 1
    assert "is no file that could be changed in place" in result.output


def test_check_reads_a_pipe() -> None:
    done = process("check", "/dev/stdin", input=HALF.encode(), capture_output=True)
    assert (done.returncode, done.stdout) == (0, b"1 intrinsic, no mistakes\n")


def test_a_file_may_have_a_name_that_is_no_text(tmp_path: Path) -> None:
    name = os.fsencode(tmp_path) + b"/\xff.mfma"
    Path(os.fsdecode(name)).write_text(spoiled("k=16\n", "k=15\n"))
    done = subprocess.run(
        [sys.executable, "-m", "mfmadsl", "check", name], check=False, capture_output=True
    )
    assert done.returncode == 1
    assert b"\\udcff.mfma:6:" in done.stderr
    Path(os.fsdecode(name)).write_text(HALF)
    folder = os.fsencode(tmp_path) + b"/\xfe"
    done = subprocess.run(
        [sys.executable, "-m", "mfmadsl", "compile", name, "-o", folder],
        check=False, capture_output=True,
    )  # fmt: skip
    assert done.stdout == folder + b"/mfma_f32_16x16x16_f16.py\n"


def test_a_code_is_explained() -> None:
    result = run("--explain", "collision")
    assert result.exit_code == 0
    assert result.output.startswith("collision\n\nTwo elements have the same place.")
    assert "layout folded(x, k)" in result.output
    assert run("--explain", "error[collision]").output == result.output


@pytest.mark.parametrize("code", sections())
def test_every_code_is_explained(code: str) -> None:
    assert len(run("--explain", code).output) > len(code) + 30


def test_a_code_that_is_none_is_told_with_those_there_are() -> None:
    result = run("--explain", "colision")
    assert result.exit_code == 1
    assert "no mistake has the code `colision`: did you mean `collision`?" in result.stderr
    assert "there are: alias, argument, arithmetic" in result.stderr


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[" * 100_000, "is nested too deeply to be a kernel"),
        (b'{"symbol": "k", "grid": [1], "block": [64], "lds_bytes": 0, "arguments": [], '
         b'"files": [5, null]}', "is not what `mfmadsl gemm --emit json` writes"),
        (b'{"symbol": "k", "grid": 5, "block": [64], "lds_bytes": 0, "arguments": [], '
         b'"files": ["k.s"]}', "is not what `mfmadsl gemm --emit json` writes"),
        (b'{"symbol": 5, "grid": [1], "block": [64], "lds_bytes": 0, "arguments": [], '
         b'"files": ["k.s"]}', "is not what `mfmadsl gemm --emit json` writes"),
        (b"5", "is not what `mfmadsl gemm --emit json` writes"),
    ],
)  # fmt: skip
def test_a_description_of_a_kernel_that_is_none(
    content: bytes, message: str, tmp_path: Path
) -> None:
    (tmp_path / "k.json").write_bytes(content)
    result = run("emulate", tmp_path / "k.json")
    assert result.exit_code == 1
    assert message in result.output


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("float32[1000000000]", "has more than 1 GiB"),
        ("float32[" + "9" * 40 + "]", "has more than 1 GiB"),
        ("float32[" + "1," * 40 + "]", "has 40 dimensions"),
        ("object[3]", "there is no type `object`"),
        ("finfo[3]", "there is no type `finfo`"),
        ("folder.npy", "is no file"),
        ("short.npy", "is shorter than its header says"),
        ("text.npy", "is no array of NumPy's"),
    ],
)
def test_an_argument_that_is_none(
    argument: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("kernel.s").write_text(kernel(CODE, lds=512))
    Path("folder.npy").mkdir()
    Path("text.npy").write_text("hello")
    header = b"{'descr': '<u4', 'fortran_order': False, 'shape': (99999999999,), }"
    Path("short.npy").write_bytes(b"\x93NUMPY\x01\x00" + bytes([len(header), 0]) + header)
    result = run("emulate", "kernel.s", *LAUNCH[:4], "--arg", argument)
    assert result.exit_code == 1
    assert message in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--grid", "2147483647", "--block", "64"], "are more than the hardware counts"),
        (["--grid", "9" * 5000, "--block", "64"], "is not one to three positive numbers"),
        (["--grid", "1", "--block", "2048"], "takes up to 1024 threads, not the 2048"),
        (["--grid", "1", "--block", "64", "--lds", "9" * 30], "has up to 65536 bytes of LDS"),
    ],
)
def test_a_launch_that_no_chip_has(arguments: list[str], message: str, tmp_path: Path) -> None:
    (tmp_path / "kernel.s").write_text(kernel(CODE))
    for command in ("emulate", "sanitize", "profile"):
        result = run(command, tmp_path / "kernel.s", *arguments, "--arg", "uint32[128]=0")
        assert result.exit_code in (1, 2)
        assert message in result.output


def test_a_kernel_that_wants_more_registers_than_there_are(tmp_path: Path) -> None:
    text = kernel(CODE, lds=512).replace("next_free_vgpr 32", "next_free_vgpr 1000000000")
    (tmp_path / "kernel.s").write_text(text)
    result = run("emulate", tmp_path / "kernel.s", *LAUNCH)
    assert result.exit_code == 1
    assert "next_free_vgpr is 1000000000, which is not between 0 and 512" in result.output

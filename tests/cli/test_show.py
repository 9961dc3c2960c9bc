"""`mfmadsl show`: formats, views, windows, and what it refuses."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.cli.command import run, spec

HALF = "mfma_f32_16x16x16_f16"
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


def in_a_window(columns: int, *arguments: str, **environment: str) -> str:
    """What the command writes to a terminal of so many columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    clean = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES", "NO_COLOR")}
    with subprocess.Popen(
        [sys.executable, "-m", "mfmadsl", "show", *arguments],
        stdin=theirs, stdout=theirs, env={**clean, **environment},
    ) as process:  # fmt: skip
        os.close(theirs)
        written = b""
        try:
            while chunk := os.read(ours, 1 << 16):
                written += chunk
        except OSError:  # Linux ends a terminal so
            pass
    os.close(ours)
    assert process.returncode == 0
    return written.decode().replace("\r\n", "\n")


def test_in_a_terminal_the_table_fits_and_is_coloured_by_lane() -> None:
    written = in_a_window(90, HALF)
    table = ESCAPE.sub("", written).partition("lane:register")[2]
    assert max(map(len, table.splitlines())) <= 90
    colours = {found for found in ESCAPE.findall(written) if found != "\x1b[0m"}
    assert len(colours) == 64
    assert all(label in table for label in ("0:0[0:15]", "63:1[16:31]"))


def test_no_color_is_respected() -> None:
    assert "\x1b" not in in_a_window(90, HALF, NO_COLOR="1")


def test_columns_say_how_wide_a_pipe_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    whole = run("show", HALF).stdout
    assert "\x1b" not in whole
    assert max(map(len, whole.splitlines())) > 150
    monkeypatch.setenv("COLUMNS", "100")
    table = run("show", HALF).stdout.partition("lane:register")[2]
    assert max(map(len, table.splitlines())) <= 100


def test_a_picture_has_all_operands_unless_one_is_named() -> None:
    titles = re.findall(r'class="t">([^<]*)<', run("show", HALF, "--format", "svg").stdout)
    assert titles == ["A", "B", "C"]
    one = run("show", HALF, "--format", "svg", "--operand", "b").stdout
    assert re.findall(r'class="t">([^<]*)<', one) == ["B"]
    ElementTree.fromstring(one)


@pytest.mark.parametrize(
    ("name", "views"),
    [
        (HALF, ("elements", "registers", "banks")),
        ("smfmac_f32_16x16x32_f16", ("elements", "registers", "banks")),
        ("mfma_scale_f32_16x16x128_f8f6f4_fp8_fp8", ("elements", "registers", "banks")),
        ("avx512_f32_8x48", ("elements", "registers")),
        ("ds_read_b64_tr_b16", (None,)),
    ],
)
def test_every_kind_of_entry_is_drawn_in_every_format(
    name: str, views: tuple[str | None, ...]
) -> None:
    for view in views:
        chosen = ("--view", view) if view else ()
        for form in ("table", "svg", "html"):
            done = run("show", name, "--format", form, *chosen)
            assert done.exit_code == 0, done.stderr
            assert name in done.stdout or form == "svg"


def test_a_page_needs_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "half.html"
    run("show", HALF, "--format", "html", "-o", str(path))
    text = path.read_text()
    assert text.count("<svg") == 3
    assert not re.search(r"(src|href)=|@import|url\(", text)


def test_the_name_of_the_file_says_the_format(tmp_path: Path) -> None:
    for suffix, start in ((".svg", "<svg"), (".html", "<!doctype"), (".json", "{"), (".txt", HALF)):
        path = tmp_path / f"x{suffix}"
        done = run("show", HALF, "-o", path)
        assert (done.exit_code, done.output) == (0, "")
        assert path.read_text().startswith(start)
    run("show", HALF, "--format", "table", "-o", tmp_path / "x.svg")
    assert (tmp_path / "x.svg").read_text().startswith(HALF)


def test_modifiers_are_drawn() -> None:
    told = run("show", "mfma_f32_4x4x4_16b_f16", "--format", "svg", "--cbsz", "1", "--abid", "1")
    assert "A[0, 0] of block 0: lane 4, register 0" in told.stdout
    told = run("show", HALF, "--operand", "b", "--format", "svg", "--blgp", "1")
    assert "B[8, 0]: lane 0, register 0" in told.stdout


def test_as_json_it_is_what_it_was() -> None:
    found = json.loads(run("show", HALF, "--format", "json", "--operand", "c").stdout)
    assert found["operand"] == "c"
    assert found["elements"][17] == {
        "block": 0, "row": 1, "column": 1, "lane": 1, "register": 1, "bits": [0, 31],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([HALF, "--view", "banks", "--blgp", "1"], 2, "of which modifiers know nothing"),
        ([HALF, "--k-pack", "2"], 2, "--k-pack needs --view banks"),
        ([HALF, "--view", "banks", "--operand", "c"], 1, "only a and b"),
        ([HALF, "--view", "banks", "--format", "json"], 1, "are a picture"),
        ([HALF, "--view", "sideways"], 2, "'sideways' is not one of"),
        ([HALF, "--color", "bank"], 2, "'bank' is not one of"),
        (["ds_read_b64_tr_b16", "--view", "registers"], 2, "is a read, which has no --view"),
        (["avx512_f32_8x48", "--cbsz", "1"], 2, "is a micro-kernel, which has no --cbsz"),
        (["avx512_f32_8x48", "--view", "banks"], 1, "is no instruction"),
        ([HALF, "-o", "/"], 2, "/"),
    ],
)
def test_what_cannot_be_shown_is_refused(arguments: list[str], code: int, message: str) -> None:
    done = run("show", *arguments)
    assert done.exit_code == code
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_file_in_the_place_of_a_name_is_told() -> None:
    done = run("show", "first.mfma")
    assert (done.exit_code, "give the file by --spec" in done.stderr) == (1, True)


def test_a_layout_without_a_formula_is_shown(tmp_path: Path) -> None:
    path = spec(
        tmp_path,
        "layout turned(i, k) { lane = (i + 3) % 16 + k / 4 * 16 register = k % 4 }\n"
        "intrinsic odd { shape m=16 n=16 k=16\n"
        " a float16[i, k] at turned(i, k)\n b float16[k, j] at turned(j, k)\n"
        " c float32[i, j] at turned(j, i)\n"
        ' call "llvm.amdgcn.mfma.f32.16x16x16f16"\n cycles gfx942=16 }\n',
    )
    done = run("show", "odd", "--spec", path)
    assert "a       float16[i, k] in 2 registers a lane, where no sum of digits says" in done.stdout
    assert " 0 |   3:0[0:15]" in done.stdout


def test_an_ending_that_no_format_has_is_refused(tmp_path: Path) -> None:
    picture = tmp_path / "x.png"
    refused = run("show", "mfma_f32_16x16x16_f16", "-o", picture)
    assert refused.exit_code == 2
    assert "there is no format .png, but .table, " in refused.output
    assert ".svg" in refused.output
    assert not picture.exists()
    assert run("show", "mfma_f32_16x16x16_f16", "--format", "svg", "-o", picture).exit_code == 0
    for name in ("x", "x.txt", "x.SVG"):
        assert run("show", "mfma_f32_16x16x16_f16", "-o", tmp_path / name).exit_code == 0
    assert (tmp_path / "x.SVG").read_text().startswith("<svg")

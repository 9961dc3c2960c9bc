"""Fragments: tiles that lanes hold, of no instruction that code is made for."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from mfmadsl.language import LanguageError, Source, load_entries
from mfmadsl.language.diagnostic import Diagnostic
from mfmadsl.language.formatter import format_source
from mfmadsl.report import json_schema
from tests.cli.command import run

TEXT = """\
layout quads(x, y) {
  lane     = x % 8 * 4 + y / 2
  register = y % 2 + 2 * (x / 8)
}

/// The sums of a warp.
fragment warp_c {
  shape  m=16 n=8 lanes=32
  holds  float32[i, j]  at  quads(i, j)
}
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "x.mfma"
    path.write_text(text)
    return path


def mistakes(folder: Path, text: str) -> list[Diagnostic]:
    with pytest.raises(LanguageError) as error:
        load_entries(written(folder, text))
    return list(error.value.diagnostics)


def test_a_correct_entry_becomes_the_model(tmp_path: Path) -> None:
    entries = load_entries(written(tmp_path, TEXT))
    assert (entries.intrinsics, entries.accelerators, entries.reads) == ([], [], [])
    (fragment,) = entries.fragments
    assert (fragment.name, fragment.doc, fragment.lanes) == ("warp_c", "The sums of a warp.", 32)
    assert fragment.operand.name == "c"
    assert fragment.operand.shape == (16, 8)
    assert fragment.operand.layout.slot(9, 5) == (6, 3)


@pytest.mark.parametrize(
    ("shape", "holds", "name"),
    [
        ("m=16 k=16 lanes=64", "float16[i, k]", "a"),
        ("k=16 n=16 lanes=64", "float16[k, j]", "b"),
        ("m=16 n=16 lanes=64", "float32[i, j]", "c"),
    ],
)
def test_its_indices_make_it_an_a_a_b_or_a_c(
    shape: str, holds: str, name: str, tmp_path: Path
) -> None:
    first, second = holds[-5], holds[-2]
    layout = "layout lines(x, y) { lane = x + X * (y / 4) register = y % 4 }"
    text = f"{layout} fragment f {{ shape {shape} holds {holds} at lines({first}, {second}) }}"
    (fragment,) = load_entries(written(tmp_path, text)).fragments
    assert fragment.operand.name == name


@pytest.mark.parametrize(
    ("old", "new", "code", "message"),
    [
        ("lanes=32", "", "shape", "the shape lacks lanes"),
        ("lanes=32", "lanes=0", "shape", "lanes=0 is not from 1 to 256"),
        ("m=16", "m=257", "shape", "m=257 is not from 1 to 256"),
        ("n=8", "n=513", "shape", "n=513 is not from 1 to 512"),
        ("lanes=32", "lanes=257", "shape", "lanes=257 is not from 1 to 256"),
        ("m=16 n=8 lanes=32", "m=256 n=512 lanes=128", "registers", "would hold 1024 elements"),
        ("m=16", "rows=16", "shape", "the shape of a fragment has no `rows`"),
        ("n=8 ", "k=8 ", "shape", "`j` has no extent"),
        ("lanes=32", "lanes=32 lanes=32", "shape", "`lanes`"),
        ("lanes=32", "lanes=16", "lane", "falls on lane 16"),
        ("lanes=32", "lanes=48", "lanes", "do not fill 48 lanes evenly"),
        ("y / 2", "y % 2", "collision", "lane 0 holds both"),
        ("[i, j]", "[j, i]", "indices", "a fragment is indexed [i, k] as A"),
        ("[i, j]", "[i, j / 2]", "indices", "a fragment is indexed [i, k] as A"),
        ("[i, j]", "[i / 2, j]", "indices", "a fragment is indexed [i, k] as A"),
        ("  shape", "  shape  m=16 n=8 lanes=32\n  shape", "field", "`shape`"),
        ("float32", "float32 float16", "type", "a fragment holds elements of one type"),
        ("float32", "float31", "type", "float31"),
        ("quads(i, j)", "squads(i, j)", "unknown-layout", "there is no layout `squads`"),
        ("  shape  m=16 n=8 lanes=32\n", "", "field", "fragment `warp_c` has no `shape`"),
        ("  holds  float32[i, j]  at  quads(i, j)\n", "", "field", "has no `holds`"),
        ("fragment warp_c", "fragment import", "name", "import"),
    ],
)
def test_a_wrong_entry_is_refused(
    old: str, new: str, code: str, message: str, tmp_path: Path
) -> None:
    first = mistakes(tmp_path, TEXT.replace(old, new, 1))[0]
    assert message in first.message
    assert first.code == code


def test_a_lane_holds_whole_registers(tmp_path: Path) -> None:
    text = "layout one(x, y) { lane = x register = y } "
    text += "fragment f { shape m=32 k=1 lanes=32 holds float16[i, k] at one(i, k) }"
    (mistake,) = mistakes(tmp_path, text)
    assert mistake.code == "registers"


def test_a_name_is_used_once(tmp_path: Path) -> None:
    twice = TEXT + TEXT[TEXT.index("fragment") :]
    assert mistakes(tmp_path, twice)[0].code == "duplicate"


def test_it_has_a_canonical_form() -> None:
    assert format_source(Source("x", TEXT)) == TEXT
    squeezed = TEXT.replace("/// The sums of a warp.\n", "")
    wanted = squeezed.replace("}\n\n", "}\n")
    assert format_source(Source("x", " ".join(squeezed.split()))).replace("}\n\n", "}\n") == wanted


def test_show_draws_it(tmp_path: Path) -> None:
    path = str(written(tmp_path, TEXT))
    table = run("show", "warp_c", "--spec", path)
    assert table.exit_code == 0
    assert "warp_c: a tile that 32 lanes hold" in table.output
    assert "float32[i, j] in 4 registers a lane" in table.output
    found = json.loads(run("show", "warp_c", "--spec", path, "--format", "json").output)
    jsonschema.validate(found, {**json_schema(), "$ref": "#/$defs/layout"})
    assert (found["name"], found["operand"], found["wave"]) == ("warp_c", "c", 32)
    assert found["elements"][9 * 8 + 5]["lane"] == 6


@pytest.mark.parametrize("option", ["--operand=c", "--arch=gfx942", "--cbsz=1", "--blgp=1"])
def test_show_refuses_what_only_an_instruction_has(option: str, tmp_path: Path) -> None:
    result = run("show", "warp_c", "--spec", str(written(tmp_path, TEXT)), option)
    assert result.exit_code == 2
    assert f"warp_c is a fragment, which has no {option.partition('=')[0]}" in result.output


def test_check_counts_it_and_compile_makes_nothing_of_it(tmp_path: Path) -> None:
    path = str(written(tmp_path, TEXT))
    assert run("check", path).output == "1 fragment, no mistakes\n"
    assert run("compile", path, "-o", str(tmp_path / "out")).exit_code == 0
    assert not list(tmp_path.glob("out/warp*"))

"""The pages about the language say what is so."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import mfmadsl
from mfmadsl.export import FORMATS
from mfmadsl.export.peers import constants
from mfmadsl.language import LanguageError, Source, load_source
from mfmadsl.model import ARCHITECTURES, ELEMENT_TYPES
from tests.cli.command import run
from tests.test_readme import PAGES, ROOT, assert_shown, blocks, files, sessions

DIAGNOSTICS = (ROOT / "docs/diagnostics.md").read_text()
ITEMS = ("use", "layout", "intrinsic", "microkernel", "read", "fragment", "accelerator")
SECTIONS = [
    (found[1], found[2])
    for found in re.finditer(
        r"^## `([a-z-]+)`\n(?:(?!^## ).)*?^```wrong\n(.*?)^```",
        DIAGNOSTICS,
        re.MULTILINE | re.DOTALL,
    )
]


@pytest.mark.parametrize(("code", "text"), SECTIONS, ids=[code for code, _ in SECTIONS])
def test_the_example_of_a_code_is_that_mistake(code: str, text: str) -> None:
    with pytest.raises(LanguageError) as error:
        load_source(Source("example.mfma", text))
    assert code in [d.code for d in error.value.diagnostics]


def test_every_code_has_its_section() -> None:
    used = {"alias", "modifier", "file"}
    for path in (ROOT / "mfmadsl/language").glob("*.py"):
        text = path.read_text()
        used |= set(re.findall(r"(?:Diagnostic|_fault|_Fault)\(\s*\"([a-z-]+)\"", text))
        used |= set(re.findall(r"(?:_at|_repeated)\([^\n]*?,\s*\"([a-z-]+)\"", text))
        used |= set(re.findall(r"_error\(\s*\"([a-z-]+)\"", text))
    assert used == set(re.findall(r"^## `([a-z-]+)`$", DIAGNOSTICS, re.MULTILINE))


SHOWN = [
    path
    for path in sorted((ROOT / "docs").glob("*.md"))
    if "```console\n" in path.read_text() and path.stem != "gpu"  # which has a test of its own
]
FENCES = {"asm", "console", "mfma", "python", "python gpu", "wrong", "{eval-rst}"}
"""What may stand on a page, since something reads each; and with a name, what is to be saved."""


@pytest.mark.parametrize("page", SHOWN, ids=lambda page: page.stem)
def test_the_commands_of_a_page_print_what_it_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, content in files(page.read_text()).items():
        Path(name).write_text(content)
    assert assert_shown(page.read_text()) > 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_nothing_is_shown_that_no_test_reads(page: Path) -> None:
    text = page.read_text()
    saved, commands = files(text), " ".join(command for command, _ in sessions(text))
    for name, content in saved.items():
        assert name in commands, f"{name} is saved, and no command takes it"
        if name.endswith(".mfma") and not name.startswith("wrong"):
            load_source(Source(name, content))
    for info in re.findall(r"^```(\S.*)$", text, re.MULTILINE):
        assert info in FENCES or info.partition(" ")[2] in saved, (
            f"```{info}: no test reads it; indent what cannot be run, or see `FENCES`"
        )


def test_the_page_of_exports_shows_what_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs/exports.md").read_text()
    assert assert_shown(page) == 10
    table = page.partition("| `--as` |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == list(FORMATS)


@pytest.mark.parametrize(
    ("picture", "arguments"),
    [
        ("half-a", []),
        ("half-a-banks", ["--view", "banks", "--arch", "gfx942", "--k-pack", "2"]),
    ],
)
def test_the_pictures_of_a_layout_are_what_show_draws(picture: str, arguments: list[str]) -> None:
    shown = run(
        "show", "mfma_f32_16x16x16_f16", "--operand", "a", "--format", "svg", *arguments
    ).stdout
    assert (ROOT / f"docs/pictures/{picture}.svg").read_text() == shown


def test_the_page_of_exports_names_the_commits_that_were_read() -> None:
    page = (ROOT / "docs/exports.md").read_text()
    for name in ("iree", "ck"):
        read = constants(name)["sources"]
        told = re.findall(r"commit ([0-9a-f]{12}) \| `([^`]+)`", page)
        assert any((commit[:12], path) in told for path, commit in read.items()), name


def test_the_page_of_the_emulator_has_every_kind_of_fault() -> None:
    page = (ROOT / "docs/emulator.md").read_text()
    told = set(re.findall(r"^\| `([a-z-]+)` \|", page, re.MULTILINE))
    kinds = {"budget", "no-end", "not-emulated"}
    for path in (ROOT / "mfmadsl/emulator").rglob("*.py"):
        text = path.read_text()
        kinds |= set(re.findall(r"(?:\bfault|AccessError)\(\s*\"([a-z-]+)\"", text))
        kinds |= set(re.findall(r"kind=\"([a-z-]+)\"", text))
    assert kinds - told == {"no-end", "not-emulated"}  # no fault of a kernel, but of its text


def test_the_language_page_lists_every_type() -> None:
    page = (ROOT / "docs/language.md").read_text()
    assert set(ELEMENT_TYPES) <= set(re.findall(r"`([a-z0-9_]+)`", page))


def test_the_language_page_lists_every_field_of_the_grammar() -> None:
    grammar = (ROOT / "grammars/mfma.lark").read_text()
    fields = set(re.findall(r'^ *[?|:].*?"([a-z_]+)" (?:setting|alias|NAME|STRING)', grammar, re.M))
    fields |= set(re.findall(r'"([a-z_]+)"', grammar.partition("!operand_name:")[2].split("\n")[0]))
    fields.add("shape")
    assert {"cycles", "call", "alias", "modifiers", "scale_b"} <= fields
    page = (ROOT / "docs/language.md").read_text()
    assert fields <= set(re.findall(r"`([a-z_]+)`", page))


def test_the_grammar_for_editors_knows_every_word_of_the_language() -> None:
    editor = json.loads((ROOT / "grammars/mfma.tmLanguage.json").read_text())
    rules = editor["repository"]
    keywords = set(re.findall(r'"([a-z_]+)"', (ROOT / "grammars/mfma.lark").read_text()))
    for word in keywords:
        text = f"{word} name " if word in ITEMS else f"{word} "
        found = [n for n in ("item", "field", "operand") if re.search(rules[n]["match"], text)]
        assert found, word
    for name in ELEMENT_TYPES:
        assert re.fullmatch(rules["type"]["match"], name), name
    for include in editor["patterns"]:
        assert include["include"].removeprefix("#") in rules


def test_the_table_of_types_is_true() -> None:
    """A GEMM of each type is scheduled on the chips that have it, and refused on the others."""
    page = (ROOT / "docs/not-supported.md").read_text()
    cells = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| ")]
    rows = [row for row in cells if row[-1] in ("yes", "no")]
    assert len(rows) == 8
    for types, c, *having in rows:
        a = types.split()[0].strip(",")
        for chip, has in zip(ARCHITECTURES, having, strict=True):
            xf32 = "mfma_f32_16x16x8_xf32" if a == "xfloat32" else None
            workload = mfmadsl.matmul(64, 64, 64, "float32" if xf32 else a, c)
            try:
                mfmadsl.gemm_schedule(workload, xf32, arch=chip)
                scheduled = "yes"
            except mfmadsl.MfmadslError:
                scheduled = "no"
            assert scheduled == has, (a, chip)


def test_the_kernel_that_is_written_by_hand_runs(tmp_path: Path) -> None:
    (text,) = blocks((ROOT / "docs/emulator.md").read_text(), "asm")
    x = np.arange(64, dtype=np.float32)
    mfmadsl.sanitize(text, [x], (1,), (64,))
    assert (x == 2 * np.arange(64)).all()

"""The chips by name, and that no other module knows one."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import mfmadsl
from mfmadsl.model import ARCHITECTURES, Architecture, architecture

PACKAGE = Path(mfmadsl.__file__).parent
RECORD = {"model/architecture.py", "model/chips.py", "model/products.py"}
OTHERS = [
    path for path in sorted(PACKAGE.rglob("*.py"))
    if path.relative_to(PACKAGE).as_posix() not in RECORD
]  # fmt: skip
CHIP = re.compile(r"gfx_?\d", re.IGNORECASE)


def test_gfx950_has_more_lds() -> None:
    assert architecture("gfx942").lds_bytes == 64 * 1024
    assert architecture("gfx950").lds_bytes == 160 * 1024


@pytest.mark.parametrize(
    ("arch", "asked", "granted"),
    [("gfx908", 0, 4), ("gfx908", 5, 8), ("gfx942", 0, 8), ("gfx942", 8, 8), ("gfx942", 9, 16)],
)
def test_registers_are_granted_in_whole_granules_and_at_least_one(
    arch: str, asked: int, granted: int
) -> None:
    """LLVM's guide, COMPUTE_PGM_RSRC1: max(0, ceil(vgprs_used / granule) - 1)."""
    assert architecture(arch).granted(asked) == granted


def test_an_unknown_chip_is_an_error_that_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"'gfx1100' is an RDNA chip.*gfx908.*gfx950"):
        architecture("gfx1100")


def chips_in(source: str) -> list[str]:
    """The literals and identifiers of a module that name a chip; text that explains may."""
    tree = ast.parse(source)
    explaining = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    found: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            if isinstance(node.value, str | bytes) and id(node) not in explaining:
                found.append(str(node.value))
            continue
        for field in ("id", "attr", "name", "asname", "arg", "module", "names", "rest"):
            value = getattr(node, field, None)
            values = value if isinstance(value, list) else [value]
            found += [value for value in values if isinstance(value, str)]
    return [text for text in found if CHIP.search(text)]


@pytest.mark.parametrize(
    "source",
    ['x = "gfx942"', "GFX942 = 1", "import gfx90a", "from a import GFX908", "f(gfx950=1)",
     "def gfx942(): ...", "def f(gfx942): ...", "x.gfx942", 'f"{x} on gfx942"', 'x = b"gfx942"',
     "_BY = {'gfx942': 1}", "global GFX942", 'def f(arch="gfx942"): "gfx950"'],
)  # fmt: skip
def test_a_chip_in_code_is_found(source: str) -> None:
    assert chips_in(source)


@pytest.mark.parametrize(
    "source", ['"""gfx942."""', 'x = 1\n"""Of gfx942."""', "x = 1  # gfx942", r'r"(gfx\w+)"']
)
def test_text_that_explains_may_name_a_chip(source: str) -> None:
    assert not chips_in(source)


@pytest.mark.parametrize("path", OTHERS, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_no_module_but_the_record_names_a_chip(path: Path) -> None:
    assert chips_in(path.read_text()) == []


@pytest.mark.parametrize("chip", ARCHITECTURES.values(), ids=lambda chip: chip.name)
def test_each_field_of_a_chip_is_explained(chip: Architecture) -> None:
    """By its name in the record's docstring."""
    for field in vars(chip):
        assert f"`{field}`" in str(type(chip).__doc__)

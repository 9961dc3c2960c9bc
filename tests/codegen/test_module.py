"""The text of generated modules."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from dataclasses import replace
from itertools import product
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mfmadsl.codegen import MARKER, module_text
from mfmadsl.language import find, library
from mfmadsl.model import Intrinsic

HALF = find("mfma_f32_16x16x16_f16")
EVERY = pytest.mark.parametrize("intrinsic", library().values(), ids=lambda i: i.name)
DENSE = [i for i in library().values() if not i.sparse and not i.scales]


def outline(text: str) -> list[str]:
    """The statements of a module, without the contents of its strings."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = ""
    return [ast.dump(statement) for statement in tree.body]


@EVERY
def test_a_module_says_what_it_is_and_by_whom_it_was_made(intrinsic: Intrinsic) -> None:
    documentation = ast.get_docstring(ast.parse(module_text(intrinsic)))
    assert documentation is not None
    assert documentation.startswith(f"{intrinsic.name}: C[{intrinsic.m}, {intrinsic.n}] += ")
    assert intrinsic.doc in documentation
    assert MARKER in documentation


@EVERY
def test_the_text_ends_in_a_line_end_and_has_no_trailing_blanks(intrinsic: Intrinsic) -> None:
    text = module_text(intrinsic)
    assert text.endswith("\n")
    assert not text.endswith("\n\n")
    assert [line for line in text.splitlines() if line != line.rstrip()] == []
    assert "\n\n\n\n" not in text


@pytest.mark.parametrize("intrinsic", DENSE, ids=lambda i: i.name)
def test_the_maps_in_the_text_are_those_of_the_layouts(intrinsic: Intrinsic) -> None:
    names: dict[str, object] = {"T": SimpleNamespace(int32=int)}
    tree = ast.parse(module_text(intrinsic))
    functions = [s for s in tree.body if isinstance(s, ast.FunctionDef)]
    tree.body = [f for f in functions if f.name.endswith("_slot") or f.name.startswith("index")]
    exec(compile(tree, "maps", "exec"), names)
    for operand in (intrinsic.a, intrinsic.b, intrinsic.c):
        slot, index_map = names[f"{operand.name}_slot"], names[f"index_map_{operand.name.upper()}"]
        assert callable(slot)
        assert callable(index_map)
        rows, columns = operand.shape
        several = intrinsic.blocks > 1
        for block, row, column in product(range(intrinsic.blocks), range(rows), range(columns)):
            place = operand.layout.slot(row, column, block)
            assert slot(*((block,) if several else ()), row, column) == place
            batch = (7 * intrinsic.blocks + block,) if several else ()
            found = index_map(*batch, 3 * rows + row, 5 * columns + column)
            assert found == (*((7,) if several else ()), 3, 5, *place)


def test_the_inverse_of_a_map_reads_as_a_person_would_write_it() -> None:
    assert "A[lane % 16, lane // 16 * 4 + register]" in module_text(HALF)


def test_the_same_bytes_come_out_of_every_process() -> None:
    program = (
        "import sys; from mfmadsl.codegen import module_text; from mfmadsl.language import library;"
        "sys.stdout.write(''.join(map(module_text, library().values())))"
    )
    texts = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert texts == {"".join(map(module_text, library().values())).encode()}


@given(st.text(st.characters()))
@settings(max_examples=50)
def test_no_doc_comment_can_become_code(doc: str) -> None:
    plain = outline(module_text(replace(HALF, doc="x")))
    assert outline(module_text(replace(HALF, doc=doc))) in (
        plain,
        outline(module_text(replace(HALF, doc=""))),
    )


@pytest.mark.parametrize(
    "doc",
    ['"""\nimport os\n"""', "\\", '\\"""', '"', "{{ 7 * 7 }}", "{% raw %}", "\0", "\r", "\u202e"],
)
def test_a_doc_comment_full_of_traps_stays_text(doc: str) -> None:
    text = module_text(replace(HALF, doc=doc))
    assert outline(text) == outline(module_text(replace(HALF, doc="x")))
    documentation = ast.get_docstring(ast.parse(text), clean=False)
    assert documentation is not None
    assert doc in documentation

"""No text gets a traceback, and what is accepted is one-to-one."""

from __future__ import annotations

import random
from contextlib import suppress
from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.lark import from_lark
from lark import Lark

from mfmadsl.codegen import ModuleError, module_text
from mfmadsl.language import LanguageError, Source, library_files, load_source
from mfmadsl.model import Intrinsic
from mfmadsl.report import intrinsic_summary
from mfmadsl.resources import resource_folder

TEXTS = [path.read_text() for path in library_files()]
WORDS = ["use", "layout", "intrinsic", "{", "}", "(", ")", "[", "]", "=", ",", "+", "-", "*", "/",
         "%", "//", "///", '"', "a", "b", "c", "i", "j", "k", "block", "BLOCK", "K", "0", "1", "4",
         "16", "64", "999999999", "at", "shape", "float16", "int8", "float8_e4m3fn", "operand",
         "accumulator", "accelerator", "in", "calls", "cycles", "gfx942", "gfx950", "modifiers",
         "neg", "scale_a", "read", "from_lane", "from_element", "chips", "lane",
         "register"]  # fmt: skip


def check(text: str) -> None:
    """Either every mistake can be shown, or what is described is one-to-one and onto."""
    refused = None
    try:
        for intrinsic in load_source(Source("fuzz.mfma", text)):
            check_layouts(intrinsic)
            check_module(intrinsic)
    except LanguageError as error:
        refused = error
    assert refused is None or (refused.diagnostics and str(refused))


def check_module(intrinsic: Intrinsic) -> None:
    """What is accepted becomes a module that Python can read, or it is said why not."""
    assert intrinsic.name in intrinsic_summary(intrinsic)
    with suppress(ModuleError):
        compile(module_text(intrinsic), "fuzz.py", "exec")


def check_layouts(intrinsic: Intrinsic) -> None:
    for operand in intrinsic.operands.values():
        layout = operand.layout
        elements = layout.blocks * layout.rows * layout.columns
        slots = set(product(range(layout.lanes), range(layout.elements_per_lane)))
        assert len(layout.slots) == elements == len(slots)
        assert set(layout.slots) == slots


GRAMMAR = Lark((resource_folder("grammars") / "mfma.lark").read_text(), start="item")
SENTENCES = from_lark(
    GRAMMAR,
    explicit={
        "NAME": st.sampled_from([word for word in WORDS if word.isidentifier()]),
        "INTEGER": st.sampled_from(["0", "1", "2", "4", "16", "64", "128"]),
    },
)


@settings(max_examples=150, deadline=10_000)
@given(st.lists(SENTENCES, max_size=3).map("\n".join))
def test_sentences_of_the_grammar(text: str) -> None:
    check(text)


@settings(max_examples=150, deadline=10_000)
@given(st.lists(st.sampled_from(WORDS), max_size=60).map(" ".join))
def test_words_of_the_language_in_any_order(text: str) -> None:
    check(text)


@settings(max_examples=150, deadline=10_000)
@given(st.integers(0, 2**32), st.sampled_from(TEXTS), st.integers(1, 4))
def test_files_of_the_library_with_a_few_words_changed(seed: int, text: str, count: int) -> None:
    generator = random.Random(seed)
    start = generator.randrange(len(text))  # a part, since most files are long
    text = "use layouts\n" + text[text.find("intrinsic", start) :][:1500]
    for _ in range(count):
        at = generator.randrange(len(text) + 1)
        end = min(len(text), at + generator.choice([0, 0, 1, 1, 2, 5, 20]))
        text = text[:at] + generator.choice(["", " ", *WORDS]) + text[end:]
    check(text)


@settings(max_examples=50, deadline=10_000)
@given(st.text(max_size=300))
def test_any_text_at_all(text: str) -> None:
    check(text)

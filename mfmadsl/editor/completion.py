"""What may be written at a place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

from mfmadsl.editor.element_type import type_summary
from mfmadsl.editor.keywords import FIELDS, ITEMS, RULES, SHAPES
from mfmadsl.editor.layouts import home, layouts_of, signature
from mfmadsl.editor.llvm_intrinsic import call_summary, calls_of
from mfmadsl.editor.scan import Expected, Field, Item, expected_at, in_comment, word_at
from mfmadsl.language import Checked
from mfmadsl.language.document import SUFFIX
from mfmadsl.model import ARCHITECTURES, ELEMENT_TYPES, FEATURES, INDICES, MODIFIERS

_SCALE = "float8_e8m0fnu"
_OF_CPUS = "uint8"
_AGAIN = ("a", "b")  # the fields of an intrinsic that may have several lines


class Completion(NamedTuple):
    """A word, what it is and says, and what is written for it in place of `start` to `end`."""

    word: str
    kind: Literal["keyword", "layout", "type", "chip", "file", "call", "name"]
    detail: str
    written: str
    start: int
    end: int


def completions(checked: Checked, offset: int) -> list[Completion]:
    """The words that fit at a place, in a fixed order; none within a comment.

    What has been written of the word is replaced, whether it fits or not.
    """
    text = checked.source.text
    if in_comment(text, offset):
        return []
    word = word_at(text, offset)
    if word is not None and word.start == offset:
        word = None  # what follows the place stays
    start, end = (offset, offset) if word is None else (word.start, word.end)
    item, expected = expected_at(text, start)
    if word is not None and word.kind == "string":
        start, end = start + 1, end - (word.text.endswith('"') and len(word.text) > 1)
        if not (expected.role == "string" and start <= offset <= end):
            return []
    found = _fitting(checked, item, expected, quoted=word is not None and word.kind == "string")
    return [Completion(*each, start, end) for each in found]


_Offer = tuple[str, Literal["keyword", "layout", "type", "chip", "file", "call", "name"], str, str]


def _fitting(
    checked: Checked, item: Item | None, expected: Expected, quoted: bool
) -> Iterable[_Offer]:
    if item is None:
        return _words("keyword", ITEMS)
    kind, role, field = item.keyword.text, expected.role, expected.field
    offers: list[_Offer] = []
    if role == "use":
        offers += _files(checked)
    elif role == "type" and field is not None:
        offers += _types(kind, field)
    elif role == "layout":
        offers += _layouts(checked, kind)
    elif role == "argument" and field is not None:
        offers += _arguments(checked, field)
    elif role == "at":
        offers += _words("keyword", {"in" if kind == "accelerator" else "at": ""})
    elif role == "string" and kind != "accelerator":
        offers += [
            (call, "call", call_summary(call) or "", call if quoted else f'"{call}"')
            for call in calls_of(kind)
        ]
    elif role in ("setting", "word") and field is not None:
        offers += _settings(kind, field)
    if kind == "layout":
        offers += _of_layout(item, expected)
    elif expected.begins:
        offers += _fields(item, kind)
    return offers


def _words(kind: Literal["keyword", "name"], known: Mapping[str, str]) -> list[_Offer]:
    return [(word, kind, says, word) for word, says in known.items()]


def _fields(item: Item, kind: str) -> list[_Offer]:
    """The fields that the entry has not yet."""
    given = {field.keyword.text for field in item.fields}
    again = _AGAIN if kind == "intrinsic" else ()
    known = FIELDS.get(kind, {})
    return _words("keyword", {w: s for w, s in known.items() if w not in given or w in again})


def _files(checked: Checked) -> list[_Offer]:
    """What `use` can name, where it is found first."""
    found: dict[str, str] = {}
    for folder in checked.folders:
        for path in sorted(folder.glob(f"*{SUFFIX}")):
            if str(path) != checked.source.name:
                found.setdefault(path.stem, str(folder))
    return [(name, "file", folder, name) for name, folder in found.items() if name.isidentifier()]


def _types(kind: str, field: Field) -> list[_Offer]:
    """The element types that an operand of the entry can have."""
    names = list(ELEMENT_TYPES)
    if kind == "intrinsic":
        scale = field.keyword.text.startswith("scale")
        names = [n for n in names if (n == _SCALE) == scale and n != _OF_CPUS]
    return [(name, "type", type_summary(name) or "", name) for name in names]


def _layouts(checked: Checked, kind: str) -> list[_Offer]:
    """The layouts in scope that are of the entry's kind of registers."""
    of_vectors = kind == "microkernel"
    return [
        (name, "layout", f"{signature(layout)}, in {home(layout)}", name)
        for name, layout in sorted(layouts_of(checked).items())
        if layout.of_vectors == of_vectors
    ]


def _arguments(checked: Checked, field: Field) -> list[_Offer]:
    """The indices of the operand, and the parameters of the layout by name."""
    texts = [token.text for token in field.tokens]
    indices = texts[texts.index("[") + 1 : texts.index("]")]
    named = {index: "an index of the operand" for index in indices if index in ("i", "j", "k")}
    offers = _words("name", named)
    layout = layouts_of(checked).get(texts[texts.index("]") + 2])
    for parameter in layout.parameters if layout else ():
        says = f"a parameter of {signature(layout)}" if layout else ""
        offers.append((parameter.text, "name", says, f"{parameter.text}="))
    return offers


def _settings(kind: str, field: Field) -> list[_Offer]:
    """What the words of a field are, but for those that it has."""
    name = field.keyword.text
    given = {token.text for token in field.tokens}
    if name == "shape":
        return [(w, "name", s, f"{w}=") for w, s in SHAPES[kind].items() if w not in given]
    if name in ("cycles", "narrow_cycles", "chips"):
        sign = "" if name == "chips" else "="
        chips = [chip for chip in ARCHITECTURES.values() if chip.name not in given]
        return [(chip.name, "chip", chip.family, f"{chip.name}{sign}") for chip in chips]
    if name == "modifiers":
        return _words("name", {m: "" for m in MODIFIERS if m not in given})
    if name == "features":
        return _words("name", {f: "" for f in FEATURES if f not in given})
    if name == "call" and kind == "intrinsic":
        return _words("keyword", {"unknown": "LLVM does not have the intrinsic"})
    if kind == "microkernel" and name in INDICES:
        again = {"broadcast": "a register holds the elements again and again until it is full"}
        return _words("keyword", {w: s for w, s in again.items() if w not in given})
    return []


def _of_layout(item: Item, expected: Expected) -> list[_Offer]:
    """The rules that a layout has not yet, or what its expressions can name."""
    offers: list[_Offer] = []
    if expected.begins:
        given = {field.keyword.text for field in item.fields}
        offers += [(w, "keyword", s, f"{w} = ") for w, s in RULES.items() if w not in given]
    if expected.role == "expression":
        body = next((i for i, t in enumerate(item.tokens) if t.text == "{"), 0)
        names = [t.text for t in item.tokens[2:body] if t.kind == "word"]
        known = dict.fromkeys(names, "a parameter") | {"block": "the number of the block"}
        known |= {name.upper(): f"the number of values of {name}" for name in known}
        offers += _words("name", known)
    return offers

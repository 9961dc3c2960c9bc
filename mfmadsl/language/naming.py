"""Names: whether they can be those of modules, and whether they say what the entry says."""

from __future__ import annotations

import keyword
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence

from mfmadsl.language.diagnostic import Diagnostic
from mfmadsl.language.syntax import CallField, IntrinsicItem, Name
from mfmadsl.model import ELEMENT_TYPES, ElementType, Operand

# A generated module lies on the user's import path: it must not hide somebody else's.
_FOREIGN_MODULES = {"tvm", "tvm_ffi", "numpy", "mfmadsl", *sys.stdlib_module_names}

_ISA_NAME = re.compile(
    r"(?:v_)?(?:mfma|smfmac|mfma_scale)_(?P<c>[a-z]+\d+)_(?P<m>\d+)x(?P<n>\d+)x(?P<k>\d+)"
    r"(?:_(?P<blocks>\d+)b)?_?(?P<a>[a-z]+\d+?)(?:_(?P<b>[a-z]+\d))?(?:_1k|_ocp)?"
)
_TILE = re.compile(r"(\d+)x(\d+)(?:x(\d+))?")
_SHORT_TYPE = re.compile(r"[a-z]+\d+")
_LLVM_SHAPE = re.compile(r"(\d+)x(\d+)x(\d+)")


def check_name(name: Name) -> list[Diagnostic]:
    """Whether an intrinsic may be called so."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name.text):
        hint = f"write `{name.text.lower().strip('_')}`"
        message = "an intrinsic's name is in lower case"
        return [Diagnostic("name", message, name.span, hint)]
    taken = "a word of Python" if keyword.iskeyword(name.text) else "the name of another module"
    if keyword.iskeyword(name.text) or name.text in _FOREIGN_MODULES:
        message = f"`{name.text}` is {taken}: the generated module could not be imported"
        hint = "use the instruction's name from the ISA manual"
        return [Diagnostic("name", message, name.span, hint)]
    return []


def check_agreement(
    item: IntrinsicItem,
    aliases: Sequence[Name],
    call: CallField | None,
    shape: Mapping[str, int],
    operands: Mapping[str, Sequence[Operand]],
) -> Iterator[Diagnostic]:
    """Names that state a shape and types must state the ones of the entry."""
    size = "x".join(str(shape[d]) for d in "mnk")
    for name in (item.name, *aliases):
        stated = _ISA_NAME.fullmatch(name.text)
        if not stated:
            continue
        if "x".join(stated.group("m", "n", "k")) != size:
            message = f"the name says another shape than {size}"
            yield Diagnostic("name", message, name.span)
        if stated["blocks"] and int(stated["blocks"]) != shape["blocks"]:
            message = f"the name says {stated['blocks']} blocks, the entry {shape['blocks']}"
            yield Diagnostic("name", message, name.span)
        for operand in ("c", "a", "b"):
            short = stated[operand]
            types = {o.type for o in operands.get(operand, ())}
            if short and types and short not in {t.short for t in types}:
                message = f"the name says `{operand}` is {short}, the entry {_listed(types)}"
                yield Diagnostic("name", message, name.span)
    if call:
        found = _LLVM_SHAPE.search(call.text)
        if found and found.group() != size:
            message = f"the LLVM intrinsic is for {found.group()}, the entry for {size}"
            yield Diagnostic("call", message, call.span)


def check_microkernel_name(
    name: Name, shape: Mapping[str, int], types: Mapping[str, ElementType]
) -> Iterator[Diagnostic]:
    """A word of the name that is a shape, or types of A and B, must be those of the entry."""
    shorts = {t.short for t in ELEMENT_TYPES.values()}
    for word in name.text.split("_"):
        stated = _TILE.fullmatch(word)
        size = [shape[d] for d in "mnk"]
        if stated and [int(x) for x in stated.groups() if x] != size[: 3 if stated[3] else 2]:
            message = f"the name says another shape than {'x'.join(map(str, size))}"
            yield Diagnostic("name", message, name.span)
        told = _SHORT_TYPE.findall(word)
        if not told or "".join(told) != word or not shorts.issuperset(told):
            continue
        entry = [types["a"].short, types["b"].short]
        if (told * 2 if len(told) == 1 else told) != entry:
            own = "".join(dict.fromkeys(entry))
            message = f"the name says {word}, the entry {own}"
            yield Diagnostic("name", message, name.span)


def _listed(types: Iterable[object]) -> str:
    return " or ".join(sorted(map(str, types)))

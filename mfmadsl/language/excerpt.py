"""The entries of a file as they are written, for those who want to read one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mfmadsl.language.document import read_source
from mfmadsl.language.library import load_entries
from mfmadsl.language.parser import item_spans, parse
from mfmadsl.model import Intrinsic, Microkernel


def entry_texts(path: Path, search: Sequence[Path] = ()) -> dict[str, str]:
    """The text of each intrinsic and micro-kernel of a file, with the comment before it, by name.

    An entry that stands for several, of other types, is the text of each. Raises what
    `load_entries` does.
    """
    source = read_source(path)
    entries = load_entries(path, search)
    cuts = list(item_spans(source.text))
    written = {}
    for item in parse(source)[0]:
        start, end = next((a, b) for a, b in cuts if a <= item.name.span.start < b)
        lines = source.text[start:end].strip().splitlines()
        while lines[-1].lstrip().startswith("//") or not lines[-1].strip():
            lines.pop()  # comments that stand between this and the next
        written[item.name.text] = "\n".join(lines) + "\n"
    described: list[Intrinsic | Microkernel] = [*entries.intrinsics, *entries.microkernels]
    found = {}
    for entry in described:
        types = f"_{entry.a.type.short}_{entry.b.type.short}"  # of one that stands for several
        name = entry.name if entry.name in written else entry.name.removesuffix(types)
        found[entry.name] = written[name]
    return found

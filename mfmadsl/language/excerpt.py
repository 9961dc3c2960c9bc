"""The entries of a file as they are written, for those who want to read one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mfmadsl.language.check import check_source
from mfmadsl.language.document import read_source
from mfmadsl.language.parser import item_spans
from mfmadsl.model import Intrinsic, Microkernel


def entry_texts(path: Path, search: Sequence[Path] = ()) -> dict[str, str]:
    """The text of each intrinsic and micro-kernel of a file, with the comment before it, by name.

    An item that stands for several entries is the text of each. Raises what `load_entries` does.
    """
    source = read_source(path)
    checked = check_source(source, path, search)
    checked.entries()  # raises, where there are mistakes
    cuts = list(item_spans(source.text))
    found: dict[str, str] = {}
    for item, models in checked.described:
        start, end = next((a, b) for a, b in cuts if a <= item.name.span.start < b)
        lines = source.text[start:end].strip().splitlines()
        while lines[-1].lstrip().startswith("//") or not lines[-1].strip():
            lines.pop()  # comments that stand between this and the next
        text = "\n".join(lines) + "\n"
        found |= {m.name: text for m in models if isinstance(m, Intrinsic | Microkernel)}
    return found

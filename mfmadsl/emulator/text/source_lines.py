"""Lines of the source that assembly text comes from, as `.file` and `.loc` name them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

_FILE = re.compile(r'\s*\.file\s+(\d+)\s+"((?:[^"\\]|\\.)*)"(?:\s+"((?:[^"\\]|\\.)*)")?')
_LOC = re.compile(r"\s*\.loc\s+(\d+)\s+(\d+)")
_ESCAPE = re.compile(r"\\(.)")


def source_lines(lines: Sequence[str]) -> Mapping[int, str]:
    """`file:line` of each line of a text, as far as that is known; both count from 1."""
    files: dict[str, str] = {}
    found: dict[int, str] = {}
    current = None
    for number, line in enumerate(lines, start=1):
        if ".file" in line and (file := _FILE.match(line)):
            folder, name = (_ESCAPE.sub(r"\1", part or "") for part in (file[2], file[3]))
            whole = name if name.startswith("/") or not folder else f"{folder}/{name}"
            files[file[1]] = whole if name else folder
        elif ".loc" in line and (place := _LOC.match(line)):
            file_name = files.get(place[1])
            known = file_name is not None and place[2] != "0"
            current = f"{file_name}:{place[2]}" if known else None
        elif ".section" in line:
            current = None
        elif current is not None:
            found[number] = current
    return found


def file_directive(number: int, path: str) -> str:
    """The `.file` that gives a path a number."""
    quoted = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'\t.file\t{number} "{quoted}"'

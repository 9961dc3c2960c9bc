"""AMD's published layouts, beside the operands of the library that they are of."""

from __future__ import annotations

import json

import pytest

from mfmadsl.language import library
from tests.conftest import DATA

TABLES = {
    path.stem: json.loads(path.read_text())
    for path in sorted((DATA / "register_layouts").glob("*.json"))
}
COVERED = [
    pytest.param(intrinsic, operand, table, id=f"{name}-{operand}")
    for intrinsic in library().values()
    for name, table in TABLES.items()
    if name.partition(".")[2] in intrinsic.mnemonics
    for operand in ("a", "b", "c", *(["index"] if intrinsic.sparse else []))
]

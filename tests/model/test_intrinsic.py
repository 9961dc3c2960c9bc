"""Facts of the entries against what LLVM selects."""

from __future__ import annotations

from typing import Any

import pytest

from mfmadsl.language import library
from mfmadsl.model import Intrinsic


@pytest.mark.parametrize("intrinsic", library().values(), ids=lambda i: i.name)
def test_chips_names_and_registers_are_llvms(
    intrinsic: Intrinsic, llvm_intrinsics: dict[str, Any]
) -> None:
    forms = llvm_intrinsics[intrinsic.call]["forms"]
    assert set(intrinsic.chips) == {chip for form in forms for chip in form["cpus"]}
    assert {form["mnemonic"] for form in forms} <= set(intrinsic.mnemonics)
    c, a, b = (intrinsic.operand(x).register_count for x in "cab")
    assert all(form["registers"] == [c, a, b, c] for form in forms)

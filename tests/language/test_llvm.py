"""What the language says that LLVM has, against LLVM itself."""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
import pytest

from mfmadsl.language import Source, load_source
from mfmadsl.language.llvm import llvm_intrinsics
from mfmadsl.model import ARCHITECTURES
from tests.language.entries import only, spoiled

NAMES = sorted(llvm_intrinsics())


def test_all_that_llvm_selects_for_our_chips_is_listed(llvm_intrinsics: dict[str, Any]) -> None:
    listed = {name: set(found.chips) for name, found in globals()["llvm_intrinsics"]().items()}
    selected: dict[str, set[str]] = {}
    for name, found in llvm_intrinsics.items():
        for form in found["forms"]:
            selected.setdefault(name, set()).update(set(form["cpus"]) & set(ARCHITECTURES))
    assert listed == {name: chips for name, chips in selected.items() if chips}


@pytest.mark.parametrize("name", NAMES)
def test_llvm_takes_these_operands_and_no_others(name: str) -> None:
    for a, b, c in llvm_intrinsics()[name].operands:
        assert called(name, a, b, c)
    # One element more in C: an overloaded intrinsic takes no other A and B either.
    a, b, c = llvm_intrinsics()[name].operands[0]
    assert not called(name, a, b, "<5 x float>")
    assert not called(name, "<5 x i8>", b, c)


def called(name: str, a: str, b: str, c: str) -> bool:
    """Whether LLVM accepts a call of the intrinsic with these types."""
    scaled = ".scale." in name
    name += "".join(f".{mangled(x)}" for x in (a, b)) if scaled else ""
    # Of scaled operands the formats come first, whose size must be that of the registers.
    formats = {"<6 x i32>": 2, "<4 x i32>": 4}
    values = [formats.get(a, 0), formats.get(b, 0), 0, 0, 0, 0] if scaled else [0, 0, 0]
    types = ", ".join("i32" for _ in values)
    constants = ", ".join(f"i32 {value}" for value in values)
    text = f"""
        declare {c} @{name}({a}, {b}, {c}, {types})
        define {c} @caller({a} %a, {b} %b, {c} %c) {{
          %d = call {c} @{name}({a} %a, {b} %b, {c} %c, {constants})
          ret {c} %d
        }}"""
    try:
        module = llvm.parse_assembly(text)
        module.verify()
    except RuntimeError:
        return False
    # LLVM renames an overloaded declaration whose types are not those of its name.
    return any(function.name == name for function in module.functions)


def mangled(vector: str) -> str:
    count, _, element = vector.strip("<>").partition(" x ")
    return f"v{count}{element}"


def test_a_chip_on_which_llvm_lacks_it_is_a_mistake() -> None:
    text = spoiled("gfx90a=32", "gfx908=32").replace("16x16x16", "16x16x32")
    text = text.replace("k=16", "k=32").replace("pack=4", "pack=8").replace("32f16", "32.f16")
    text = text.replace("  alias   v_mfma_f32_16x16x32.f16\n", "")
    found = only(text)
    assert found.code == "call"
    assert 'LLVM has no "llvm.amdgcn.mfma.f32.16x16x32.f16" on gfx908 and gfx942' in found.message
    assert found.hint == "`cycles` may name gfx950; or write `unknown` after the text"
    (intrinsic,) = load_source(Source("x.mfma", text.replace('32.f16"', '32.f16" unknown')))
    assert not intrinsic.in_llvm

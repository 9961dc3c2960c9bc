"""Names of matrix instructions that manuals, LLVM, our kernels and our pages print are found."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import mfmadsl
from mfmadsl.language import find, library
from mfmadsl.model import Intrinsic

ROOT = Path(__file__).parent.parent.parent
EVERY = pytest.mark.parametrize("intrinsic", library().values(), ids=lambda i: i.name)
PRINTED = re.compile(r"\bv_(?:s?mfma|smfmac)c?_[a-z0-9_]*\d+x\d+x\d+[a-z0-9_]*")


def spellings(intrinsic: Intrinsic) -> Iterator[str]:
    builtin = intrinsic.call.removeprefix("llvm.amdgcn.").replace(".", "_")
    for name in (intrinsic.name, *intrinsic.mnemonics):
        bare = name.removeprefix("v_")
        yield from (bare, f"v_{bare}", f"V_{bare.upper()}", bare.upper(), f" {name}\n")
    yield from (intrinsic.call, f"__builtin_amdgcn_{builtin}")


@EVERY
def test_an_entry_is_found_by_all_that_it_is_called(intrinsic: Intrinsic) -> None:
    chip = intrinsic.chips[0]
    for name in spellings(intrinsic):
        found = find(name, chip)
        assert (found.call, found.chips) == (intrinsic.call, intrinsic.chips), name
    for name in (intrinsic.name, f"V_{intrinsic.name.upper()}"):
        assert find(name, chip) is intrinsic


def test_what_has_no_scales_is_the_scaled_one() -> None:
    for extents in ("16x16x128", "32x32x64"):
        scaled = find(f"mfma_scale_f32_{extents}_f8f6f4_bf8_fp6")
        assert find(f"v_mfma_f32_{extents}_f8f6f4_bf8_fp6") is scaled
        assert find(f"mfma_scale_f32_{extents}_f8f6f4_bf8_fp6_unscaled") is scaled
        overloaded = f"llvm.amdgcn.mfma.scale.f32.{extents}.f8f6f4.v8i32.v8i32"
        for name in (f"v_mfma_f32_{extents}_f8f6f4", overloaded):
            assert find(name).chips == ("gfx950",)


def test_llvms_mnemonics_are_found(llvm_intrinsics: dict[str, Any]) -> None:
    names = {
        form["mnemonic"]
        for name, stated in llvm_intrinsics.items()
        for form in stated["forms"]
        if "mfma" in name or "smfmac" in name
    }
    assert names
    for name in names:
        assert find(name)


@pytest.mark.parametrize(
    ("dtype", "printed"),
    [("float8_e4m3fn", "v_mfma_f32_16x16x128_f8f6f4"), ("float16", "v_mfma_f32_16x16x32_f16")],
)
def test_what_our_kernels_print_is_found(dtype: str, printed: str) -> None:
    """Of each instruction alone `tests/backend/gpu/test_instruction.py` asks what LLVM prints."""
    kernel = mfmadsl.Gemm(None, "gfx950", 16, 16, 128, dtypes=(dtype, None, None)).build()
    assert set(PRINTED.findall(kernel.assembly)) == {printed}
    assert find(printed, "gfx950").a.type.dtype == dtype


def test_what_our_pages_print_is_found() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    printed = {name for page in pages for name in PRINTED.findall(page.read_text())}
    assert len(printed) > 2
    for name in printed:
        assert find(name)

"""Entries that are written down once: `names` with parameters, and what each of them stands for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mfmadsl.language import LanguageError, library, load_entries
from mfmadsl.language.diagnostic import Source
from mfmadsl.language.formatter import format_source

F8 = """use layouts

/// Inputs of {a} and {b}.
intrinsic mfma_f32_16x16x32_f8 {
  names   "mfma_f32_16x16x32_{a}_{b}"
  shape   m=16 n=16 k=32
  a       float8_e5m2fnuz float8_e4m3fnuz[i, k]  at  operand(i, k, pack=8)
  b       float8_e5m2fnuz float8_e4m3fnuz[k, j]  at  operand(j, k, pack=8)
  c       float32[i, j]                          at  accumulator(i, j)
  call    "llvm.amdgcn.mfma.f32.16x16x32.{a}.{b}"
  cycles  gfx942=16
  alias   "v_mfma_f32_16x16x32{a}_{b}"
}
"""
TILES = """use vectors

/// {m} rows of {n} floats.
microkernel sse2_f32 {
  names       "sse2_f32_{m}x{n}"
  shape       m=6 n=8 k=1
  shape       m=4 n=8 k=1
  a           float32[i, k]  at  rows(i, k)  broadcast
  b           float32[k, j]  at  columns(k, j, width=4, pack=1)
  c           float32[i, j]  at  sums(i, j, width=4)
  expression  c + a * b
  features    sse2
}
"""


def single(text: str, a: str, b: str) -> str:
    """The entry of one pair, as one would write it without `names`."""
    kinds = {"bf8": "float8_e5m2fnuz", "fp8": "float8_e4m3fnuz"}
    lines = [line for line in text.splitlines() if not line.startswith("  names")]
    text = "\n".join(lines).replace('"v_mfma_f32_16x16x32{a}_{b}"', f"v_mfma_f32_16x16x32{a}_{b}")
    text = text.replace("mfma_f32_16x16x32_f8", f"mfma_f32_16x16x32_{a}_{b}")
    for operand, short in (("a", a), ("b", b)):
        text = text.replace(
            f"  {operand}       float8_e5m2fnuz float8_e4m3fnuz",
            f"  {operand}       {kinds[short]}",
        )
    return text.replace("{a}", a).replace("{b}", b)


def entries(tmp_path: Path, text: str, name: str = "x") -> list[object]:
    path = tmp_path / f"{name}.mfma"
    path.write_text(text)
    found = load_entries(path)
    return [*found.intrinsics, *found.microkernels]


def mistakes(tmp_path: Path, text: str) -> list[tuple[str, str, str]]:
    with pytest.raises(LanguageError) as told:
        entries(tmp_path, text)
    return [(d.code, d.message, d.hint) for d in told.value.diagnostics]


def test_it_is_the_entries_that_one_would_write(tmp_path: Path) -> None:
    pairs = [(a, b) for a in ("bf8", "fp8") for b in ("bf8", "fp8")]
    alone = [entries(tmp_path, single(F8, a, b), f"{a}{b}")[0] for a, b in pairs]
    assert entries(tmp_path, F8) == alone


def test_micro_kernels_have_a_shape_each(tmp_path: Path) -> None:
    large, small = entries(tmp_path, TILES)
    assert [large.name, small.name] == ["sse2_f32_6x8", "sse2_f32_4x8"]  # type: ignore[attr-defined]
    assert small.doc == "4 rows of 8 floats."  # type: ignore[attr-defined]
    plain = TILES.replace('  names       "sse2_f32_{m}x{n}"\n', "").replace(
        "  shape       m=6 n=8 k=1\n", ""
    )
    (alone,) = entries(tmp_path, plain.replace("sse2_f32 ", "sse2_f32_4x8 "), "y")
    assert replace(alone, doc="4 rows of 8 floats.") == small  # type: ignore[type-var]


@pytest.mark.parametrize("text", [F8, TILES])
def test_it_has_a_canonical_form(text: str) -> None:
    assert format_source(Source("x", text)) == text


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (F8.replace('32_{a}_{b}"\n  shape', '32_{a}_{q}"\n  shape'),
         ("name", "`{q}` is no parameter of a name", "there are {a}, {b}")),
        (F8.replace('32_{a}_{b}"\n  shape', '32_{a}"\n  shape'),
         ("name", "two entries would be called `mfma_f32_16x16x32_bf8`",
          "the name needs a parameter for what they differ in")),
        (F8.replace('"v_mfma_f32_16x16x32{a}_{b}"', '"v mfma{a}{b}"'),
         ("name", '"v mfmabf8bf8" is no name of an instruction', "")),
        (F8.replace("{a}.{b}", "{a}.{z}"),
         ("call", '"llvm.amdgcn.mfma.f32.16x16x32.bf8.{z}" is no LLVM intrinsic',
          'an intrinsic of the AMDGPU back end: "llvm.amdgcn.mfma.f32.16x16x16f16"')),
        (F8.replace('"mfma_f32_16x16x32_{a}_{b}"', '"x; import os {a}{b}"'),
         ("name", "an intrinsic's name is in lower case", "write `x; import os bf8bf8`")),
        (TILES.replace("{m}x{n}", "{m}x{a}"),
         ("name", "`{a}` is no parameter of a name", "there are {m}, {n}, {k}")),
        (TILES.replace('{m}x{n}"', '{n}"'),
         ("name", "two entries would be called `sse2_f32_8`",
          "the name needs a parameter for what they differ in")),
        (F8 + F8.replace("use layouts", "").replace("_f8 {", "_f8s {"),
         ("duplicate", "`mfma_f32_16x16x32_bf8_bf8`, one of these entries, is defined twice",
          "the other one is in `mfma_f32_16x16x32_f8`")),
        (F8.replace("  shape", '  names "y_{a}_{b}"\n  shape', 1),
         ("duplicate", "field `names` is given twice", "")),
    ],
)  # fmt: skip
def test_mistakes(tmp_path: Path, text: str, told: tuple[str, str, str]) -> None:
    assert told in mistakes(tmp_path, text)


def test_several_shapes_need_names(tmp_path: Path) -> None:
    text = TILES.replace('  names       "sse2_f32_{m}x{n}"\n', "")
    assert any("shape" in message for _, message, _ in mistakes(tmp_path, text))


@pytest.mark.parametrize(("types", "cycles"), [("fp8_fp4", 32), ("fp4_bf8", 32), ("fp4_fp6", 16)])
def test_an_eight_bit_operand_makes_an_instruction_slow(types: str, cycles: int) -> None:
    """CDNA4 ISA manual, section 7: passes of v_mfma_scale_f32_16x16x128_f8f6f4."""
    assert library()[f"mfma_scale_f32_16x16x128_f8f6f4_{types}"].cycles == (("gfx950", cycles),)

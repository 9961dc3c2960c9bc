"""What people write on the command line: names of instructions, chips and commands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import mfmadsl
from mfmadsl.model import PRODUCTS, product_names
from mfmadsl.model.products import NAMED
from tests.cli.command import run

GEMM = ("-m", 64, "-n", 64, "-k", 64)


@pytest.mark.parametrize(
    "name",
    [
        "v_mfma_f32_16x16x128_f8f6f4",
        "V_MFMA_SCALE_F32_16X16X128_F8F6F4",
        "mfma_scale_f32_16x16x128_f8f6f4",
        "llvm.amdgcn.mfma.scale.f32.16x16x128.f8f6f4",
    ],
)
def test_a_name_without_types_lists_its_pairs(name: str) -> None:
    result = run("show", name)
    assert result.exit_code == 0
    assert "is 25 instructions, by the types of A and B; show one of them" in result.stdout
    assert result.stdout.count("mfma_scale_f32_16x16x128_f8f6f4_") == 25
    pictured = run("show", name, "--format", "svg")
    assert pictured.exit_code == 1
    assert "name one, such as mfma_scale_f32_16x16x128_f8f6f4_fp8_fp8" in pictured.stderr


def test_names_are_found_as_they_are_printed_elsewhere() -> None:
    expected = run("show", "mfma_f32_16x16x16_f16").stdout
    for name in ("V_MFMA_F32_16X16X16_F16", "llvm.amdgcn.mfma.f32.16x16x16f16"):
        assert run("show", name).stdout == expected
        assert "mfma_f32_16x16x16_f16" in run("list", name).stdout
    assert run("show", "DS_READ_B64_TR_B16").exit_code == 0
    told = run("show", "mfma_scale")
    assert told.exit_code == 1
    assert "50 have that in their names, see `mfmadsl list mfma_scale`" in told.stderr


@pytest.mark.parametrize("name", ["wmma", "v_wmma", "frobnicate"])
def test_a_name_that_is_nobodys_is_told_in_a_line(name: str) -> None:
    for arguments in (["show", name], ["gemm", "--arch", "gfx942", *GEMM, "--intrinsic", name]):
        told = run(*arguments)
        assert told.exit_code == 1
        assert f"called `{name}`: " in told.stderr
        assert "`mfmadsl list` lists all" in told.stderr
        assert told.stderr.count("mfma_f32_") <= 5
        assert "amx" not in told.stderr


CHIPS = {
    "MI100": "gfx908",
    **dict.fromkeys(("MI210", "MI250", "MI250X"), "gfx90a"),
    **dict.fromkeys(("MI300A", "MI300X", "MI325X"), "gfx942"),
    **dict.fromkeys(("MI350X", "MI355X"), "gfx950"),
}
"""AMD's products with matrix cores of this kind (LLVM's AMDGPU backend guide, processors)."""


def test_all_products_with_a_chip_of_ours_are_known() -> None:
    assert {*CHIPS} == {*PRODUCTS, *NAMED}
    for chip in set(CHIPS.values()):
        assert set(product_names(chip)) == {name for name, of in CHIPS.items() if of == chip}


def test_a_chip_is_named_in_capitals_too() -> None:
    for name in ("GFX942", "Gfx942"):
        assert mfmadsl.Gemm(None, name, 64, 64, 64).arch == "gfx942"
        assert run("list", "--arch", name).stdout == run("list", "--arch", "gfx942").stdout
    assert run("list", "--arch", "ZNVER5").stdout == run("list", "--arch", "znver5").stdout


@pytest.mark.parametrize("product", CHIPS)
def test_a_chip_is_named_by_its_product(product: str) -> None:
    chip = CHIPS[product]
    for name in (product, product.lower()):
        assert run("list", "--arch", name).stdout == run("list", "--arch", chip).stdout
        built = json.loads(run("gemm", "--arch", name, *GEMM, "--emit", "json").stdout)
        assert built["arch"] == chip
        assert mfmadsl.Gemm(None, name, 64, 64, 64).arch == chip
        assert mfmadsl.target(name).attrs["mcpu"] == chip


def test_the_product_decides_what_the_chip_does_not(tmp_path: Path) -> None:
    """Both have one chip; the second's memory is faster."""
    pages = []
    for product in ("mi300x", "mi325x"):
        page = tmp_path / f"{product}.html"
        result = run("gemm", "--arch", product, *GEMM, "--report", page)
        assert result.exit_code == 0, result.output
        pages.append(page.read_text())
    assert [("MI325X" in page) for page in pages] == [False, True]
    sources = []
    for product in ("mi300x", "mi325x"):
        result = run(
            "tune", "--arch", product, *GEMM, "--trials", 1, "--database", tmp_path / product
        )
        assert result.exit_code == 0, result.output
        sources.append("model of MI325X" in (tmp_path / product / "records.json").read_text())
    assert sources == [False, True]


def test_an_unknown_chip_is_told_with_the_products_there_are() -> None:
    result = run("gemm", "--arch", "mi300", *GEMM)
    assert result.exit_code == 2
    meant = "did you mean `mi300x` or `mi300a`?"
    assert f"unknown chip 'mi300': {meant} mfmadsl knows gfx908 (CDNA1, MI100), gfx90a" in (
        result.stderr
    )
    assert "gfx942 (CDNA3, MI300X, MI325X, MI300A)" in result.stderr
    with pytest.raises(ValueError, match="unknown chip 'gfx94': did you mean `gfx942`"):
        mfmadsl.Gemm(None, "gfx94", 64, 64, 64)


def test_a_product_without_a_record_has_no_model() -> None:
    result = run("profile", "x.s", "--product", "mi300a")
    assert result.exit_code == 2
    assert "of mi300a only the chip is known: name a product that has the same, MI300X" in (
        result.stderr
    )


@pytest.mark.parametrize(
    ("arch", "short", "dtype"),
    [
        ("gfx942", "half", "float16"),
        ("gfx942", "F16", "float16"),
        ("gfx90a", "bf16", "bfloat16"),
        ("gfx908", "f32", "float32"),
        ("gfx90a", "double", "float64"),
        ("gfx942", "i8", "int8"),
        ("gfx942", "fp8", "float8_e4m3fnuz"),
        ("gfx942", "bf8", "float8_e5m2fnuz"),
        ("gfx950", "fp8", "float8_e4m3fn"),
        ("mi355x", "bf8", "float8_e5m2"),
    ],
)
def test_types_have_short_names(arch: str, short: str, dtype: str) -> None:
    built = run("gemm", "--arch", arch, *GEMM, "--in-dtype", short, "--emit", "json")
    assert [each["dtype"] for each in json.loads(built.stdout)["arguments"]][:2] == [dtype, dtype]


def test_types_of_b_and_c_have_short_names() -> None:
    types = ("--in-dtype", "fp8", "--b-dtype", "bf8", "--out-dtype", "bf16")
    built = run("gemm", "--arch", "gfx950", *GEMM, *types, "--emit", "json")
    assert [each["dtype"] for each in json.loads(built.stdout)["arguments"]] == [
        "float8_e4m3fn", "float8_e5m2", "bfloat16",
    ]  # fmt: skip
    refused = run("gemm", "--arch", "mi210", *GEMM, "--in-dtype", "fp8")
    assert "it has no eight-bit floats" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["--emit", "assembly"], "asm"),
        (["--tiling", "blok=64x64"], "block"),
        (["--tiling", "overlap=load"], "loads"),
        (["--epilogue", "bias,gelo"], "gelu"),
        (["--in-dtype", "bf17"], "bfloat16"),
        (["--out-dtype", "flaot32"], "float32"),
    ],
)
def test_a_word_that_there_is_not_is_followed_by_the_one_that_was_meant(
    arguments: list[str], meant: str
) -> None:
    result = run("gemm", "--arch", "gfx942", *GEMM, *arguments)
    assert result.exit_code == 2
    assert f"; did you mean `{meant}`?" in result.stderr


def test_of_python_too() -> None:
    with pytest.raises(ValueError, match=r"there is no 'gelo', but: .*; did you mean `gelu`"):
        mfmadsl.Gemm(None, "gfx942", 64, 64, 64, epilogue=("gelo",))


@pytest.mark.parametrize(
    ("chip", "dtype", "said"),
    [
        ("gfx942", "float8_e4m3fn", "its eight-bit floats are float8_e4m3fnuz and float8_e5m2fnuz"),
        ("gfx950", "float8_e5m2fnuz", "its eight-bit floats are float8_e4m3fn and float8_e5m2"),
        ("gfx90a", "float8_e4m3fn", "it has no eight-bit floats"),
    ],
)
def test_the_eight_bit_floats_of_a_chip_are_told(chip: str, dtype: str, said: str) -> None:
    result = run("gemm", "--arch", chip, *GEMM, "--in-dtype", dtype)
    assert result.exit_code == 1
    assert said in result.stderr


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["gem"], "did you mean `gemm`?"),
        (["porfile", "x.s"], "did you mean `profile`?"),
        (["frobnicate"], "there are: check, compile, completion"),
        (["gemm", "--archh", "gfx942"], "'--arch'"),
        (["--verson"], "'--version'"),
    ],
)
def test_unknown_commands_and_options_say_what_was_meant(arguments: list[str], meant: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert meant in result.stderr

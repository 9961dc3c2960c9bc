"""What `mfmadsl gemm` can be asked for: types, layouts, epilogues, tilings, several launches."""

from __future__ import annotations

import json
import re
from dataclasses import fields, replace
from pathlib import Path

import jsonschema
import numpy as np
import pytest

from mfmadsl import ArgumentError, Gemm
from mfmadsl.cli.gemm_options import DTYPES, SUM_DTYPES, TILING_FIELDS, WORDS, tiling_changes
from mfmadsl.emulator.text.assembly import parse_assembly
from mfmadsl.epilogue import STEPS
from mfmadsl.model import ELEMENT_TYPES, OVERLAPS
from mfmadsl.report import json_schema
from mfmadsl.schedule import Tiling
from tests.cli.command import run, spec
from tests.language.entries import spoiled

ARCH = ("gemm", "--arch", "gfx942")
SMALL = (*ARCH, "-m", 48, "-n", 40, "-k", 64)
LARGE_TILE = (*SMALL, "--intrinsic", "mfma_f32_32x32x8_f16")
SPLIT = (*LARGE_TILE, "--tiling", "split_k=2", "--tiling", "k_step=32")


@pytest.mark.parametrize(
    ("options", "signature"),
    [
        ([], "A: float16[48, 64], B: float16[64, 40], C: float32[48, 40]"),
        (["--in-dtype", "int8", "--trans-b"], "A: int8[48, 64], B: int8[40, 64], C: int32[48, 40]"),
        (["--in-dtype", "float64"], "C: float64[48, 40]"),
        (["--in-dtype", "float8_e4m3fnuz", "--b-dtype", "float8_e5m2fnuz"],
         "A: float8_e4m3fnuz[48, 64], B: float8_e5m2fnuz[64, 40], C: float32[48, 40]"),
        (["--trans-a", "--batch", 3], "A: float16[3, 64, 48], B: float16[3, 64, 40]"),
        (["--epilogue", "scale,bias,silu,residual", "--out-dtype", "float16"],
         "scale: float32[40], bias: float32[40], residual: float32[48, 40], C: float16[48, 40]"),
        (["--in-dtype", "bfloat16", "--out-dtype", "bfloat16", "--epilogue", "gelu"],
         "B: bfloat16[64, 40], C: bfloat16[48, 40]"),
        (["--in-dtype", "int8", "--epilogue", "bias,relu"], "bias: int32[40], C: int32[48, 40]"),
    ],
)  # fmt: skip
def test_every_form_agrees_with_numpy(options: list[object], signature: str) -> None:
    result = run(*SMALL, *options, "--emulate")
    assert result.exit_code == 0, result.output
    assert signature in result.output
    assert "agrees with NumPy in float64" in result.output


SCALED = ("gemm", "--arch", "mi355x", "-m", 33, "-n", 20, "-k", 96, "--scales")


@pytest.mark.parametrize(
    ("options", "signature"),
    [
        (["--in-dtype", "float4_e2m1fn", "--b-dtype", "fp8"],
         "A: uint8[33, 48], B: uint8[20, 96], SCALE_A: uint8[33, 3], SCALE_B: uint8[20, 3]"),
        (["--intrinsic", "mfma_scale_f32_32x32x64_f8f6f4_bf6_bf8"], "A: uint8[33, 72]"),
        (["--in-dtype", "fp8", "--batch", 2, "--epilogue", "bias,relu", "--out-dtype", "float16"],
         "SCALE_B: uint8[2, 20, 3], bias: float32[20], C: float16[2, 33, 20]"),
        (["--in-dtype", "bf6", "--epilogue", "relu"], "C: float32[33, 20]"),
        (["--in-dtype", "fp6", "--b-dtype", "fp4", "--arch", "gfx942", "--epilogue", "bias"],
         "remark     gfx942 has no scaled instructions for float6_e2m3fn and float4_e2m1fn: A and B"
         " become bfloat16"),
    ],
)  # fmt: skip
def test_scaled_operands_agree_with_numpy(options: list[object], signature: str) -> None:
    result = run(*SCALED, "--trans-b", *options, "--emulate")
    assert result.exit_code == 0, result.output
    assert signature in result.output
    assert "agrees with NumPy in float64" in result.output


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--in-dtype", "fp8"], "a scaled B lies as N x K: say `--trans-b`"),
        (["--trans-b"], "float16 is no type of scaled operands"),
        (["--trans-b", "--in-dtype", "fp8", "--trans-a"], "has no transposed A"),
        (["--trans-b", "--in-dtype", "fp8", "-k", 100], "k: 100 is no multiple of 32"),
        (["--trans-b", "--in-dtype", "fp8", "--arch", "gfx942"],
         "float8_e4m3fnuz is no type of scaled operands"),
        (["--trans-b", "--intrinsic", "mfma_scale_f32_16x16x128_f8f6f4_fp8_fp8", "--in-dtype",
          "bf8"], "multiplies float8_e4m3fn by float8_e4m3fn"),
    ],
)  # fmt: skip
def test_what_scaled_operands_have_not_is_told(options: list[object], message: str) -> None:
    result = run(*SCALED, *options)
    assert (result.exit_code, message in result.output) == (1, True), result.output


SPARSE = ("gemm", "-m", 33, "-n", 20, "-k", 96)


def check_agrees(options: list[object], said: str) -> None:
    result = run(*options, "--emulate")
    assert result.exit_code == 0, result.output
    assert said in result.output
    assert "agrees with NumPy in float64" in result.output


BLOCKS = ("gemm", "-m", 70, "-n", 40, "-k", 300, "--trans-b", "--block-scales")


@pytest.mark.parametrize(
    ("options", "signature"),
    [
        (["--arch", "mi300x", "--sparse"],
         "A: float16[33, 48], INDEX: uint8[33, 12], B: float16[96, 20], C: float32[33, 20]"),
        (["--arch", "gfx942", "--intrinsic", "v_smfmac_i32_32x32x32_i8", "--trans-b"],
         "A: int8[33, 48], INDEX: uint8[33, 12], B: int8[20, 96], C: int32[33, 20]"),
        (["--arch", "gfx950", "--sparse", "--in-dtype", "bf8", "--b-dtype", "fp8", "--batch", 2,
          "--epilogue", "bias,gelu", "--out-dtype", "bfloat16"],
         "B: float8_e4m3fn[2, 96, 20], bias: float32[20], C: bfloat16[2, 33, 20]"),
        (["--arch", "gfx942", "--sparse", "--epilogue", "relu"], "C: float32[33, 20]"),
    ],
)  # fmt: skip
def test_a_sparse_operand_agrees_with_numpy(options: list[object], signature: str) -> None:
    check_agrees([*SPARSE, *options], signature)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--arch", "gfx942", "--in-dtype", "fp8"], "SCALE_A: float32[70, 3]"),
        (["--arch", "gfx950", "--in-dtype", "fp8", "--b-dtype", "bf8", "--batch", 2,
          "--out-dtype", "bf16", "--epilogue", "bias,gelu"], "SCALE_B: float32[2, 1, 3]"),
        (["--arch", "gfx942", "--in-dtype", "float8_e4m3fn"], "A and B become float32"),
    ],
)  # fmt: skip
def test_scales_of_blocks_agree_with_numpy(options: list[object], said: str) -> None:
    check_agrees([*BLOCKS, *options], said)


WEIGHTS = ("gemm", "--arch", "gfx942", "-m", 7, "-n", 48, "-k", 256, "--weights")


@pytest.mark.parametrize(
    ("options", "signature"),
    [
        (["gptq", "--group", 64, "--in-dtype", "bf16"],
         "QWEIGHT: int32[32, 48], QZEROS: int32[4, 6], SCALES: bfloat16[4, 48], C: float32[7, 48]"),
        (["awq", "--epilogue", "bias,gelu", "--out-dtype", "f16"],
         "SCALES: float16[2, 48], bias: float32[48], C: float16[7, 48]"),
        (["q4f16"], "gemm_nt_f16_q4f16_f32_7x48x256_kernel(A: float16[7, 256], "
         "Q: uint32[48, 32], SCALES: float16[48, 8]"),
        (["mxfp4"], "gemm_nt_f16_mxfp4_f32_7x48x256_kernel(A: float16[7, 256], "
         "Q: uint8[48, 128], SCALES: uint8[48, 8]"),
        (["int8"], "Q: int8[48, 256], SCALES: float16[48]"),
    ],
)  # fmt: skip
def test_weights_of_few_bits_agree_with_numpy(options: list[object], signature: str) -> None:
    check_agrees([*WEIGHTS, *options], signature)


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["gguf"], 2, "'gguf' is not one of"),
        (["gptq", "--group", 96], 1, "k: 256 is no multiple of 96"),
        (["gptq", "--scales"], 2, "no product has two of them"),
        (["gptq", "--trans-a"], 1, "quantised weights has no transposed A"),
        (["gptq", "--batch", 2], 1, "quantised weights has no batch"),
        (
            ["gptq", "--in-dtype", "f32"],
            1,
            "become the type of A, float16 or bfloat16, not float32",
        ),
        (["gptq", "--b-dtype", "bf16"], 1, "not bfloat16 where A is float16"),
        (["mxfp4", "--group", 64], 1, "the scales of mxfp4 are for 32 of K, not for 64"),
    ],
)
def test_what_quantised_weights_have_not_is_told(
    options: list[object], code: int, message: str
) -> None:
    result = run(*WEIGHTS, *options)
    assert (result.exit_code, message in result.output) == (code, True), result.output


@pytest.mark.parametrize("command", ["gemm", "tune"])
def test_weights_have_a_layout_of_their_own(command: str, tmp_path: Path) -> None:
    more = () if command == "gemm" else ("--database", tmp_path)
    result = run(command, *WEIGHTS[1:], "mxfp4", "--trans-b", *more)
    said = "--trans-b: weights of mxfp4 lie as that format says; leave it out"
    assert (result.exit_code, said in result.output) == (2, True), result.output
    with pytest.raises(ArgumentError, match="b_transposed: weights of gptq lie as that format"):
        Gemm(None, "gfx942", 16, 16, 128, b_transposed=True, weights="gptq")


def test_a_group_is_that_of_weights() -> None:
    result = run("gemm", "--arch", "gfx942", "-m", 16, "-n", 16, "-k", 64, "--group", 32)
    assert (result.exit_code, "--group needs --weights" in result.output) == (2, True)


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        ([], 1, "float16 is no type of scaled blocks: there are float8_e4m3fn,"),
        (["--in-dtype", "fp8", "--trans-a"], 1, "has no transposed A"),
        (["--in-dtype", "fp8", "--scales"], 2, "no product has two of them"),
        (["--in-dtype", "fp8", "--tiling", "split_k=4"], 1, "more than the 3 steps"),
        (["--in-dtype", "fp8", "--tiling", "k_step=64"], 1, "a step is of the 128 that share"),
        (["--in-dtype", "fp8", "--tiling", "persistent=yes"], 1, "takes one tile"),
        (["--in-dtype", "fp8", "--tiling", "k_waves=2"], 1, "waves do not share"),
        (["--in-dtype", "fp8", "--tiling", "block=256x256"], 1, "bytes of LDS"),
        (["--in-dtype", "fp8", "--tiling", "block=40x64"], 1, "no whole tiles"),
        (["--in-dtype", "fp8", "--intrinsic", "mfma_f32_16x16x16_f16"], 1, "multiplies float16"),
    ],
)  # fmt: skip
def test_what_scales_of_blocks_have_not_is_told(
    options: list[object], code: int, message: str
) -> None:
    result = run(*BLOCKS, "--arch", "gfx942", *options)
    assert (result.exit_code, message in result.output) == (code, True), result.output


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--arch", "gfx942", "--sparse", "--trans-a"], 1, "has no transposed A"),
        (["--arch", "gfx942", "--sparse", "-k", 100], 1, "k: 100 is no multiple of 8"),
        (["--arch", "gfx942", "--sparse", "--in-dtype", "f32"], 1, "is no type of sparse operands"),
        (["--arch", "gfx942", "--sparse", "--in-dtype", "i8", "--b-dtype", "f16"], 1,
         "gfx942 multiplies no sparse int8 by float16"),
        (["--arch", "gfx90a", "--sparse"], 1,
         "gfx90a has no matrix instructions of sparse operands"),
        (["--arch", "gfx950", "--sparse", "--scales"], 2, "no product has two of them"),
    ],
)  # fmt: skip
def test_what_a_sparse_operand_has_not_is_told(
    options: list[object], code: int, message: str
) -> None:
    result = run(*SPARSE, *options)
    assert (result.exit_code, message in result.output) == (code, True), result.output


def test_small_elements_need_scales() -> None:
    result = run(*SMALL, "--in-dtype", "float4_e2m1fn")
    assert result.exit_code == 1
    assert "float4_e2m1fn has fewer than eight bits" in result.output
    assert "`--scales`" in result.output


@pytest.mark.parametrize("step", STEPS)
def test_every_step_changes_the_result(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel without it does not pass for one with it."""
    monkeypatch.setattr(
        "mfmadsl.gemm.tolerance.model", lambda names, values, errors, *_: (values, errors)
    )
    result = run(*SMALL, "--epilogue", step, "--emulate")
    assert result.exit_code == 1
    assert "DIFFERS from NumPy" in result.output


def test_the_names_of_options_are_those_of_the_code() -> None:
    assert {*TILING_FIELDS, "instruction"} == {field.name for field in fields(Tiling)}
    assert {*DTYPES, *SUM_DTYPES} <= {kind.dtype for kind in ELEMENT_TYPES.values()}


def test_the_tiling_is_changed_field_by_field() -> None:
    plain = json.loads(run(*LARGE_TILE, "--emit", "json").stdout)
    changes = ["block=32x64", "waves=1x2", "k_step=32", "swizzle=no"]
    options = [part for change in changes for part in ("--tiling", change)]
    changed = json.loads(run(*LARGE_TILE, *options, "--emit", "json").stdout)
    assert changed["block"] == [64, 2, 1]
    assert changed["grid"] == [2, 1, 1]
    assert plain["lds_bytes"] > changed["lds_bytes"] >= (32 + 64) * 32 * 2


def test_zeros_ahead_of_a_number_are_no_digits_of_it() -> None:
    assert tiling_changes([f"k_step={'0' * 20}64", "block=0064x032"]) == {
        "k_step": 64, "block": (64, 32),
    }  # fmt: skip


def test_the_words_of_overlap_are_those_of_the_code() -> None:
    assert {"overlap": tuple(OVERLAPS)} == WORDS


@pytest.mark.parametrize("overlap", OVERLAPS)
def test_what_comes_meanwhile_is_chosen(overlap: str) -> None:
    asked = [*LARGE_TILE, "-k", 200, "--tiling", "block=32x64", "--tiling", f"overlap={overlap}"]
    result = run(*asked, "--emulate")
    assert result.exit_code == 0, result.output
    assert "agrees with NumPy in float64" in result.output


def test_reads_transpose_unless_that_is_declined() -> None:
    """On gfx950, of B as K x N, of 16-bit elements."""
    asked = ["gemm", "--arch", "gfx950", "-m", 64, "-n", 64, "-k", 64, "--emit", "asm"]
    assert "ds_read_b64_tr_b16" in run(*asked).stdout
    assert "_tr_b" not in run(*asked, "--tiling", "transposing_reads=no").stdout


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--tiling", "blok=64x64"], 2, "there is no field 'blok', but: block, k_step, waves"),
        (["--tiling", "block"], 2, "'block' is not FIELD=VALUE"),
        (["--tiling", "block=64"], 2, "'64' is not two positive numbers such as 128x64"),
        (["--tiling", "k_step=0"], 2, "'0' is not a positive number"),
        (["--tiling", "k_step=1000000000"], 2, "'1000000000' has more than 9 digits"),
        (["--tiling", "k_step=99999999999999999999"], 2, "has more than 9 digits"),
        (["--tiling", "swizzle=maybe"], 2, "'maybe' is neither yes nor no"),
        (["--tiling", "transposing_reads=maybe"], 2, "'maybe' is neither yes nor no"),
        (["--tiling", "overlap=some"], 2, "'some' is none of nothing, loads, fragments, all"),
        (["--tiling", "overlap"], 2, "'overlap' is not FIELD=VALUE"),
        (["--tiling", "overlap=loads", "--tiling", "stages=2"], 1, "overlap=loads has one stage"),
        (["--tiling", "instruction=x"], 2, "give --intrinsic instead"),
        (["--tiling", "block=97x64"], 1, "tiling: 97 of M for"),
        (["--tiling", "waves=3x1"], 1, "tiling: waves: 3 is no power of two"),
        (["--tiling", "split_k=99"], 1, "tiling: split_k=99 is more than the"),
        (["--epilogue", "bias,tanh"], 2, "there is no step 'tanh', but: bias, scale, residual"),
        (["--epilogue", "bias,bias"], 1, "epilogue: `bias` can stand there once only"),
        (["--in-dtype", "int8", "--epilogue", "gelu"], 1, "`gelu` is of floats"),
        (["--in-dtype", "int8", "--out-dtype", "float16"], 1, "C is float16, but sums of int8"),
        (["--out-dtype", "int32"], 1, "C is int32, but sums of float16 are float32"),
        (["--in-dtype", "float8_e4m3fn"], 1, "gfx942 has no matrix instruction for float8_e4m3fn"),
        (["--intrinsic", "mfma_f32_16x16x16_f16", "--in-dtype", "int8"], 1,
         "mfma_f32_16x16x16_f16 multiplies float16 by float16, not int8 by int8"),
        (["--spec", "x.mfma"], 2, "--spec needs --intrinsic"),
        (["-I", "."], 2, "-I needs --spec"),
        (["--product", "MI300X"], 2, "--product needs --report FILE: nothing else tells a time"),
        (["--product", "MI355X", "--report", "x.html"], 2,
         "--product: MI355X has gfx950, and --arch says gfx942"),
        (["--arch", "mi300x", "--product", "mi325x", "--report", "x.html"], 2,
         "--arch names MI300X, and --product MI325X: leave one out"),
        (["--batch", 0], 2, "0 is not in the range"),
        (["-m", 10**30], 2, "is not in the range 1<=x<=2147483647"),
        (["-m", 2**31 - 1, "-n", 2**31 - 1, "-k", 2**31 - 1], 1,
         "`A`, 2147483647 x 2147483647 of float16, has 9.22e+18 bytes, and addresses have 48 bits"),
        (["-m", 2**31 - 1], 1,
         "error: workload: an extent of `A` and `C` is 2147483647, which whole tiles of "),
        (["-m", 99999, "-n", 99999, "--emulate"], 1,
         "error: compared in float64, the matrices take 74.6 GiB, more than the "),
        (["-m", 99999, "-n", 99999, "--report", "x.html"], 1,
         "error: a profile runs workgroups in the emulator, and the matrices take 37.3 GiB, more"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_told(options: list[object], code: int, message: str) -> None:
    result = run(*SMALL, *([*options, "--intrinsic", "mfma_f32_16x16x16_f16"]
                           if options[0] == "-I" else options))  # fmt: skip
    assert result.exit_code == code, result.output
    assert message in result.output


def test_an_instruction_of_a_file_uses_what_is_included(tmp_path: Path) -> None:
    (tmp_path / "rules").mkdir()
    rule = "layout mine(x, k) { lane = x + X * (k / 4) register = k % 4 }"
    (tmp_path / "rules/own.mfma").write_text(rule)
    text = spoiled("use layouts", "use layouts use own").replace(
        "operand(i, k, pack=4)", "mine(i, k)"
    )
    path = spec(tmp_path, text)
    options = ["--spec", path, "-I", tmp_path / "rules"]
    name = "mfma_f32_16x16x16_f16"
    assert run(*SMALL, "--intrinsic", name, *options).exit_code == 0
    shown = run("show", name, *options)
    assert shown.exit_code == 0
    table = shown.output.partition("A, each element")[2]
    assert table == run("show", name).output.partition("A, each element")[2]
    assert "there is no `own.mfma`" in run("show", name, *options[:2]).output


def test_of_several_instructions_of_one_call_the_chips_own_is_taken(tmp_path: Path) -> None:
    both = spoiled("  alias   v_mfma_f32_16x16x16f16\n", "")
    older, newer = (
        both.replace("mfma_f32_16x16x16_f16", name).replace("gfx90a=32 gfx942=16", cycles)
        for name, cycles in (("older", "gfx90a=32"), ("newer", "gfx942=16"))
    )
    path = spec(tmp_path, older + newer.removeprefix("use layouts\n"))
    named = ["--spec", path, "--intrinsic", "llvm.amdgcn.mfma.f32.16x16x16f16"]
    for chip in ("gfx90a", "gfx942"):
        result = run("gemm", *named, "--arch", chip, *SMALL[3:], "--emulate")
        assert (result.exit_code, "agrees with NumPy" in result.output) == (0, True), result.output


def test_an_instruction_of_a_file_that_the_chip_lacks(tmp_path: Path) -> None:
    options = ["--spec", spec(tmp_path), "--intrinsic", "mfma_f32_16x16x16_f16"]
    result = run("gemm", "--arch", "gfx950", *SMALL[3:], *options)
    assert result.exit_code == 1
    assert "gfx950 has no mfma_f32_16x16x16_f16: it is an instruction of gfx90a, gfx942" in (
        result.output
    )


def test_several_launches_of_one_kind_are_numbered(tmp_path: Path) -> None:
    assert run(*SPLIT, "--emit", "asm", "-o", tmp_path / "k.s").exit_code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["k.1.s", "k.s"]


def test_several_launches_are_described_written_and_run(tmp_path: Path) -> None:
    told = run(*SPLIT)
    assert re.search(r"workspace  \S+: float32\[", told.output)
    assert re.search(r"then       gemm_\w+_kernel_1\nlaunch     grid", told.output)
    kinds = [part for kind in ("tir", "llvm", "asm", "hsaco", "json") for part in ("--emit", kind)]
    assert run(*SPLIT, *kinds, "-o", tmp_path / "k").exit_code == 0
    names = ["k.1.hsaco", "k.1.ll", "k.1.s", "k.hsaco", "k.json", "k.ll", "k.s", "k.tir.py"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    described = json.loads((tmp_path / "k.json").read_text())
    jsonschema.validate(described, json_schema())
    (workspace,) = (each["name"] for each in described["workspaces"])
    assert described["parameters"] == ["A", "B", workspace]
    following = described["next"]
    assert (following["parameters"], following["next"]) == (["C", workspace], None)
    for launch, name in ((described, "k.s"), (following, "k.1.s")):
        program = parse_assembly((tmp_path / name).read_text())
        assert program.name == launch["symbol"]
        assert program.registers.vector == launch["registers"]["vector"]

    (tmp_path / "moved").mkdir()
    for name in ("k.json", "k.s", "k.1.s"):
        (tmp_path / name).rename(tmp_path / "moved" / name)
    path = tmp_path / "moved/k.json"
    arrays = {name: np.random.default_rng(5).standard_normal(shape).astype(np.float16)
              for name, shape in (("a", (48, 64)), ("b", (64, 40)))}  # fmt: skip
    for name, array in arrays.items():
        np.save(tmp_path / f"{name}.npy", array)
    given = [part for name in ("a", "b") for part in ("--arg", tmp_path / f"{name}.npy")]
    out = tmp_path / "c.npy"
    run("emulate", path, *given, "--arg", "float32[48,40]=99", "--save", f"2={out}")
    expected = arrays["a"].astype(np.float64) @ arrays["b"].astype(np.float64)
    assert np.allclose(np.load(out), expected, atol=1e-4)
    assert run("sanitize", path, "--unwritten", 2).output.endswith("waves, no faults\n")
    first, second = (json.loads(run("profile", path, "--launch", i, "--format", "json").output)
                     for i in (0, 1))  # fmt: skip
    assert first["launch"] == {"place": 0, "count": 2}
    assert (first["kernel"], second["kernel"]) == (described["symbol"], following["symbol"])
    assert following["symbol"] == f"{described['symbol']}_1"
    assert first["whole"]["matrix_cycles"] > 0 == second["whole"]["matrix_cycles"]
    jsonschema.validate(second, json_schema())
    assert "launch: is a number from 0 to 1, not 2" in run("profile", path, "--launch", 2).output


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stored")
    assert run(*SMALL, "--emit", "asm", "--emit", "json", "-o", folder / "k").exit_code == 0
    return folder / "k.json"


@pytest.mark.parametrize("command", ["emulate", "sanitize", "profile"])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["float32[48,64]", "float16[64,40]", "float32[48,40]"],
            "A is an array of float16, not of",
        ),
        (
            ["float16[64,48]", "float16[64,40]", "float32[48,40]"],
            "A has the shape (48, 64), not (64",
        ),
        (["float16[48,64]", "float16[64,40]"], "takes 3 arguments (A, B, C), but 2 are given"),
        (["float16[48,64]", "float16[64,40]", "int32=3"], "C is a NumPy array, not int32"),
        (["float32[1000000,1000000]"], "`float32[1000000,1000000]` has more than 1 GiB"),
    ],
)
def test_arguments_are_those_that_the_json_describes(
    stored: Path, command: str, arguments: list[str], message: str
) -> None:
    given = [part for argument in arguments for part in ("--arg", argument)]
    result = run(command, stored, *given)
    assert result.exit_code == 1
    assert message in result.output


def test_the_json_says_the_launch_by_itself(stored: Path) -> None:
    result = run("emulate", stored, "--block", 64, "--lds", 5)
    assert result.exit_code == 1
    assert "says by itself what --block, --lds would say" in result.output


@pytest.mark.parametrize(
    "spoil", [{"next": 3}, {"parameters": ["X"]}, {"grid": ["m"]}, {"arguments": None}]
)
def test_json_that_is_none_of_ours(stored: Path, tmp_path: Path, spoil: dict[str, object]) -> None:
    path = tmp_path / "k.json"
    path.write_text(json.dumps({**json.loads(stored.read_text()), **spoil}))
    result = run("emulate", path)
    assert result.exit_code == 1
    assert "is not what `mfmadsl gemm --emit json` writes" in result.output


def test_an_instruction_is_taken_at_the_word_of_its_file_if_asked_for(tmp_path: Path) -> None:
    """With C's registers in another order, which no chip has, the numbers are those of the file."""
    text = spoiled("accumulator(i, j)", "upward(i, j)").replace("gfx90a=32 ", "")
    layout = "layout upward(i, j) { lane = j + J * (i % 4)  register = i / 4 }\n"
    path = spec(tmp_path, layout + text)
    command = (*SMALL, "--intrinsic", "mfma_f32_16x16x16_f16", "--spec", path, "--emulate")
    plain = run(*command)
    assert plain.exit_code == 1
    assert "DIFFERS from NumPy" in plain.output
    trusting = run(*command, "--trust-spec")
    assert trusting.exit_code == 0
    told = "           taken at the word of the .mfma file: v_mfma_f32_16x16x16_f16\n"
    assert trusting.output.endswith(told)
    described = json.loads(run(*command, "--trust-spec", "--emit", "json").stdout)
    assert described["emulation"]["trusted"] == ["v_mfma_f32_16x16x16_f16"]
    assert described["emulation"]["agrees"]
    jsonschema.validate(described, json_schema())


@pytest.mark.parametrize("options", [(), ("--emulate",), ("--spec", "x.mfma")])
def test_trust_needs_somebody_and_something(options: tuple[str, ...]) -> None:
    result = run(*SMALL, "--intrinsic", "x", *options, "--trust-spec")
    assert result.exit_code == 2
    assert "--trust-spec needs --spec and --emulate" in result.output


def test_where_no_model_of_the_chip_is_known_the_result_says_so() -> None:
    small = ("gemm", "-m", 32, "-n", 32, "-k", 32, "--emulate")
    known = run(*small, "--arch", "gfx942")
    assert "round otherwise" not in known.output
    unknown = run(*small, "--arch", "gfx950")
    assert unknown.exit_code == 0
    told = "\n           the chip may round otherwise, no model is public: v_mfma_"
    assert told in unknown.output


def test_it_says_how_the_product_is_cut_and_who_says_so(tmp_path: Path) -> None:
    plain, asked = run(*LARGE_TILE).stdout, run(*LARGE_TILE, "--tiling", "block=32x64").stdout
    (line,) = (line for line in plain.splitlines() if line.startswith("tiling"))
    assert re.fullmatch(
        r"tiling     \d+x\d+x\d+ of mfma_f32_32x32x8_f16, .* waves: the fastest by the formula",
        line,
    )
    assert "32x64x" in asked
    assert ": as asked for" in asked
    page = tmp_path / "page.html"
    run(*LARGE_TILE, "--report", page)
    assert "the fastest by the formula" in page.read_text()


def test_json_has_every_field_of_the_tiling_and_its_source() -> None:
    facts = json.loads(run(*LARGE_TILE, "--tiling", "stages=2", "--emit", "json").stdout)
    jsonschema.validate(facts, json_schema())
    assert facts["tiling"].keys() == {"source", *(field.name for field in fields(Tiling))}
    assert facts["tiling"]["source"] == "given"
    assert (facts["tiling"]["stages"], facts["remarks"]) == (2, [])


def test_products_of_weights_are_tuned(tmp_path: Path) -> None:
    sizes = ("-m", 16, "-n", 64, "-k", 256, "--arch", "gfx942", "--weights", "gptq", "--group", 64)
    tuned = ("tune", *sizes, "--trials", 2, "--database", tmp_path / "tuned", "--format", "json")
    found = json.loads(run(*tuned).stdout)
    assert len(found) == 2
    assert all(each["seconds"] > 0 for each in found)


def test_a_tuned_tiling_is_told_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tuned = tmp_path / "tuned"
    sizes = ["--arch", "gfx942", "-m", 64, "-n", 128, "-k", 256]
    assert run("tune", *sizes, "--trials", 1, "--database", tuned).exit_code == 0
    monkeypatch.setenv("MFMADSL_TUNED", str(tuned))
    assert "found by `mfmadsl tune`" in run("gemm", *sizes).stdout
    facts = json.loads(run("gemm", *sizes, "--emit", "json").stdout)
    assert facts["tiling"]["source"] == "tuned"


def test_a_loop_that_stays_slow_is_remarked(monkeypatch: pytest.MonkeyPatch) -> None:
    from mfmadsl.backend import Kernel

    remark = "the loop `k` is left as it is: a reason"
    monkeypatch.setattr(Kernel, "chain", lambda self: iter([replace(self, remarks=(remark,))]))
    result = run(*SMALL)
    assert f"remark     {remark}" in result.stdout
    described = run(*SMALL, "--emit", "json")
    assert json.loads(described.stdout)["remarks"] == [remark]
    assert remark in described.stderr


@pytest.mark.parametrize(
    ("options", "signature"),
    [
        (["--in-dtype", "fp4", "--scales", "--mx-output", "fp4"],
         "SCALE_B: uint8[64, 3], C: uint8[33, 32], SCALE_C: uint8[33, 2]"),
        (["--epilogue", "bias,gelu", "--mx-output", "bf8", "--arch", "gfx90a"],
         "bias: float32[64], C: float8_e5m2[33, 64], SCALE_C: uint8[33, 2]"),
        (["--weights", "mxfp4", "--mx-output", "float8_e4m3fn"],
         "C: float8_e4m3fn[33, 64], SCALE_C"),
    ],
)  # fmt: skip
def test_outputs_in_mx_formats_agree_with_numpy(options: list[object], signature: str) -> None:
    shape = ("--arch", "mi355x", "-m", 33, "-n", 64, "-k", 96, "--trans-b")
    check_agrees(["gemm", *shape, *options], signature)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-n", 40], "n: 40 is no multiple of 32, which share a scale of C"),
        (["-n", 64, "--out-dtype", "float16"], "is made of float32, and C is float16"),
        (["-n", 64, "--in-dtype", "int8"], "is made of float32, and C is int32"),
    ],
)
def test_what_outputs_in_mx_formats_have_not_is_told(options: list[object], message: str) -> None:
    result = run(
        "gemm", "--arch", "gfx942", "-m", 33, "-k", 96, "--trans-b", "--mx-output", "fp8", *options
    )
    assert (result.exit_code, message in result.output) == (1, True), result.output

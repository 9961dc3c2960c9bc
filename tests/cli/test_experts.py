"""`mfmadsl gemm --experts`: rows sorted by expert, beside NumPy and in other commands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from mfmadsl import Gemm
from mfmadsl.report import json_schema
from tests.cli.command import run

ROWS = ("gemm", "-m", 70, "-n", 32, "-k", 128, "--arch")


@pytest.mark.parametrize(
    ("options", "signature"),
    [
        (["gfx942", "--trans-b", "--experts", 4, "--tokens", 9, "--epilogue", "bias,residual,gelu"],
         "gemm_nt_experts4of9_f16_f16_f32_70x32x128_bias_residual_gelu_kernel(A: float16[9, 128], "
         "ROWS: int32[70], ENDS: int32[4], B: float16[4, 32, 128], bias: float32[32], "
         "residual: float32[70, 32], C: float32[70, 32])"),
        (["gfx950", "--weights", "gptq", "--group", 64, "--experts", 2, "--out-dtype", "f16"],
         "A: float16[70, 128], ENDS: int32[2], QWEIGHT: int32[2, 16, 32], QZEROS: int32[2, 2, 4], "
         "SCALES: float16[2, 2, 32], C: float16[70, 32]"),
        (["gfx942", "--trans-b", "--in-dtype", "fp8", "--block-scales", "--experts", 3, "--tokens",
          80], "SCALE_A: float32[80, 1], ROWS: int32[70], ENDS: int32[3], B: float8_e4m3fnuz[3,"),
        (["gfx90a", "--trans-b", "--in-dtype", "i8", "--experts", 300], "B: int8[300, 32, 128]"),
        (["gfx942", "--trans-b", "--in-dtype", "bf16", "--experts", 3, "--mx-output", "fp4"],
         "C: uint8[70, 16], SCALE_C: uint8[70, 1]"),
    ],
)  # fmt: skip
def test_rows_of_experts_agree_with_numpy(options: list[object], signature: str) -> None:
    result = run(*ROWS, *options, "--emulate")
    assert result.exit_code == 0, result.output
    assert signature in result.output
    assert "agrees with NumPy in float64" in result.output


def test_a_row_of_another_expert_is_found() -> None:
    gemm = Gemm(None, "gfx942", 40, 16, 32, b_transposed=True, experts=3)
    a, ends, b, c = gemm.operands()
    expert = (ends[:-1] <= np.arange(40)[:, None]).sum(axis=1)
    c[:] = np.einsum("ik,ijk->ij", a.astype(float), b[expert].astype(float))
    assert gemm.compare(a, ends, b, c).agrees
    row = int(ends[0])
    c[row] = a[row].astype(float) @ b[0].T.astype(float)
    found = gemm.compare(a, ends, b, c)
    assert (found.agrees, found.row) == (False, row)


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--experts", 4], 1, "each expert's B lies as N x K: say `--trans-b`"),
        (["--trans-b", "--tokens", 4], 2, "--tokens needs --experts"),
        (["--trans-b", "--experts", 4, "--batch", 2], 1, "a product of experts has no batch"),
        (["--trans-b", "--experts", 4, "--trans-a"], 1, "a product of experts has no transposed A"),
        (["--trans-b", "--experts", 4, "--sparse"], 1, "has no sparse operand"),
        (["--trans-b", "--experts", 4, "--in-dtype", "fp4"], 1, "of experts are `weights`"),
        (["--trans-b", "--experts", 4, "--scales"], 1, "has no scaled operands"),
        (["--trans-b", "--experts", 1 << 20], 1, "experts: is at most 65536, not 1048576"),
        (["--trans-b", "--experts", 1], 1, "experts: 1 has one matrix for all rows: leave it out"),
    ],
)
def test_what_experts_have_not_is_told(options: list[object], code: int, message: str) -> None:
    result = run(*ROWS, "gfx942", *options)
    assert (result.exit_code, message in result.output) == (code, True), result.output


def test_its_json_says_which_rows_experts_have(tmp_path: Path) -> None:
    asked = (*ROWS, "gfx942", "--trans-b", "--experts", 4, "--tokens", 9)
    page = tmp_path / "page.html"
    emitted = ("--emit", "asm", "--emit", "json", "-o", tmp_path / "experts", "--report", page)
    assert run(*asked, *emitted).exit_code == 0
    file = tmp_path / "experts.json"
    described: dict[str, Any] = json.loads(file.read_text())
    jsonschema.validate(described, json_schema())
    values = {each["name"]: each.get("values") for each in described["arguments"]}
    assert values == {"A": None, "ROWS": "0..8", "ENDS": "17,35,52,70", "B": None, "C": None}
    assert "no faults" in run("sanitize", file).output
    assert "on gfx942" in run("profile", file).output
    assert page.stat().st_size

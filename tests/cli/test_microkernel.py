"""Commands on micro-kernels."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from mfmadsl.host.cpu import host_cpu
from mfmadsl.language import microkernels
from mfmadsl.report import json_schema
from tests.cli.command import run
from tests.language.microkernels import FMA, replaced


def spec(folder: Path, text: str = FMA) -> Path:
    path = folder / "kernel.mfma"
    path.write_text(text)
    return path


def test_check_counts_them(tmp_path: Path) -> None:
    assert run("check", spec(tmp_path)).output == "1 microkernel, no mistakes\n"
    counted = json.loads(run("check", spec(tmp_path), "--format", "json").output)
    assert counted == {"intrinsics": 0, "microkernels": 1, "diagnostics": []}
    wrong = spec(tmp_path, replaced(FMA, "width=16, pack=1", "width=8, pack=2"))
    result = run("check", wrong)
    assert result.exit_code == 1
    assert "error[register]: B[0,16] falls on register 2, but" in result.output


@pytest.mark.parametrize("name", ["x86-64", "haswell", "znver5", "sapphirerapids"])
def test_list_has_what_a_cpu_runs_and_nothing_of_chips(name: str) -> None:
    found = json.loads(run("list", "--arch", name, "--format", "json").output)
    assert {entry["kind"] for entry in found} == {"microkernel"}
    names = [entry["name"] for entry in found]
    assert ("avx512_f32_8x32" in names) == (name in ("znver5", "sapphirerapids"))
    assert ("amx_i8_16x16x64" in names) == (name == "sapphirerapids")
    assert "sse2_f32_6x8" in names
    jsonschema.validate(found, json_schema())


def test_list_knows_this_machine() -> None:
    found = json.loads(run("list", "--arch", "native", "--format", "json").output)
    here = [m.name for m in microkernels().values() if not host_cpu().missing(m.features)]
    assert [entry["name"] for entry in found] == here


def test_list_of_a_chip_has_no_micro_kernels() -> None:
    assert "avx512" not in run("list", "--arch", "gfx942").output
    everything = run("list").output
    assert "\n\nNAME " in everything
    assert "avx512_f32_8x32" in everything


def test_a_machine_that_is_not_known_is_refused_with_the_nearest() -> None:
    result = run("list", "--arch", "zen5")
    assert result.exit_code == 2
    assert "`zen5` is no chip and no CPU: did you mean `znver5`?" in result.output
    assert "is an RDNA chip" in run("list", "--arch", "gfx1100").output


def test_show_draws_the_registers_of_an_operand(tmp_path: Path) -> None:
    result = run("show", "avx512_f32_8x32", "--operand", "b")
    assert result.exit_code == 0
    assert "B, a line for each register, with k,j of each element\n" in result.output
    assert result.output.splitlines()[-1].split()[:4] == ["1", "|", "0,16", "0,17"]
    own = run("show", "avx512_f32_2x32", "--spec", spec(tmp_path)).output
    assert (
        "A, a line for each register, with i,k of each element, which come again and again" in own
    )
    found = json.loads(run("show", "vnni_u8i8_8x32", "--format", "json").output)
    assert found["broadcast"]
    jsonschema.validate(found, json_schema())


def test_show_refuses_what_only_matrix_instructions_have() -> None:
    result = run("show", "avx512_f32_8x32", "--cbsz", 1)
    assert (result.exit_code, "is a micro-kernel, which has no --cbsz" in result.output) == (
        2,
        True,
    )
    result = run("show", "avx512_f32_8x32", "--operand", "index")
    assert result.exit_code == 1
    assert "avx512_f32_8x32 has no operand `index`, but a, b, c" in result.output
    result = run("show", "avx512_f32_8x3")
    assert result.exit_code == 1
    assert "did you mean `avx512_f32_8x32`?" in result.output


def test_compile_writes_their_modules(tmp_path: Path) -> None:
    result = run("compile", spec(tmp_path), "-o", tmp_path / "out")
    assert result.output == f"{tmp_path}/out/avx512_f32_2x32.py\n"
    assert "M, N, K = 2, 32, 1" in (tmp_path / "out/avx512_f32_2x32.py").read_text()
    packed = run("compile", spec(tmp_path), "-o", tmp_path / "out", "--k-pack", 2)
    assert packed.exit_code == 1
    assert "is a micro-kernel, of which only k_pack=1 can be" in packed.output


def test_gemm_needs_a_matrix_instruction(tmp_path: Path) -> None:
    size = ["--arch", "gfx942", "-m", 64, "-n", 64, "-k", 64]
    result = run("gemm", "--intrinsic", "avx512_f32_8x32", *size)
    assert result.exit_code == 1
    assert "is a micro-kernel of CPUs, and no matrix instruction" in result.output
    result = run("gemm", "--spec", spec(tmp_path), "--intrinsic", "avx512_f32_2x32", *size)
    assert result.exit_code == 1
    assert "`avx512_f32_2x32` is a microkernel, and no instruction" in result.output


def test_fmt_puts_broadcast_after_the_place(tmp_path: Path) -> None:
    path = spec(
        tmp_path, FMA.replace("  broadcast", "\nbroadcast // again").replace("  at  ", " at ")
    )
    assert run("fmt", path).exit_code == 0
    assert "  a         float32[i, k]  at  rows(i, k)  broadcast  // again\n" in path.read_text()
    assert run("fmt", "--check", path).exit_code == 0

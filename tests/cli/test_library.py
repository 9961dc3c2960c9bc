"""The command line: what it prints, what it writes, and its exit codes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import jsonschema
import pytest

from mfmadsl.codegen import RUNTIME
from mfmadsl.emulator import Run
from mfmadsl.language import library, library_files, microkernels, reads
from tests.cli.command import GEMM, SMALL, run, spec
from tests.language.entries import HALF, spoiled


def test_check_counts_what_is_right(tmp_path: Path) -> None:
    result = run("check", spec(tmp_path))
    assert (result.exit_code, result.output) == (0, "1 intrinsic, no mistakes\n")
    counted = (
        f"{len(library())} intrinsics, {len(reads())} reads, {len(microkernels())} microkernels"
    )
    assert run("check").output == f"{counted}, no mistakes\n"


def test_check_shows_every_mistake_of_every_file(tmp_path: Path) -> None:
    bad = spec(tmp_path, spoiled("operand(i,", "operands(i,").replace("gfx942", "gfx924"))
    result = run("check", bad, tmp_path / "none.mfma")
    assert result.exit_code == 1
    assert f"error[unknown-layout]: there is no layout `operands`\n --> {bad}:6:30" in result.output
    assert "error[chip]: `gfx924` is no chip with matrix cores" in result.output
    assert f"error: {tmp_path}/none.mfma: cannot be read: No such file" in result.output
    assert result.output.endswith("3 mistakes\n")


def test_mistakes_that_are_not_looked_for_are_not_counted(tmp_path: Path) -> None:
    faulty = (f"layout l{i}(x, k) {{ lane = z register = k }}\n" for i in range(150))
    result = run("check", spec(tmp_path, "".join(faulty)))
    assert result.exit_code == 1
    assert result.output.endswith("\n100 mistakes and more\n")


def test_one_mistake_is_one(tmp_path: Path) -> None:
    result = run("check", spec(tmp_path, spoiled("gfx942", "gfx924")))
    assert result.output.endswith("\n1 mistake\n")


def test_compile_writes_modules_and_names_them(tmp_path: Path) -> None:
    result = run("compile", spec(tmp_path), "-o", tmp_path / "out")
    assert result.exit_code == 0
    assert result.output == f"{tmp_path}/out/mfma_f32_16x16x16_f16.py\n"
    first = (tmp_path / "out/mfma_f32_16x16x16_f16.py").read_bytes()
    assert run("compile", spec(tmp_path), "-o", tmp_path / "out").exit_code == 0
    assert (tmp_path / "out/mfma_f32_16x16x16_f16.py").read_bytes() == first


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (spoiled("k=16\n", "k=16 #\n"), "unexpected character '#'"),
        (spoiled("}\n", ""), "this `{` is never closed"),
        (spoiled("accumulator(i, j)", "wrong(i, j)"), "there is no layout `wrong`"),
        (spoiled("operand(i, k, pack=4)", "operand(i, k, pack=2)"), "falls on lane 64"),
    ],
)
def test_compile_writes_nothing_for_a_bad_file(tmp_path: Path, text: str, message: str) -> None:
    result = run("compile", spec(tmp_path, text), "-o", tmp_path / "out")
    assert result.exit_code == 1
    assert message in result.output
    assert not (tmp_path / "out").exists()


def test_compile_keeps_what_it_did_not_write(tmp_path: Path) -> None:
    precious = tmp_path / "mfma_f32_16x16x16_f16.py"
    precious.write_text("precious = 1\n")
    result = run("compile", spec(tmp_path), "-o", tmp_path)
    assert result.exit_code == 1
    assert "exists and was not written by mfmadsl" in result.output
    assert precious.read_text() == "precious = 1\n"


def test_compile_into_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    result = run("compile", spec(tmp_path), "-o", "/proc/nowhere")
    assert result.exit_code == 1
    assert "error: /proc/nowhere: cannot be made a folder" in result.output


def test_compile_refuses_one_name_from_two_files(tmp_path: Path) -> None:
    other = tmp_path / "other.mfma"
    other.write_text(HALF)
    result = run("compile", spec(tmp_path), other, "-o", tmp_path / "out")
    assert result.exit_code == 1
    assert "is defined in more than one of the files" in result.output


def test_list_shows_the_library_or_what_a_chip_has() -> None:
    everything, one = run("list").output, run("list", "--arch", "gfx942").output
    assert "mfma_i32_16x16x16_i8" in everything
    assert "mfma_i32_16x16x16_i8" not in one
    entries = json.loads(run("list", "--format", "json").output)
    assert [entry["name"] for entry in entries] == [*library(), *microkernels()]
    kinds = [entry["kind"] for entry in entries]
    assert kinds == ["intrinsic"] * len(library()) + ["microkernel"] * len(microkernels())
    assert run("list", "--format", "table").output == everything


def listed(*arguments: str) -> list[str]:
    printed = run("list", "--format", "json", *arguments).output
    return [entry["name"] for entry in json.loads(printed)]


def test_list_shows_what_has_one_of_the_patterns_in_its_name() -> None:
    names = [*library(), *microkernels()]
    assert listed("smfmac", "vnni") == [n for n in names if "smfmac" in n or "vnni" in n]
    assert listed("32x32*_bf16") == [n for n in names if re.search("32x32.*_bf16", n)]
    assert listed("--arch", "gfx90a", "f32_32x32x8_??16") == ["mfma_f32_32x32x8_bf16"]
    assert listed("") == names


def test_a_pattern_that_no_name_has_is_told() -> None:
    result = run("list", "mfma", "33x33")
    said = "error: no name in the library has `33x33` in it\n"
    assert (result.exit_code, result.output) == (1, said)


def test_a_file_that_describes_nothing_makes_no_module(tmp_path: Path) -> None:
    result = run("compile", spec(tmp_path, "// nothing\n"), "-o", tmp_path / "out")
    said = "no module is made: nothing is described\n"
    assert (result.exit_code, result.output) == (0, said)


def test_help_has_whole_sentences() -> None:
    told = " ".join(run("--help").output.split())
    assert "with another project's, or with another entry's. doctor" in told


def test_show_prints_a_table_or_json() -> None:
    table = run("show", "mfma_f32_16x16x16_f16", "--operand", "b")
    assert table.exit_code == 0
    assert "B, each element as lane:register[bits]" in table.output
    found = json.loads(run("show", "v_mfma_f32_16x16x16f16", "--format", "json").output)
    assert found["name"] == "mfma_f32_16x16x16_f16"
    assert found["elements"][1] == {
        "block": 0, "row": 0, "column": 1, "lane": 0, "register": 0, "bits": [16, 31]
    }  # fmt: skip


def test_show_proposes_a_name() -> None:
    result = run("show", "mfma_f32_16x16x16_f61")
    assert result.exit_code == 1
    assert "did you mean `mfma_f32_16x16x16_f16`?" in result.output


def test_gemm_describes_and_emulates_its_kernel() -> None:
    result = run(*SMALL, "--emulate")
    assert result.exit_code == 0
    assert "launch     grid" in result.output
    assert "agrees with NumPy in float64: largest error" in result.output
    assert "tolerance" in result.output


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("tir", "@T.prim_func"),
        ("llvm", "define dllexport amdgpu_kernel"),
        ("asm", "v_mfma_f32_16x16x16_f16"),
        ("json", '"lds_bytes"'),
    ],
)
def test_gemm_emits_to_the_terminal(kind: str, expected: str) -> None:
    result = run(*SMALL, "--emit", kind)
    assert result.exit_code == 0
    assert expected in result.stdout


def test_gemm_writes_several_kinds_and_describes_them(tmp_path: Path) -> None:
    kinds = [argument for kind in ("asm", "hsaco", "json") for argument in ("--emit", kind)]
    result = run(*SMALL, *kinds, "--emulate", "-o", tmp_path / "kernel")
    assert result.exit_code == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["kernel.hsaco", "kernel.json", "kernel.s"]
    described = json.loads((tmp_path / "kernel.json").read_text())
    assert described["files"] == [str(tmp_path / f"kernel.{s}") for s in ("s", "hsaco", "json")]
    assert described["arguments"][2] == {"name": "C", "dtype": "float32", "shape": [32, 32]}
    assert {"symbol", "grid", "block", "lds_bytes", "registers", "spills"} < set(described)
    assert described["emulation"]["agrees"] is True
    assert f"{described['symbol']}:" in (tmp_path / "kernel.s").read_text()


def test_gemm_takes_an_intrinsic_of_a_file(tmp_path: Path) -> None:
    renamed = spoiled("intrinsic mfma_f32", "intrinsic mine_mfma_f32")
    path = spec(tmp_path, renamed)
    arguments = ["gemm", "--spec", path, "--arch", "gfx942", "-m", 16, "-n", 16, "-k", 16]
    assert run(*arguments, "--intrinsic", "mine_mfma_f32_16x16x16_f16").exit_code == 0
    missing = run(*arguments, "--intrinsic", "other")
    assert missing.exit_code == 1
    assert "has no `other`, but: mine_mfma_f32_16x16x16_f16" in missing.output


def test_a_wrong_result_is_exit_code_1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mfmadsl.gemm.gemm.emulate", lambda kernel, args, **_: Run({}, 0))
    result = run(*SMALL, "--emulate")
    assert result.exit_code == 1
    assert "DIFFERS from NumPy in float64" in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gemm", "--intrinsic", "mfma_f32_4x4x4_16b_f16", "--arch", "gfx942", "-m", 16, "-n", 16,
          "-k", 16], "mfma_f32_4x4x4_16b_f16 multiplies 16 blocks at once"),
        (["gemm", "--intrinsic", "mfma_i32_16x16x16_i8", "--arch", "gfx942", "-m", 16, "-n", 16,
          "-k", 16], "gfx942 has no mfma_i32_16x16x16_i8"),
        ([*SMALL, "--emit", "asm", "-o", "/proc/x.s"], "/proc/x.s: cannot be written"),
    ],
)  # fmt: skip
def test_bad_input_is_exit_code_1(arguments: list[object], message: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 1
    assert f"error: {message}" in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["compile"], "Missing argument"),
        (["frobnicate"], "No such command"),
        (["show", "x", "--operand", "d"], "Invalid value for '--operand'"),
        (
            ["list", "--arch", "gfx1100"],
            "'gfx1100' is an RDNA chip, which has WMMA",
        ),
        ([*GEMM, "-m", 0, "-n", 16, "-k", 16], "0 is not in the range 1<=x<=2147483647"),
        ([*SMALL, "--emit", "hsaco"], "give -o FILE"),
        ([*SMALL, "-o", "x"], "-o needs --emit"),
    ],
)
def test_a_bad_call_is_exit_code_2(arguments: list[object], message: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.output


def test_reading_commands_import_neither_tvm_nor_the_emulator() -> None:
    program = (
        "import sys; from mfmadsl.cli import main;"
        "main(['list'], standalone_mode=False); main(['check'], standalone_mode=False);"
        "heavy = {'tvm', 'numpy', 'llvmlite', 'jinja2', 'yaml'} & set(sys.modules);"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)


def test_ten_megabytes_of_noise(tmp_path: Path) -> None:
    path = tmp_path / "noise.mfma"
    path.write_bytes(b"{]=" * 3_500_000)
    start = time.perf_counter()
    result = run("check", path)
    assert time.perf_counter() - start < 1
    assert result.exit_code == 1
    assert "is larger than 1024 KiB" in result.output


def test_check_tells_mistakes_to_editors_as_json(tmp_path: Path) -> None:
    bad = spec(tmp_path, spoiled("gfx942", "gfx924"))
    result = run("check", bad, tmp_path / "none.mfma", "--format", "json")
    assert result.exit_code == 1
    found = json.loads(result.output)
    assert found["intrinsics"] == 0
    chip, missing = found["diagnostics"]
    assert chip == {
        "file": str(bad), "line": 10, "column": 21, "end_line": 10, "end_column": 27,
        "severity": "error", "code": "chip", "message": "`gfx924` is no chip with matrix cores",
        "hint": "did you mean `gfx942`?",
    }  # fmt: skip
    assert (missing["code"], missing["line"]) == ("file", 1)
    good = run("check", spec(tmp_path), "--format", "json")
    assert (good.exit_code, json.loads(good.output)) == (
        0, {"intrinsics": 1, "microkernels": 0, "diagnostics": []}
    )  # fmt: skip


def test_fmt_changes_a_file_once(tmp_path: Path) -> None:
    path = spec(tmp_path, HALF.replace("  shape   m", "shape m"))
    assert run("fmt", path, "--check").exit_code == 1
    assert "shape m" in path.read_text()
    assert run("fmt", path).output == f"changed {path}\n"
    again = run("fmt", path)
    assert (again.exit_code, again.output) == (0, "")
    assert run("fmt", path, "--check").exit_code == 0
    assert "  shape   m=16" in path.read_text()


def test_fmt_changes_nothing_if_one_file_is_broken(tmp_path: Path) -> None:
    good = spec(tmp_path, HALF.replace("  shape   m", "shape m"))
    bad = tmp_path / "bad.mfma"
    bad.write_text("intrinsic x {")
    result = run("fmt", good, bad)
    assert result.exit_code == 1
    assert "this `{` is never closed" in result.output
    assert "shape m" in good.read_text()


def test_use_looks_in_the_folders_that_are_named(tmp_path: Path) -> None:
    (tmp_path / "layouts").mkdir()
    rules = "layout mine(x, k) { lane = x + X * (k / 4) register = k % 4 }"
    (tmp_path / "layouts/own.mfma").write_text(rules)
    text = spoiled("use layouts", "use layouts use own")
    path = spec(tmp_path, text.replace("operand(i, k, pack=4)", "mine(i, k)"))
    assert "there is no `own.mfma`" in run("check", path).output
    assert run("check", path, "-I", tmp_path / "layouts").exit_code == 0
    out = tmp_path / "out"
    assert run("compile", path, "-I", tmp_path / "layouts", "-o", out).exit_code == 0


def test_what_is_printed_as_json_keeps_to_the_schema(tmp_path: Path) -> None:
    schema = json.loads(run("schema").output)
    jsonschema.Draft202012Validator.check_schema(schema)
    bad = spec(tmp_path, spoiled("gfx942", "gfx924"))
    for arguments in (
        ["show", "mfma_f32_4x4x1_16b_f32", "--format", "json"],
        ["show", "smfmac_f32_16x16x32_f16", "--format", "json", "--operand", "index"],
        [
            "show",
            "mfma_scale_f32_32x32x64_f8f6f4_fp8_fp8",
            "--format",
            "json",
            "--operand",
            "scale_b",
        ],
        ["list", "--format", "json"],
        ["check", "--format", "json"],
        ["check", str(bad), "--format", "json"],
    ):
        jsonschema.validate(json.loads(run(*arguments).output), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"name": "x"}, schema)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["mfma_f32_16x16x4_f32", "--operand", "index"], "has no operand `index`, but a, b, c"),
        (["mfma_f32_16x16x32_f16", "--blgp", "1"], "it has no blgp"),
        (["mfma_f32_16x16x16_f16", "--cbsz", "1"], "has neither cbsz nor abid"),
        (["mfma_f32_16x16x4_4b_f16", "--cbsz", "3"], "cbsz=3, but there are 4 blocks"),
        (["mfma_f32_16x16x4_4b_f16", "--cbsz", "1", "--abid", "2"], "abid=2 is no block of the 2"),
        (["smfmac_i32_16x16x64_i8", "--abid", "2"], "abid=2, but the index has 2 sets"),
    ],
)
def test_show_refuses_what_an_instruction_lacks(arguments: list[str], message: str) -> None:
    result = run("show", *arguments)
    assert result.exit_code == 1
    assert message in result.output


def test_show_takes_modifiers_into_account() -> None:
    def places(*arguments: str) -> list[tuple[int, int, list[int]]]:
        found = json.loads(run("show", *arguments, "--format", "json").output)["elements"]
        return [(e["lane"], e["register"], e["bits"]) for e in found]

    blocks = "mfma_f32_4x4x1_16b_f32"
    plain = places(blocks)
    assert places(blocks, "--cbsz", "4", "--abid", "2") == plain[8:12] * 16
    turned = places(blocks, "--operand", "b", "--blgp", "3")
    assert [(lane - 16) % 64 for lane, *_ in turned] == [
        x for x, *_ in places(blocks, "--operand", "b")
    ]
    sparse = ("smfmac_f32_16x16x32_f16", "--operand", "index")
    shifted = [
        (x, r, [low - 16, high - 16]) for x, r, (low, high) in places(*sparse, "--abid", "2")
    ]
    assert shifted == places(*sparse)


def test_compile_takes_the_whole_library(tmp_path: Path) -> None:
    result = run("compile", *library_files(), "-o", tmp_path)
    assert result.exit_code == 0
    assert sorted(p.stem for p in tmp_path.iterdir()) == sorted(
        ["__init__", RUNTIME, *library(), *microkernels()]
    )  # fmt: skip

"""What a shell is offered when somebody presses the tab key."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mfmadsl.cli.mistakes import sections
from mfmadsl.epilogue import STEPS
from mfmadsl.language import library, microkernels, reads
from mfmadsl.model import CHIP_NAMES, CPUS, PRODUCTS
from tests.cli.command import run, spec
from tests.language.entries import HALF


def offered(*words: str, shell: str = "bash") -> list[str]:
    """What a shell gets, `type,value` for bash; the last word is the one that is being typed."""
    environment = {
        "_MFMADSL_COMPLETE": f"{shell}_complete",
        "COMP_WORDS": "\n".join(["mfmadsl", *words]),
        "COMP_CWORD": str(len(words)),
    }
    program = (
        "import sys\nfrom mfmadsl.cli import main\ntry: main(prog_name='mfmadsl')\n"
        "finally: print('tvm' in sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, **environment},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stderr == "False\n", "TVM takes a second to import"
    return done.stdout.splitlines()


def names(*words: str) -> list[str]:
    return [line.removeprefix("plain,") for line in offered(*words) if line]


def test_commands_are_completed() -> None:
    assert names("s") == ["sanitize", "schema", "show"]
    assert names("com") == ["compile", "completion"]


def test_names_of_the_library_are_completed() -> None:
    assert names("show", "mfma_f32_16x16x16_f") == ["mfma_f32_16x16x16_f16"]
    assert names("show", "") == sorted([*library(), *reads(), *microkernels()])
    assert names("gemm", "--intrinsic", "") == sorted(library())


def test_what_diff_compares_with_and_fields_of_a_tiling_are_completed() -> None:
    assert names("diff", "mfma_f32_16x16x16_f16", "--with", "tri") == ["triton"]
    assert names("diff", "x", "--with", "mfma_f32_16x16x16_f") == ["mfma_f32_16x16x16_f16"]
    assert names("gemm", "--tiling", "k_") == ["k_pack=", "k_step=", "k_waves="]


def test_names_in_assembly_are_completed_where_one_begins() -> None:
    assert names("show", "v_mfma_f32_16x16x16") == [
        "v_mfma_f32_16x16x16_bf16", "v_mfma_f32_16x16x16_f16", "v_mfma_f32_16x16x16bf16_1k",
        "v_mfma_f32_16x16x16f16",
    ]  # fmt: skip


def test_names_of_a_file_are_completed_after_spec(tmp_path: Path) -> None:
    path = str(spec(tmp_path, HALF))
    assert names("show", "--spec", path, "") == ["mfma_f32_16x16x16_f16"]
    assert names("gemm", "--spec", path, "--intrinsic", "mf") == ["mfma_f32_16x16x16_f16"]


@pytest.mark.parametrize(
    "text", ["intrinsic {", HALF.replace("pack=4", "pack=2")], ids=["broken", "wrong"]
)
def test_a_file_with_mistakes_offers_nothing(text: str, tmp_path: Path) -> None:
    assert names("show", "--spec", str(spec(tmp_path, text)), "") == []
    assert names("show", "--spec", str(tmp_path / "nowhere.mfma"), "") == []


def test_chips_products_and_types_are_completed() -> None:
    assert names("gemm", "--arch", "") == [*CHIP_NAMES]
    assert names("list", "--arch", "znver") == [name for name in CPUS if name.startswith("znver")]
    products = [name for name in PRODUCTS if name.startswith("MI3")]
    assert [name.upper() for name in names("device", "--product", "MI3")] == products
    assert names("gemm", "--in-dtype", "float8_e4m3fn") == ["float8_e4m3fnuz", "float8_e4m3fn"]


def test_codes_of_mistakes_are_completed() -> None:
    assert names("--explain", "") == sorted(sections())
    assert names("--explain", "colli") == ["collision"]


def test_steps_are_completed_after_those_that_are_there() -> None:
    assert names("gemm", "--epilogue", "") == sorted(STEPS)
    assert names("gemm", "--epilogue", "bias,re") == ["bias,relu", "bias,residual"]
    assert names("gemm", "--epilogue", "bias,gelu,re") == ["bias,gelu,relu", "bias,gelu,residual"]
    # What stands before is read, and costs no TVM either.
    assert names("gemm", "--epilogue", "bias", "--emi") == ["--emit"]


def test_files_are_left_to_the_shell() -> None:
    assert offered("check", "exa") == ["file,exa"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_its_script(shell: str) -> None:
    result = run("completion", shell)
    assert (result.exit_code, result.stderr) == (0, "")
    assert f"_MFMADSL_COMPLETE={shell}_complete" in result.stdout
    assert "mfmadsl" in run("completion", "-h").stdout


def test_another_shell_is_a_wrong_call() -> None:
    assert run("completion", "tcsh").exit_code == 2


def in_bash(folder: Path, line: str) -> subprocess.CompletedProcess[str]:
    program = folder / "mfmadsl"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m mfmadsl "$@"\n')
    program.chmod(0o755)
    return subprocess.run(
        ["bash", "--norc", "-c", line], env={**os.environ, "PATH": f"{folder}:/usr/bin:/bin"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_bash_completes_with_the_script(tmp_path: Path) -> None:
    line = """
eval "$(mfmadsl completion bash)"
complete -p mfmadsl
COMP_WORDS=(mfmadsl show mfma_f32_16x16x16_); COMP_CWORD=2
_mfmadsl_completion mfmadsl
printf '%s\\n' "${COMPREPLY[@]}"
"""
    done = in_bash(tmp_path, line)
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "complete -o nosort -F _mfmadsl_completion mfmadsl",
        "mfma_f32_16x16x16_bf16",
        "mfma_f32_16x16x16_f16",
    ]

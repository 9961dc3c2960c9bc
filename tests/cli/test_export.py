"""`mfmadsl export` and `mfmadsl diff`: what they print and write, and their exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from mfmadsl.export import EQUAL, FORMATS, export_layouts, read_layouts
from mfmadsl.language import find
from mfmadsl.report import json_schema
from tests.cli.command import run, spec
from tests.language.entries import HALF as HALF_TEXT
from tests.language.entries import spoiled

HALF = "mfma_f32_16x16x16_f16"
SCALED = "mfma_scale_f32_16x16x128_f8f6f4_fp8_fp8"
SPARSE = "smfmac_f32_16x16x32_f16"
BLOCKS = "mfma_f32_4x4x4_16b_f16"
DOWN = """\
layout down(x, k, pack) {
  lane     = x + 16 * ((15 - k) / pack)
  register = (15 - k) % pack
}

"""
"""The operand's layout with k from the last one down."""


@pytest.mark.parametrize("form", FORMATS)
def test_export_prints_what_the_function_gives(form: str) -> None:
    result = run("export", "v_mfma_f32_16x16x16f16", "--as", form, "--operand", "b")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == export_layouts(find(HALF), form, "b") + "\n"


def test_export_writes_a_file(tmp_path: Path) -> None:
    result = run("export", HALF, "--as", "csv", "-o", tmp_path / "half.csv")
    assert (result.exit_code, result.output) == (0, "")
    text = (tmp_path / "half.csv").read_text()
    assert text.startswith("operand,block,row,column,lane,register,bits\na,0,0,0,0,0,0:15\n")
    assert set(read_layouts(text, "csv")) == {"a", "b", "c"}
    result = run("export", HALF, "--as", "csv", "-o", tmp_path / "nowhere" / "half.csv")
    assert result.exit_code == 1
    assert "cannot be written" in result.stderr


def test_export_takes_an_entry_of_a_file(tmp_path: Path) -> None:
    path = spec(tmp_path, spoiled("operand(i, k, pack=4)", "operand(i, k, pack=4)  "))
    result = run("export", HALF, "--as", "iree", "--spec", path)
    assert result.exit_code == 0
    assert "{/*outer=*/{1, 1}, /*thread=*/{16, 4}, /*tstrides=*/{1, 16}, " in result.stdout


def test_export_names_the_chip_in_tritons_layout() -> None:
    told = {chip: run("export", HALF, "--as", "triton", "--arch", chip).stdout
            for chip in ("gfx908", "gfx942")}  # fmt: skip
    assert "AMDMFMALayout(version=1, " in told["gfx908"]
    assert "AMDMFMALayout(version=3, " in told["gfx942"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((SPARSE, "--as", "triton"), f"{SPARSE} is sparse, and Triton has no layout of a sparse"),
        ((SPARSE, "--as", "iree"), f"{SPARSE} is sparse, and IREE has no layout of a sparse"),
        ((BLOCKS, "--as", "triton"), "multiplies 16 blocks, and Triton's layouts have rows and"),
        ((SCALED, "--as", "ck", "--operand", "scale_a"), "constants of A, B and C, and none of"),
        ((HALF, "--as", "json", "--operand", "index"), "has no operand `index`, but a, b, c"),
        (("mfma_f32_16x16x32_f16", "--as", "triton", "--arch", "gfx908"),
         "is no instruction of gfx908"),
        (("mfma_f32_16x16x16_f61", "--as", "json"), f"did you mean `{HALF}`?"),
        (("avx2_f32_6x16", "--as", "json"), "is a micro-kernel of CPUs"),
    ],
)  # fmt: skip
def test_export_refuses_with_a_sentence(arguments: tuple[str, ...], message: str) -> None:
    result = run("export", *arguments)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("error: ")
    assert message in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [(HALF,), (HALF, "--as", "tvm"), ("--as", "json"), (HALF, "--as", "json", "-I", ".")],
)
def test_a_wrong_call_of_export_is_a_usage_error(arguments: tuple[str, ...]) -> None:
    assert run("export", *arguments).exit_code == 2


@pytest.mark.parametrize("other", ["iree", "ck", "mfma_f32_16x16x16_bf16"])
def test_diff_tells_what_is_equal(other: str) -> None:
    result = run("diff", HALF, "--with", other)
    assert result.exit_code == 0
    head, *rest = result.stdout.splitlines()
    assert head.startswith(f"{HALF} and ")
    assert head.endswith(": equal")
    assert rest == ["", "a  equal", "b  equal", "c  equal"]


def test_diff_with_triton() -> None:
    pytest.importorskip("triton")
    assert run("diff", HALF, "--with", "triton").stdout.endswith("a  equal\nb  equal\nc  equal\n")
    result = run("diff", SPARSE, "--with", "triton")
    assert result.exit_code == 1
    assert "Triton has layouts of dense instructions of one block" in result.stderr


def test_diff_with_a_file_of_json(tmp_path: Path) -> None:
    path = tmp_path / "half.json"
    run("export", HALF, "--as", "json", "-o", path)
    assert run("diff", HALF, "--with", path).stdout.splitlines()[0].endswith("half.json: equal")
    told = json.loads(path.read_text())
    first, second = told["operands"][2]["elements"][:2]
    first["lane"], second["lane"] = second["lane"], first["lane"]
    path.write_text(json.dumps(told))
    result = run("diff", HALF, "--with", path)
    assert result.exit_code == 1
    assert "C[0, 0] is element 0 of lane 0 here, element 0 of lane 1 there" in result.stdout


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{}", "not the JSON of `mfmadsl export --as json`"),
        (b"\xff", "it is not UTF-8 text"),
        (None, "No such file or directory"),
    ],
)
def test_diff_with_a_file_that_is_none(tmp_path: Path, content: bytes | None, message: str) -> None:
    path = tmp_path / "x.json"
    if content is not None:
        path.write_bytes(content)
    result = run("diff", HALF, "--with", path)
    assert (result.exit_code, result.stdout) == (1, "")
    assert f"{path}: " in result.stderr
    assert message in result.stderr


def test_diff_with_an_entry_of_a_file(tmp_path: Path) -> None:
    b_only = DOWN + spoiled("operand(j, k, pack=4)", "down(j, k, pack=4)")
    path = spec(tmp_path, b_only)
    result = run("diff", HALF, "--with", path)
    assert result.exit_code == 1
    assert result.stdout.startswith(f"{HALF} and {HALF} of {path}: different\n")
    assert "B[0, 0] is element 0 of lane 0 here, element 3 of lane 48 there" in result.stdout
    assert "k is in another order, and not in the same one of A and of B" in result.stdout


def test_diff_finds_what_a_file_uses(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "down.mfma").write_text(DOWN)
    text = HALF_TEXT.replace("operand(", "down(").replace("layouts\n", "layouts\nuse down\n", 1)
    path = spec(tmp_path, text)
    assert run("diff", HALF, "--with", path).exit_code == 1
    assert run("diff", HALF, "--with", path, "-I", tmp_path / "own").exit_code == 0
    assert run("diff", HALF, "--with", "iree", "-I", tmp_path / "own").exit_code == 2


def test_diff_with_an_entry_that_has_k_in_another_order(tmp_path: Path) -> None:
    both = DOWN + HALF_TEXT.replace("operand(", "down(")
    path = spec(tmp_path, both)
    result = run("diff", HALF, "--with", path)
    assert result.exit_code == 0
    assert "a  equal up to the order of k" in result.stdout
    assert run("diff", "mfma_f32_16x16x16_bf16", "--with", path).exit_code == 0  # the only entry
    again = HALF_TEXT.replace("f16 {", "f16_again {").replace("v_mfma", "v_again")
    path.write_text(both + again.replace("use layouts\n", ""))
    result = run("diff", "mfma_f32_16x16x16_bf16", "--with", path)
    assert result.exit_code == 1
    assert f"has no `mfma_f32_16x16x16_bf16`, but: {HALF}, {HALF}_again" in result.stderr


def test_diff_knows_what_scales_bind() -> None:
    bound, free = (run("diff", SCALED, "--with", "iree", *more) for more in ((), ("--unscaled",)))
    assert (bound.exit_code, free.exit_code) == (1, 0)
    assert "each scale belongs to a group of 32 k" in bound.stdout
    assert "MFMA_F32_16x16x128_F8E4M3FN: equal up to the order of k" in free.stdout


def test_diff_of_one_operand() -> None:
    result = run("diff", SCALED, "--with", "iree", "--operand", "c")
    assert (result.exit_code, result.stdout.splitlines()[2:]) == (0, ["c  equal"])
    result = run("diff", SCALED, "--with", "ck", "--operand", "scale_a")
    assert result.exit_code == 1
    assert "do not both have an operand `scale_a`" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((SPARSE, "--with", "iree"), "IREE says nothing of"),
        ((HALF, "--with", "mfma_f32_32x32x8_f16"), "1 x 16 x 16 elements"),
        ((HALF, "--with", "mfma_f32_16x16x16_f61"), "did you mean"),
        (("mfma_scale_f32_16x16x128_f8f6f4_fp4_fp4", "--with", "iree", "--unscaled"),
         "only of elements of eight bits there is a product without scales"),
    ],
)  # fmt: skip
def test_diff_refuses_with_a_sentence(arguments: tuple[str, ...], message: str) -> None:
    result = run("diff", *arguments)
    assert (result.exit_code, result.stdout) == (1, "")
    assert message in result.stderr


def test_what_is_printed_as_json_keeps_to_the_schema() -> None:
    schema = json_schema()
    for name in (HALF, SPARSE, SCALED):
        told = json.loads(run("export", name, "--as", "json").stdout)
        jsonschema.validate(told, schema["$defs"]["export"] | {"$defs": schema["$defs"]})
        jsonschema.validate(told, schema)
        for other in (name, "ck"):
            told = json.loads(run("diff", name, "--with", other, "--format", "json").stdout)
            jsonschema.validate(told, schema["$defs"]["difference"] | {"$defs": schema["$defs"]})
            jsonschema.validate(told, schema)
    assert told["operands"][2]["verdict"] == EQUAL


def test_neither_waits_for_tvm() -> None:
    program = (
        "import sys; from click.testing import CliRunner; from mfmadsl.cli import main; "
        f"CliRunner().invoke(main, ['export', '{HALF}', '--as', 'json']); "
        f"CliRunner().invoke(main, ['diff', '{HALF}', '--with', 'iree']); "
        "sys.exit(any(x in sys.modules for x in ('tvm', 'numpy', 'triton')))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0

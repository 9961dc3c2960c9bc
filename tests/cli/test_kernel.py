"""The commands that run machine code: `emulate`, `sanitize`, `profile`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import numpy as np
import pytest

from mfmadsl.report import json_schema
from tests.cli.command import run
from tests.device import kernels
from tests.emulator.code_object.objects import code_object
from tests.emulator.machine import waiting
from tests.emulator.waves import kernel

# Each lane writes its number, and what its neighbour left in LDS.
CODE = """
	s_load_dwordx2 s[4:5], s[0:1], 0x0
	v_lshlrev_b32_e32 v1, 2, v0
	v_xor_b32_e32 v2, 4, v1
	ds_write_b32 v1, v0
	s_waitcnt lgkmcnt(0)
	s_barrier
	ds_read_b32 v3, v2
	s_waitcnt lgkmcnt(0)
	global_store_dword v1, v3, s[4:5]"""
LAUNCH = ("--grid", "1", "--block", "128", "--arg", "uint32[128]=0")


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "kernel.s"
    path.write_text(kernel(CODE, lds=512))
    return path


def test_a_kernel_runs_and_its_result_is_saved(text: Path, tmp_path: Path) -> None:
    result = run("emulate", text, *LAUNCH, "--save", f"0={tmp_path}/out.npy")
    assert (result.exit_code, result.output) == (0, "2 waves, 20 instructions\n")
    assert (np.load(tmp_path / "out.npy") == np.arange(128) ^ 1).all()


def test_arguments_come_from_files(text: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "in.npy", np.full(128, 9, np.uint32))
    launch = [*LAUNCH[:-1], tmp_path / "in.npy"]
    assert run("emulate", text, *launch, "--save", f"0={tmp_path}/out.npy").exit_code == 0
    assert (np.load(tmp_path / "in.npy") == 9).all()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--block", "64"], 1, "does not say its grid: give --grid"),
        (["--grid", "1"], 1, "does not say its block: give --block"),
        (["--grid", "0", "--block", "64"], 2, "'0' is not one to three positive numbers"),
        (["--grid", "1", "--block", "64"], 1, "takes 1 arguments (p0), but 0 are given"),
        ([*LAUNCH[:4], "--arg", "floot16[4]"], 1, "there is no type `floot16`"),
        ([*LAUNCH[:4], "--arg", "float16"], 1, "argument `float16` is none of: FILE.npy, float16["),
        ([*LAUNCH[:4], "--arg", "int8[4]=999"], 1, "`999` is no int8"),
        ([*LAUNCH[:4], "--arg", "no.npy"], 1, "no.npy: cannot be read: "),
        ([*LAUNCH[:4], "--arg", "uint32[12]"], 1, "offset 48 of `p0`, which has 48 bytes"),
        ([*LAUNCH, "--symbol", "other"], 1, "there is no kernel `other`, but: kernel"),
        ([*LAUNCH, "--save", "out.npy"], 2, "is not N=FILE.npy"),
        ([*LAUNCH, "--save", "3=out.npy"], 1, "there is no argument 3: the kernel takes 1"),
        ([*LAUNCH, "--budget", "5"], 1, "executed 5 instructions without reaching its end"),
        ([*LAUNCH, "--order", "randon"], 2, "'randon' is not one of 'lockstep', 'random'"),
        ([*LAUNCH, "--seed", "-1"], 2, "-1 is not in the range x>=0"),
        ([*LAUNCH, "--seed", "3"], 2, "--seed: is of a random order: say --order random, too"),
    ],
)
def test_what_is_wrong_is_told(text: Path, arguments: list[str], code: int, message: str) -> None:
    result = run("emulate", text, *arguments)
    assert result.exit_code == code
    assert message in result.output


def test_the_order_of_waves_and_who_waits_for_ever(tmp_path: Path) -> None:
    path = tmp_path / "kernel.s"
    path.write_text(waiting.flag(2, consumer_first=True))
    launch = ("--grid", "3", "--block", "64", "--arg", "uint32[5]=0")
    first, again, other = (
        run("emulate", path, *launch, "--order", "random", "--seed", seed).output
        for seed in ("1", "1", "2")
    )
    assert first.startswith("3 waves, ")
    assert first == again != other
    assert run("sanitize", path, *launch, "--order", "random").output == "3 waves, no faults\n"
    path.write_text(waiting.flag(2, consumer_first=True, is_set=False))
    for command, before in (("emulate", "error: "), ("sanitize", "error[deadlock]: ")):
        result = run(command, path, *launch)
        assert (result.exit_code, result.output.startswith(f"{before}line 16: ")) == (1, True)
        assert "waits in a loop for offset 0 of `p0`" in result.output


def test_a_code_object_is_taken_like_text(tmp_path: Path) -> None:
    path = tmp_path / "two.hsaco"
    path.write_bytes(code_object("gfx90a"))
    launch = ("--grid", "1", "--block", "64", "--arg", "float32[64]=1")
    asked = ("--symbol", "double", "--save", f"0={tmp_path}/out.npy")
    assert run("emulate", path, *launch, *asked).output.startswith("1 waves, ")
    assert np.load(tmp_path / "out.npy")[0] == 8 + np.float32(np.pi)
    assert run("sanitize", path, *launch, *asked[:2]).output == "1 waves, no faults\n"
    assert "on gfx90a" in run("profile", path, *launch, *asked[:2]).output
    for more, message in (
        ((), "holds several kernels, name one with --symbol: double, other"),
        (("--symbol", "no"), "there is no kernel 'no', but: double, other"),
        (("--symbol", "double", "--arch", "gfx942"), "it is for gfx90a, not for gfx942"),
    ):
        result = run("emulate", path, *launch, *more)
        assert (result.exit_code, message in result.output) == (1, True)
    path.write_bytes(code_object("gfx90a")[:500])
    assert "two.hsaco: it is a broken ELF file" in run("emulate", path, *launch).output


def test_files_that_are_no_kernels(tmp_path: Path) -> None:
    assert "cannot be read: No such file" in run("emulate", tmp_path / "no.s", *LAUNCH).output
    (tmp_path / "binary.s").write_bytes(b"\xff\xfe\x00")
    assert "is no text" in run("emulate", tmp_path / "binary.s", *LAUNCH).output
    (tmp_path / "text.s").write_text("hello\n")
    chosen = run("emulate", tmp_path / "text.s", *LAUNCH, "--arch", "gfx942")
    assert "says by itself what --arch would say" in chosen.output
    assert "there is no `.amdhsa_kernel`" in run("emulate", tmp_path / "text.s", *LAUNCH).output
    (tmp_path / "other.json").write_text("{}")
    assert "is not what `mfmadsl gemm --emit json` writes" in run(
        "emulate", tmp_path / "other.json").output  # fmt: skip


def test_a_kernel_of_ours_needs_no_more_than_its_json(tmp_path: Path) -> None:
    gemm = ("gemm", "--intrinsic", "mfma_f32_16x16x16_f16", "--arch", "gfx942")
    sizes = ("-m", "64", "-n", "64", "-k", "64")
    written = run(*gemm, *sizes, "--emit", "asm", "--emit", "json", "-o", tmp_path / "k")
    assert written.exit_code == 0
    assert run("sanitize", tmp_path / "k.json").output.endswith("waves, no faults\n")
    assert "matrix cycles" in run("profile", tmp_path / "k.json").output
    for name in ("alone.json", "alone"):
        only = run(*gemm, *sizes, "--emit", "json", "-o", tmp_path / name)
        assert only.exit_code == 0
        assert "names no assembly" in run("profile", tmp_path / name).output


def test_json_is_known_by_what_it_holds(tmp_path: Path) -> None:
    sizes = ("-m", "64", "-n", "64", "-k", "64")
    both = ("--emit", "asm", "--emit", "json")
    assert run("gemm", "--arch", "gfx942", *sizes, *both, "-o", tmp_path / "k").exit_code == 0
    other = tmp_path / "k.description"
    (tmp_path / "k.json").rename(other)
    assert "matrix cycles" in run("profile", other).output
    assert "says by itself what --grid would say" in run("profile", other, "--grid", "1").output
    beside = run("profile", other, "--report", tmp_path / "page.html", "--against", other)
    assert beside.exit_code == 0, beside.output


def test_faults_are_told_with_their_place(text: Path) -> None:
    assert run("sanitize", text, *LAUNCH).output == "2 waves, no faults\n"
    text.write_text(
        text.read_text().replace("	s_barrier\n", "").replace("v2, 4, v1", "v2, v9, v1")
    )
    first = run("sanitize", text, *LAUNCH)
    assert first.exit_code == 1
    assert first.output == (
        "error[uninitialized]: line 7: `v_xor_b32_e32 v2, v9, v1`: reads v9, which nobody wrote "
        "(workgroup (0, 0, 0), wave 0, lane 0)\n"
    )


def test_a_kernel_may_take_nothing(tmp_path: Path) -> None:
    path = tmp_path / "nothing.s"
    path.write_text(kernel("	v_mov_b32_e32 v1, 1", arguments=0))
    launch = ("--grid", "1", "--block", "64")
    assert run("emulate", path, *launch).output == "1 waves, 2 instructions\n"
    assert run("sanitize", path, *launch).output == "1 waves, no faults\n"
    assert run("sanitize", path, *launch, "--unwritten", "1").exit_code == 2


def test_all_faults_can_be_collected_as_json(text: Path) -> None:
    text.write_text(
        text.read_text().replace("	s_barrier\n", "").replace("v2, 4, v1", "v2, 0x100, v1")
    )
    result = run("sanitize", text, *LAUNCH, "--keep-going", "--format", "json")
    assert result.exit_code == 1
    faults = json.loads(result.output)
    assert [fault["kind"] for fault in faults] == ["race"]
    assert faults[0]["workgroup"] == [0, 0, 0]
    assert faults[0]["instruction"] == "ds_read_b32 v3, v2"
    jsonschema.validate(faults, json_schema())
    assert run("sanitize", text, *LAUNCH, "--unwritten", "4").exit_code == 2


def test_faults_as_sarif_are_at_lines_of_the_text(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text.write_text(text.read_text().replace("v2, 4, v1", "v2, v9, v1"))
    result = run("sanitize", text, *LAUNCH, "--format", "sarif")
    assert result.exit_code == 1
    (found,) = json.loads(result.output)["runs"][0]["results"]
    place = found["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": text.name, "uriBaseId": "SRCROOT"}
    assert place["region"]["startLine"] == 7
    path = tmp_path / "numbered.hsaco"
    path.write_bytes(kernels.code_object("numbered"))
    launch = ("--grid", "1", "--block", "64", "--arg", "int32[63]")
    result = run("sanitize", path, *launch, "--format", "sarif")
    (found,) = json.loads(result.output)["runs"][0]["results"]
    assert "region" not in found["locations"][0]["physicalLocation"]


def test_a_profile_as_table_json_and_timeline(text: Path, tmp_path: Path) -> None:
    table = run("profile", text, *LAUNCH)
    assert table.exit_code == 0
    assert "limit  " in table.stdout
    result = run("profile", text, *LAUNCH, "--format", "json", "--timeline", tmp_path / "t.json")
    found = json.loads(result.stdout)
    assert found["whole"]["memory_bytes"] == 256
    jsonschema.validate(found, json_schema())
    assert json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert run("profile", text, *LAUNCH, "--timeline", "/proc/t.json").exit_code == 1


def test_an_unknown_instruction_is_taken_at_a_files_word(tmp_path: Path) -> None:
    from tests.emulator.instructions.matrix.test_described import INVENTED, invented, text_of

    path = tmp_path / "invented.s"
    path.write_text(text_of(invented(8, 32)))
    entry = tmp_path / "invented.mfma"
    entry.write_text(INVENTED.format(m=8, n=32, a=2, b=8))
    launch = ["--grid", "1", "--block", "64"]
    for words in (1, 4, 4):
        launch += ["--arg", f"uint32[64,{words}]=0"]
    refused = run("emulate", path, *launch)
    assert refused.exit_code == 1
    assert "unknown instruction" in refused.output
    trusting = run("emulate", path, *launch, "--trust-spec", entry)
    assert trusting.exit_code == 0
    assert trusting.output.splitlines()[1:] == [
        "taken at the word of the .mfma file: v_mfma_f32_8x32x16_f16"
    ]
    sanitized = run("sanitize", path, *launch, "--trust-spec", entry)
    assert sanitized.exit_code == 0
    assert sanitized.output.splitlines() == [
        "1 waves, no faults",
        "taken at the word of the .mfma file: v_mfma_f32_8x32x16_f16",
    ]
    assert "unknown instruction" in run("sanitize", path, *launch).output


def test_lds_that_a_kernel_gets_at_its_launch_is_read_beside_it_or_asked_for(
    tmp_path: Path,
) -> None:
    """As Triton has it: its code objects say 0, and the file of its cache how much it is."""
    path = tmp_path / "kernel.s"
    path.write_text(kernel(CODE, lds=0))
    refused = run("sanitize", path, *LAUNCH)
    assert refused.exit_code == 1
    assert "it has 0: if the kernel gets more when it is launched, say so by `--lds`" in (
        refused.output
    )
    assert run("sanitize", path, *LAUNCH, "--lds", "512").exit_code == 0
    beside = tmp_path / "kernel.json"
    beside.write_text(json.dumps({"name": "kernel", "shared": 512, "num_warps": 2}))
    assert run("sanitize", path, *LAUNCH).exit_code == 0
    # What is said goes before; what is of another kernel, or nothing of the kind, says nothing.
    assert run("sanitize", path, *LAUNCH, "--lds", "4").exit_code == 1
    for other in ('{"name": "other", "shared": 512}', '{"shared": "512"}', "[1]", "{", '"shared"'):
        beside.write_text(other)
        assert run("sanitize", path, *LAUNCH).exit_code == 1


def test_a_kernel_beside_another_may_take_other_arguments(text: Path, tmp_path: Path) -> None:
    two = tmp_path / "two.s"
    two.write_text(kernel(CODE, arguments=2, lds=512))
    page = tmp_path / "page.html"
    beside = ["--report", page, "--against", two]
    refused = run("profile", text, *LAUNCH, *beside)
    assert refused.exit_code == 1
    assert "takes 2 arguments (p0, p1), but 1 are given" in refused.output
    more = ["--against-arg", "uint32[128]=0", "--against-arg", "uint32[8]"]
    assert run("profile", text, *LAUNCH, *beside, *more).exit_code == 0
    assert page.read_text().count("two.s") > 0
    assert run("profile", text, *LAUNCH, *more).exit_code == 2


def test_a_kernel_beside_json_of_ours_takes_its_own_arguments(text: Path, tmp_path: Path) -> None:
    ours = tmp_path / "ours"
    sizes = ["-m", "64", "-n", "64", "-k", "64"]
    run("gemm", "--arch", "gfx942", *sizes, "--emit", "asm", "--emit", "json", "-o", ours)
    beside = ["--report", tmp_path / "page.html", "--against", f"{ours}.json"]
    done = run("profile", text, *LAUNCH, *beside)
    assert done.exit_code == 0, done.output


def test_a_kernel_beside_another_has_a_launch_of_its_own(text: Path, tmp_path: Path) -> None:
    """Of twice as many workgroups, half as large, and with its LDS told."""
    two = tmp_path / "two.s"
    two.write_text(kernel(CODE, lds=0))
    page = tmp_path / "page.html"
    beside = ["profile", text, *LAUNCH, "--report", page, "--against", two]
    refused = run(*beside)
    assert refused.exit_code == 1
    assert f"error: {two}: line 8: " in refused.output
    assert "say so by `--against-lds`" in refused.output
    own = ["--against-grid", "2", "--against-block", "64", "--against-lds", "512"]
    done = run(*beside, *own)
    assert done.exit_code == 0, done.output
    assert "2 x 1 x 1" in page.read_text()


def test_a_kernel_beside_json_has_to_have_a_launch(text: Path, tmp_path: Path) -> None:
    """Which JSON says of the first one alone; its arguments are those of both."""
    ours = tmp_path / "ours"
    sizes = ["-m", "64", "-n", "64", "-k", "64"]
    run("gemm", "--arch", "gfx942", *sizes, "--emit", "asm", "--emit", "json", "-o", ours)
    beside = ["profile", f"{ours}.json", "--report", tmp_path / "page.html", "--against", text]
    given: list[str] = []
    for name, value in (("grid", "1"), ("block", "128")):
        assert f"does not say its {name}: give --against-{name}" in run(*beside, *given).output
        given += [f"--against-{name}", value]
    assert "takes 1 arguments (p0), but 3 are given" in run(*beside, *given).output
    assert run(*beside, *given, "--against-arg", "uint32[128]=0").exit_code == 0
    described = run(*beside[:-1], f"{ours}.json", "--against-grid", "1")
    assert "says by itself what --against-grid would say" in described.output


@pytest.mark.parametrize("option", ["arg", "symbol", "grid", "block", "lds"])
def test_what_is_said_of_the_other_kernel_needs_one(text: Path, option: str) -> None:
    refused = run("profile", text, *LAUNCH, f"--against-{option}", "0" if option == "lds" else "1")
    assert refused.exit_code == 2
    assert f"--against-{option} needs --against KERNEL" in refused.output


def test_one_of_several_kernels_is_put_beside_another(text: Path, tmp_path: Path) -> None:
    path = tmp_path / "two.hsaco"
    path.write_bytes(code_object("gfx942"))
    beside = ["profile", text, *LAUNCH, "--report", tmp_path / "page.html", "--against", path]
    refused = run(*beside).output
    assert "holds several kernels, name one with --against-symbol: double, other" in refused
    own = ["--against-block", "64", "--against-arg", "float32[64]=1"]
    assert run(*beside, "--against-symbol", "double", *own).exit_code == 0


@pytest.mark.parametrize(
    ("given", "told"),
    [(1, "the last two are pointers"), (2, "the last is a pointer"), (0, None), (4, None)],
)
def test_pointers_that_triton_adds_are_told(tmp_path: Path, given: int, told: str | None) -> None:
    path = tmp_path / "kernel.s"
    path.write_text(re.sub(r"\.name: p\d, ", "", kernel(CODE, arguments=3, lds=512)))
    launch = [*LAUNCH[:4], *["--arg", "uint32[128]=0"] * given]
    output = run("emulate", path, *launch).output
    assert f"takes 3 arguments (0, 1, 2), but {given} are given" in output
    if told is None:
        assert "Triton" not in output
    else:
        assert f"if Triton made it, {told} to memory of Triton's own, so give null" in output
        rest = ["--arg", "null"] * (3 - given)
        assert run("emulate", path, *launch, *rest).exit_code == 0

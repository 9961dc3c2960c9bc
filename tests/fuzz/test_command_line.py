"""Whatever is asked of the command line, it answers in lines, with an exit code of its own."""

from __future__ import annotations

import os
import random
import shlex
import stat
import traceback
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from click.testing import CliRunner

from mfmadsl.cli import main
from mfmadsl.export import FORMATS, export_layouts
from mfmadsl.language import find, library, library_files
from tests.cases import ALL
from tests.emulator.code_object.objects import code_object
from tests.emulator.waves import kernel
from tests.fuzz.isolated import failures
from tests.language.entries import HALF

SEED = int(os.environ["MFMADSL_SEED"])
CODE = """
	s_load_dwordx2 s[4:5], s[0:1], 0x0
	v_lshlrev_b32_e32 v1, 2, v0
	s_waitcnt lgkmcnt(0)
	global_store_dword v1, v0, s[4:5]"""
JSON = """{"symbol": "kernel", "grid": [1, 1, 1], "block": [64, 1, 1], "lds_bytes": 0,
 "arguments": [{"name": "p0", "dtype": "uint32", "shape": [64]}], "files": ["good.s", "k.json"]}"""
LAYOUTS = export_layouts(find("mfma_f32_4x4x4_16b_f16"), "json", "a")
PIECES = ["0", "1", "-1", "16", "64", "99999999999999999999", "\n", " ", "\t", ",", ":", "[", "]",
          "{", "}", "(", ")", '"', "\\", "\0", "é", "null", "v0", "s[0:1]", "v[0:99999999]", "exec",
          "intrinsic", "layout", "use layouts", "at", "lane", "true", "0x", "1e999", "///", "---",
          "*a", "&a", "!!python/object:os.system", "v_mfma_f32_16x16x16_f16", "s_branch kernel",
          "\udc80", "\ufeff", "k / 0", "sext(", "|", "lgkmcnt(", "offset:", "hwreg("]  # fmt: skip


def folder_of_files(folder: Path) -> None:
    """Good files, spoiled ones, and what is no file."""
    (folder / "good.mfma").write_text(HALF)
    (folder / "good.s").write_text(kernel(CODE))
    (folder / "k.json").write_text(JSON)
    (folder / "good.co").write_bytes(code_object())
    (folder / "layouts.json").write_text(LAYOUTS)
    (folder / "empty").write_bytes(b"")
    (folder / "binary.s").write_bytes(bytes(range(256)))
    (folder / "latin.mfma").write_bytes(b"// \xe9\n")
    (folder / "wide.json").write_bytes('{"symbol": 1}'.encode("utf-16"))
    (folder / "deep.json").write_text("[" * 100_000)
    (folder / "deep.mfma").write_text("layout l(i) { lane = " + "(" * 50_000)
    (folder / "long.mfma").write_text("x" * (1 << 20))
    (folder / "folder.mfma").mkdir()
    (folder / "loop.mfma").symlink_to("loop.mfma")
    (folder / "dangling.mfma").symlink_to("nowhere")
    (folder / "zero.json").symlink_to("/dev/zero")
    (folder / "null.mfma").symlink_to("/dev/null")
    (folder / "secret.mfma").write_text(HALF)
    (folder / "secret.mfma").chmod(0)
    np.save(folder / "good.npy", np.zeros(64, np.uint32))
    (folder / "short.npy").write_bytes((folder / "good.npy").read_bytes()[:150])
    (folder / "empty.npy").write_bytes(b"")
    header = (folder / "good.npy").read_bytes()
    (folder / "large.npy").write_bytes(
        header.replace(b"(64,), }", b"(64e9,)}").replace(b"64e9", b"9999")
    )


FILES = ["good.mfma", "good.s", "k.json", "layouts.json", "empty", "binary.s", "latin.mfma",
         "wide.json", "deep.json", "deep.mfma", "long.mfma", "folder.mfma", "loop.mfma",
         "dangling.mfma", "zero.json", "null.mfma", "secret.mfma", "good.npy", "short.npy",
         "spoiled.mfma", "spoiled.s", "spoiled.json", "spoiled.npy", "nowhere/x", "missing.mfma",
         "", ".", "..", "/", "x" * 300, "\udcff.mfma", "/proc/self/mem", "/dev/full",
         "/dev/null"]  # fmt: skip
NUMBERS = ["0", "1", "-1", "16", "32", "2147483648", "9" * 31, "9" * 5000, "1.5", "1e3", "x", "",
           "²", "0x10", " 7", "nan", "17", "33", "96", "m", "2*m", "m+1"]  # fmt: skip
EXTENTS = ["1", "64", "1,1", "1,1,1", "1,1,1,1", "0", "-1", "", ",", "1,,1", "x", "64,64,64",
           "9" * 31, "9" * 5000, "1024", "2048", "1.5"]  # fmt: skip
ARGUMENTS = ["uint32[64]=0", "uint32[64]", "null", "int32=5", "good.npy", "short.npy", "empty.npy",
             "large.npy", "spoiled.npy", "missing.npy", "folder.mfma", "float16", "floot[3]",
             "float16[99999999999]", "float16[99999,99999,99999]", "float16[" + "9" * 5000 + "]",
             "uint32[" + "1," * 50 + "]", "object[3]", "str[3]", "S5[3]", "V4[2]", "f4[3]",
             "int4[8]", "finfo[3]", "complex64[3]", "bool[64]", "datetime64[3]", "int8[4]=999",
             "int8=999",
             "float64=1e999", "float16[64]=nan", "uint32[64]=", "=", "[]", "", "[3]", "x.npy",
             "bfloat16[64]=1", "float4_e2m1fn[64]", "int32=" + "9" * 5000, "\udcff",
             "uint32[]", "uint32[0]", "longdouble[3]", "sum[3]"]  # fmt: skip
NAMES = [
    "mfma_f32_16x16x16_f16",
    "v_mfma_f32_16x16x16f16",
    "smfmac_f32_16x16x32_f16",
    "mfma_f32_4x4x4_16b_f16",
    "mfma_f64_16x16x4_f64",
    "nothing",
    "",
    "x" * 5000,
    "\udcff",
    "é",
]
CHIPS = [
    "gfx942",
    "gfx942",
    "gfx90a",
    "gfx950",
    "mi300x",
    "gfx1100",
    "gfx906",
    "",
    "x" * 5000,
    "\udcff",
    "9",
]
OUTPUTS = [
    "out",
    "out.s",
    "good.s",
    "folder.mfma",
    "nowhere/out",
    "",
    "..",
    ".",
    "new/",
    "loop.mfma",
    "dangling.mfma",
    "/dev/null",
    "/dev/full",
    "/proc/out",
    "x" * 300,
    "\udcff",
]
CODES = ["collision", "colision", "", "x" * 5000, "\udcff", "error[name]", "--help", "[", "(?"]
SAVES = ["0=out.npy", "=x", "0=", "1=out.npy", "x", "²=out.npy", "9" * 5000 + "=out.npy", "0=..",
         "0=/dev/full", "-1=out.npy", "0=nowhere/x", "0=folder.mfma", "0=loop.mfma"]  # fmt: skip


class Option(NamedTuple):
    """An option and what it is given; None stands for a flag."""

    name: str
    values: list[str] | None
    likely: float = 0.3


LAUNCH = [
    Option("--grid", EXTENTS[:9], 0.7), Option("--block", EXTENTS, 0.7),
    Option("--arg", ARGUMENTS, 0.9), Option("--arg", ARGUMENTS, 0.1),
    Option("--lds", NUMBERS), Option("--budget", ["1", "1000", *NUMBERS], 0.3),
    Option("--symbol", ["kernel", "double", "other", "", "\udcff"], 0.2),
    Option("--arch", CHIPS, 0.05),
]  # fmt: skip
LIKELY = {
    "emulate": ["good.s", "spoiled.s", "k.json", "spoiled.json", "good.co", "spoiled.co"],
    "check": ["spoiled.mfma"],
    "fmt": ["spoiled.mfma", "good.mfma"],
    "compile": ["good.mfma", "spoiled.mfma"],
}
LIKELY |= {"sanitize": LIKELY["emulate"], "profile": LIKELY["emulate"]}
PRODUCTS = ["MI300X", "mi325x", "MI355X", "MI300", "gfx942", "x", ""]
DTYPES = ["float16", "int8", "float8_e4m3fn", "float64", "x", ""]
COMMANDS: dict[str, tuple[list[str], list[Option]]] = {
    "check": (FILES, [Option("--format", ["text", "json", "xml"]), Option("-I", FILES)]),
    "fmt": (FILES, [Option("--check", None, 0.5)]),
    "schema": ([], []),
    "compile": (FILES, [Option("-o", OUTPUTS, 0.9), Option("-I", FILES)]),
    "list": (["mfma", "8x?", "[", "x", ""], [Option("--arch", CHIPS, 0.9),
             Option("--format", ["table", "json"])]),
    "show": (NAMES, [
        Option("--operand", ["a", "b", "c", "index", "scale_a", "x", ""]), Option("--arch", CHIPS),
        Option("--format", ["table", "json", "svg", "html"]), Option("--cbsz", NUMBERS),
        Option("--abid", NUMBERS), Option("--blgp", NUMBERS), Option("--spec", FILES),
        Option("-I", FILES), Option("--view", ["registers", "banks", "elements", "x"]),
        Option("--color", ["register", "lane", "bank"]), Option("--k-pack", ["2", *NUMBERS], 0.2),
        Option("-o", OUTPUTS, 0.1),
    ]),
    "explore": (["good.mfma", "spoiled.mfma"], [
        Option("-o", ["page.html", *OUTPUTS], 0.9), Option("-I", FILES, 0.2),
    ]),
    "export": (NAMES, [
        Option("--as", [*FORMATS, "x"], 0.95),
        Option("--operand", ["a", "b", "c", "index", "scale_a", "x"]), Option("--arch", CHIPS),
        Option("--spec", FILES), Option("-I", FILES), Option("-o", OUTPUTS),
    ]),
    "diff": (NAMES, [
        Option("--with", ["iree", "ck", "layouts.json", *FILES, *NAMES], 0.95),
        Option("--operand", ["a", "b", "c", "index", "scale_a", "x"]), Option("--arch", CHIPS),
        Option("--spec", FILES), Option("-I", FILES), Option("--unscaled", None),
        Option("--format", ["text", "json", "xml"]),
    ]),
    "gemm": ([], [
        Option("--intrinsic", NAMES, 0.9), Option("--arch", CHIPS, 0.9), Option("-m", NUMBERS, 0.9),
        Option("-n", NUMBERS, 0.9), Option("-k", NUMBERS, 0.9), Option("--spec", FILES),
        Option("--trans-b", None), Option("--emit", ["tir", "llvm", "asm", "json", "x"]),
        Option("-o", OUTPUTS), Option("-I", FILES), Option("--trans-a", None),
        Option("--batch", NUMBERS, 0.1), Option("--in-dtype", DTYPES, 0.1),
        Option("--b-dtype", DTYPES, 0.1), Option("--out-dtype", DTYPES, 0.1),
        Option("--epilogue", ["bias", "relu,gelu", "x", ",", ""], 0.1),
        Option("--tiling", ["split_k=2", "block=0x0", "waves=x", "x=1", "=", ""], 0.1),
        Option("--trust-spec", None, 0.1), Option("--emulate", None, 0.1),
        Option("--scales", None, 0.1), Option("--block-scales", None, 0.1),
        Option("--sparse", None, 0.1), Option("--weights", ["gptq", "int8", "x"], 0.1),
        Option("--group", NUMBERS, 0.1), Option("--experts", ["3", *NUMBERS], 0.1),
        Option("--tokens", NUMBERS, 0.05), Option("--mx-output", ["fp4", "bf8", "x", ""], 0.1),
        Option("--product", PRODUCTS, 0.05), Option("--report", OUTPUTS, 0.05),
    ]),
    "emulate": (FILES, [*LAUNCH, Option("--save", SAVES), Option("--trust-spec", FILES, 0.1)]),
    "sanitize": (FILES, [*LAUNCH, Option("--keep-going", None), Option("--unwritten", NUMBERS),
                         Option("--report", OUTPUTS, 0.2)]),
    "profile": (FILES, [
        *LAUNCH, Option("--timeline", OUTPUTS), Option("--format", ["json"]),
        Option("--full", None), Option("--launch", NUMBERS, 0.1),
        Option("--report", OUTPUTS, 0.2), Option("--against", LIKELY["emulate"], 0.1),
    ]),
    "--explain": (CODES, []),
    "frobnicate": (FILES, []),
}  # fmt: skip
COUNTS = {"schema": 2, "explore": 40, "gemm": 200, "emulate": 500, "sanitize": 300,
          "profile": 300, "check": 120, "compile": 200, "fmt": 150, "frobnicate": 20,
          "--explain": 30}  # fmt: skip


def spoiled(content: bytes, generator: random.Random) -> bytes:
    """The content with some pieces cut out, put in, or exchanged, or with its end missing."""
    if generator.random() < 0.15:
        return content[: generator.randrange(len(content))]
    for _ in range(generator.choice([1, 1, 2, 4])):
        start = generator.randrange(len(content))
        end = start + generator.choice([0, 0, 1, 1, 3, 10])
        piece = generator.choice(PIECES).encode("utf-8", "surrogateescape")
        piece *= generator.choice([1, 1, 1, 1, 2, 500])
        content = content[:start] + piece + content[end:]
    return content


def call(command: str, number: int) -> tuple[list[str], random.Random]:
    """The arguments of a case, and the dice for all else."""
    generator = random.Random(f"{SEED} {command} {number}")
    positional, options = COMMANDS[command]
    arguments = [command]
    for option in options:
        if generator.random() < option.likely:
            arguments.append(option.name)
            if option.values is not None:
                # Half of the calls are to get past the options.
                usual = generator.random() < 0.5
                arguments.append(option.values[0] if usual else generator.choice(option.values))
    likely = LIKELY.get(command, positional)
    for _ in range(generator.choice([0, 1, 1, 1, 1, 1, 2]) if positional else 0):
        arguments.append(generator.choice(likely if generator.random() < 0.7 else positional))
    if generator.random() < 0.05:
        arguments.insert(
            generator.randrange(1, len(arguments) + 1), generator.choice(["--", "-", "--x", "-h"])
        )
    return arguments, generator


def listing(folder: Path) -> dict[str, tuple[int, int, int]]:
    """What lies in a folder: mode, number and time of the last change of each."""
    paths = [folder, *folder.rglob("*")]
    return {str(p): (s.st_mode, s.st_ino, s.st_mtime_ns) for p in paths for s in [p.lstat()]}


def asked_for(arguments: list[str], folder: Path) -> set[str]:
    """The names of what a call may write."""
    named = set()
    for option, value in pairwise(arguments):
        if option in ("-o", "--timeline", "--save", "--report"):
            named.add(value.partition("=")[2] if option == "--save" else value)
    named |= set(arguments[1:]) if arguments[0] == "fmt" else set()
    named |= {"mfmadsl.html"} if arguments[0] == "explore" else set()
    named |= {"nowhere"} & {name.partition("/")[0] for name in named}  # folders are made on the way
    named |= {"nowhere"} if "dangling.mfma" in named else set()
    return {str(folder / name) for name in named}


def wrong_with(command: str, number: int, folder: Path) -> str | None:
    arguments, generator = call(command, number)
    for name, good in (("spoiled.mfma", "good.mfma"), ("spoiled.s", "good.s"),
                       ("spoiled.json", "k.json"), ("layouts.json", "layouts.json"),
                       ("spoiled.npy", "good.npy"),
                       ("spoiled.co", "good.co")):  # fmt: skip
        (folder / name).write_bytes(spoiled((folder / good).read_bytes(), generator))
    before = listing(folder)
    result = CliRunner().invoke(main, arguments)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        return "".join(traceback.format_exception(result.exception, limit=-4))
    if result.exit_code not in (0, 1, 2):
        return f"exit code {result.exit_code}"
    if result.exit_code and not result.stderr and not result.stdout:
        return f"exit code {result.exit_code} without a word"
    if "Traceback" in result.output:
        return f"a traceback: {result.output}"
    after, named = listing(folder), asked_for(arguments, folder)
    changed = {path for path in before | after if before.get(path) != after.get(path)}
    for path in changed - {str(folder)}:
        if not any(path == name or path.startswith((f"{name}/", f"{name}.")) for name in named):
            return f"wrote {path}, which nobody asked for"
    for path in changed & set(before):
        if stat.S_IFMT(before[path][0]) != stat.S_IFMT(after.get(path, (0, 0, 0))[0]):
            return f"{path} is something else now"
    return None


@pytest.mark.parametrize("command", COMMANDS)
def test_a_call_ends_as_it_should(command: str, tmp_path: Path) -> None:
    library(), library_files()  # read once, before the process is forked

    def case(number: int) -> str | None:
        folder = tmp_path / str(number)
        folder.mkdir()
        folder_of_files(folder)
        os.chdir(folder)
        return wrong_with(command, number, folder)

    def told(number: int) -> str:
        return f"`mfmadsl {shlex.join(call(command, number)[0])[:300]}` with MFMADSL_SEED={SEED}"

    count = COUNTS.get(command, 100)
    found = failures(count if ALL else count // 2, case, told)
    assert not found, "\n".join(found)

"""Text that only LLVM's assembler understands, and text that the parser reads as well."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from mfmadsl.backend.gpu.linker import link, linked
from mfmadsl.emulator import EmulationError, emulate
from mfmadsl.emulator.code_object import assembled, read_code_object
from mfmadsl.emulator.code_object.assembled import read_program
from mfmadsl.emulator.profiler import profile
from mfmadsl.emulator.sanitizer.sanitize import sanitize
from mfmadsl.model import ARCHITECTURES
from tests.emulator.code_object.objects import ONE_KERNEL, object_file
from tests.test_readme import ROOT

STORE = """
	s_load_dwordx2 s[0:1], s[0:1], 0x0
	v_mov_b32_e32 v1, s20
	v_lshlrev_b32_e32 v0, 2, v0
	s_waitcnt lgkmcnt(0)
	global_store_dword v0, v1, s[0:1]
"""
"""Stores s20 for each thread."""

PLAIN = f"\ts_movk_i32 s20, 41\n\ts_add_u32 s20, s20, 1\n{STORE}"
SYMBOLS = f".set N, 20\nM = N + 1\n\ts_movk_i32 s[N], M * 2\n{STORE}"
COMMENT = f"\ts_movk_i32 s20, 42 /* the answer,\n\ts_movk_i32 s20, 43 */\n{STORE}"
MACRO = (
    ".macro more register, by=1\n\ts_add_u32 \\register, \\register, \\by\n.endm\n"
    f"\ts_movk_i32 s20, 40\n\tmore s20\n\tmore s20, 1\n{STORE}"
)
REPEATED = f"\ts_movk_i32 s20, 30\n.rept 4\n\ts_add_u32 s20, s20, 3\n.endr\n{STORE}"
CONDITION = f".if 3 > 2\n\ts_movk_i32 s20, 42\n.else\n\tno_instruction\n.endif\n{STORE}"
EXPRESSION = f"\ts_movk_i32 s20, (1<<5)|10\n{STORE}"
TABLE = f"""
	s_getpc_b64 s[8:9]
	s_add_u32 s8, s8, table@rel32@lo+4
	s_addc_u32 s9, s9, table@rel32@hi+12
	s_load_dword s20, s[8:9], 0x8
	s_waitcnt lgkmcnt(0)
{STORE}	s_endpgm
	.p2align 3
table:
	.long 7, 8, 42
"""
CALL = f"""
	s_movk_i32 s20, 14
	s_call_b64 s[30:31], triple
{STORE}	s_endpgm
triple:
	s_mulk_i32 s20, 3
	s_setpc_b64 s[30:31]
"""
LOCAL = f"""
	s_movk_i32 s20, 0
1:
	s_add_u32 s20, s20, 21
	s_cmp_lt_u32 s20, 42
	s_cbranch_scc1 1b
	s_branch 1f
	s_movk_i32 s20, 43
1:
{STORE}"""
KINDS = [PLAIN, SYMBOLS, COMMENT, MACRO, REPEATED, CONDITION, EXPRESSION, TABLE, CALL, LOCAL]
NAMES = [
    "plain",
    "symbols",
    "comment",
    "macro",
    "repeated",
    "condition",
    "expression",
    "table",
    "call",
    "local",
]


def text_of(code: str, arch: str = "gfx942") -> str:
    split = "" if ARCHITECTURES[arch].separate_files else ".amdhsa_accum_offset 16"
    text = ONE_KERNEL.format(code=code, after="", accum_offset=split, target=arch)
    return f'\t.amdgcn_target "amdgcn-amd-amdhsa--{arch}"\n{text}'


def ran(text: str) -> npt.NDArray[np.uint32]:
    x = np.zeros(64, np.uint32)
    emulate(text, [x], (1,), (64,))
    return x


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("code", KINDS, ids=NAMES)
def test_text_runs_as_the_object_that_llvm_makes_of_it(code: str, arch: str) -> None:
    text = text_of(code, arch)
    data = linked(link(object_file(text, arch)))
    assert (ran(text) == 42).all()
    assert (ran(read_code_object(data).assembly("kernel")) == 42).all()


@pytest.mark.parametrize("code", KINDS, ids=NAMES)
def test_each_instruction_has_the_line_of_the_text_that_it_comes_from(code: str) -> None:
    text = text_of(code)
    lines = text.splitlines()
    of_macros = {"s_add_u32 s20, s20, 1": "more s20", "s_add_u32 s20, s20, 3": ".rept 4"}
    program = read_program(text)
    taken = program.instructions[: 1 + [x.name for x in program.instructions].index("s_endpgm")]
    for each in taken:
        line, name = lines[each.line - 1], re.sub("_e(32|64)$", "", each.name)
        assert name in line or of_macros[each.text] in line


def test_lines_are_those_of_the_text_and_not_of_what_it_was_compiled_from() -> None:
    code = f'.file 1 "kernel.cl"\n.set N, 20\n.loc 1 7 3\n\ts_movk_i32 s[N], 42\n{STORE}'
    text = text_of(code)
    line = 1 + text.splitlines().index("\ts_movk_i32 s[N], 42")
    program = read_program(text)
    assert program.instructions[0].line == line
    assert program.sources[line] == "kernel.cl:7"


def test_a_fault_is_told_at_the_line_of_the_text() -> None:
    text = text_of(SYMBOLS.replace("v0, v1, s[0:1]", "v0, v1, s[0:1] offset:N"))
    line = 1 + next(i for i, x in enumerate(text.splitlines()) if "global_store" in x)
    with pytest.raises(EmulationError, match=f"^line {line}: `global_store.*offset 256 of `x`"):
        sanitize(text, [np.zeros(64, np.uint32)], (1,), (64,))


def test_it_is_profiled_by_the_lines_of_the_text() -> None:
    found = profile(text_of(MACRO), [np.zeros(64, np.uint32)], (1,), (64,))
    assert found.whole.instructions["salu"] == 3


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (
            f".set N, 3\n\ts_movk_i32 s20, N +\n{STORE}",
            r"`s_movk_i32 s20, N \+`: .*column 21: unkn",
        ),
        (f".set N, 3\n\tv_noise v0\n{STORE}", r"`v_noise v0`: .* says, at column 2: invalid instr"),
        (
            MACRO.replace("\tmore s20\n", "\tmore s99, v[2:3]\n"),
            "`more s99, v.*LLVM's assembler says, at col",
        ),
        (".if 1\n\ts_nop 0\n", "LLVM's assembler says, at column .*: unmatched"),
        (f"{TABLE}".replace("table:", "other:"), "LLVM's linker says: .*undefined symbol: table"),
        (f"{EXPRESSION}".replace("(1<<5)", "(1<<"), "LLVM's assembler says"),
    ],
)
def test_what_llvm_refuses_is_refused_in_its_words(code: str, message: str) -> None:
    with pytest.raises(EmulationError, match=message) as raised:
        ran(text_of(code))
    assert ".s:" not in str(raised.value)


@pytest.mark.parametrize(
    "code",
    [
        '.incbin "/etc/hostname"',
        'here: .INCLUDE "other.s"',
        '.macro file name\n.inc\\()bin "\\name"\n.endm\n\tfile /etc/hostname',
        '.irp name, incbin\n.\\name "/etc/hostname"\n.endr',
    ],
)
def test_text_that_reads_files_is_refused(code: str) -> None:
    with pytest.raises(EmulationError, match="may read another file: write what it has into the"):
        ran(text_of(f".set N, 3\n{code}\n{STORE}"))


def test_labels_of_macros_are_no_directives() -> None:
    macro = ".macro skip\n\ts_branch .Lnext\\@\n\ts_nop 0\n.Lnext\\@:\n.endm\n"
    assert (ran(text_of(f"{macro}\tskip\n\tskip\n\ts_movk_i32 s20, 42\n{STORE}")) == 42).all()


def test_text_for_llvm_has_to_name_its_chip() -> None:
    text = text_of(SYMBOLS).partition("\n")[2]
    with pytest.raises(EmulationError, match=r"line 6: `.set N, 20`: .*name it by `.amdgcn_target"):
        ran(text)


def test_without_an_assembler_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assembled, "find_assembler", lambda: None)
    with pytest.raises(EmulationError, match=r"`.set M, 20`: .*there is none: pip install ziglang"):
        ran(text_of(SYMBOLS.replace("N", "M").replace("M = M + 1", "")))


def test_plain_text_is_read_without_an_assembler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assembled, "find_assembler", lambda: None)
    assert (ran(text_of(PLAIN)) == 42).all()


EXAMPLES = [
    (path.name, text)
    for path in sorted(Path(ROOT, "docs").glob("*.md"))
    for text in re.findall(r"^```asm[^\n]*\n(.*?)^```", path.read_text(), re.M | re.S)
    if ".amdhsa_kernel" in text
]


@pytest.mark.parametrize(("page", "text"), EXAMPLES, ids=[page for page, _ in EXAMPLES])
def test_llvm_takes_the_kernels_of_the_pages(page: str, text: str) -> None:
    del page
    x = np.full(64, 3, np.float32)
    code = read_code_object(linked(link(object_file(text, "gfx942"))))
    emulate(code.assembly("double"), [x], (1,), (64,))
    assert (x == 6).all()

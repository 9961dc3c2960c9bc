"""Jumps and calls to addresses that a kernel computes itself."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt
import pytest

from mfmadsl.emulator import EmulationError, emulate
from mfmadsl.emulator.code_object import read_code_object
from mfmadsl.emulator.profiler import profile
from mfmadsl.emulator.sanitizer.sanitize import sanitize
from mfmadsl.emulator.text.assembly import parse_assembly
from mfmadsl.model import ARCHITECTURES
from tests.emulator.code_object.objects import kernel_object
from tests.emulator.waves import run, wave

CHIPS = list(ARCHITECTURES)

STORE = """
	s_load_dwordx2 s[0:1], s[0:1], 0x0
	v_mov_b32_e32 v1, s20
	v_lshl_or_b32 v0, s2, 6, v0
	v_lshlrev_b32_e32 v0, 2, v0
	s_waitcnt lgkmcnt(0)
	global_store_dword v0, v1, s[0:1]
"""
"""Stores s20 for each thread."""


def address(label: str, register: int) -> str:
    """What Tensile writes: the literal is counted from itself, four bytes behind the counter."""
    low, high, apart = register, register + 1, register + 2
    return f"""
	s_getpc_b64 s[{low}:{high}]
	s_add_i32 s{apart}, {label}, 4
	s_ashr_i32 s{apart + 1}, s{apart}, 31
	s_add_u32 s{low}, s{low}, s{apart}
	s_addc_u32 s{high}, s{high}, s{apart + 1}
"""


def ran(
    code: str, arch: str = "gfx942", groups: int = 1, after: str = ""
) -> npt.NDArray[np.uint32]:
    """What each workgroup has stored, under the eyes of the sanitizer."""
    text = read_code_object(kernel_object(code, arch, after)).assembly("kernel")
    x = np.zeros((groups, 64), np.uint32)
    assert not sanitize(text, [x], (groups,), (64,)).faults
    again = np.zeros_like(x)
    emulate(text, [again], (groups,), (64,))
    assert (x == again).all()
    assert (x == x[:, :1]).all()
    return x[:, 0]


FORWARD = f"""
	s_movk_i32 s20, 1
{address("far", 8)}
	s_setpc_b64 s[8:9]
	s_addk_i32 s20, 100
far:
	s_addk_i32 s20, 10
{STORE}"""
BACK = f"""
	s_movk_i32 s20, 1
again:
	s_addk_i32 s20, 10
	s_cmp_gt_i32 s20, 35
	s_cbranch_scc1 .Lenough
{address("again", 8)}
	s_setpc_b64 s[8:9]
.Lenough:
{STORE}"""
CALLS = f"""
	s_movk_i32 s20, 1
{address("triple", 8)}
	s_swappc_b64 s[30:31], s[8:9]
	s_addk_i32 s20, 5
	s_swappc_b64 s[30:31], s[8:9]
{STORE}
	s_endpgm
triple:
	s_mulk_i32 s20, 3
	s_setpc_b64 s[30:31]
"""
SWAPPED = f"""
	s_movk_i32 s20, 1
{address("twice", 30)}
	s_swappc_b64 s[30:31], s[30:31]
	s_addk_i32 s20, 5
{STORE}
	s_endpgm
twice:
	s_lshl_b32 s20, s20, 1
	s_setpc_b64 s[30:31]
"""
CALLED_BY_LABEL = f"""
	s_movk_i32 s20, 2
	s_call_b64 s[30:31], .Lsquare
	s_addk_i32 s20, 1
	s_call_b64 s[30:31], .Lsquare
{STORE}
	s_endpgm
.Lsquare:
	s_mul_i32 s20, s20, s20
	s_setpc_b64 s[30:31]
"""


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize(
    ("code", "result"),
    [(FORWARD, 11), (BACK, 41), (CALLS, 24), (SWAPPED, 7), (CALLED_BY_LABEL, 25)],
    ids=["forward", "back", "calls", "swapped", "by_label"],
)
def test_a_kernel_goes_on_where_it_jumps(code: str, result: int, arch: str) -> None:
    assert ran(code, arch)[0] == result


def test_each_wave_goes_its_own_way() -> None:
    """A table of jumps, of eight bytes each: workgroups that take the same way meet again."""
    ways = "".join(f"\ts_movk_i32 s20, {100 + i}\n\ts_branch .Ldone\n" for i in range(4))
    code = f"""
{address("table", 8)}
	s_and_b32 s12, s2, 3
	s_lshl_b32 s12, s12, 3
	s_add_u32 s8, s8, s12
	s_addc_u32 s9, s9, 0
	s_setpc_b64 s[8:9]
table:
{ways}.Ldone:
{STORE}"""
    assert ran(code, groups=7).tolist() == [100, 101, 102, 103, 100, 101, 102]


@pytest.mark.parametrize("sized", [True, False])
def test_functions_of_the_code_object_are_called(sized: bool) -> None:
    """One calls another; what nobody calls may be no code that is known."""
    size = "\t.size {0}, .L{0}_end-{0}\n" if sized else ""
    function = "\t.p2align 8\n\t.type {0},@function\n{0}:\n{1}\n.L{0}_end:\n" + size
    after = function.format(
        "ten", f"\ts_mov_b64 s[34:35], s[30:31]\n{address('seven', 12)}\n"
        "\ts_swappc_b64 s[30:31], s[12:13]\n\ts_addk_i32 s20, 3\n\ts_setpc_b64 s[34:35]"
    )  # fmt: skip
    after += function.format("unknown", "\t.long 0xffffffff")
    after += function.format(
        "seven", "\ts_cmp_eq_u32 s20, 0\n\ts_cbranch_scc1 .Lno\n\ts_addk_i32 s20, 7\n"
        ".Lno:\n\ts_setpc_b64 s[30:31]"
    )  # fmt: skip
    code = f"\ts_movk_i32 s20, 1\n{address('ten', 8)}\n\ts_swappc_b64 s[30:31], s[8:9]\n{STORE}"
    assert ran(code, after=after)[0] == 11


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ("s_add_u32 s8, s8, 1", r"jumps to 0x7e\w+, where no instruction is known to begin"),
        ("s_add_u32 s8, s8, 4", r"where no instruction is known to begin"),  # into a constant
        ("s_mov_b64 s[8:9], 0", r"jumps to 0x0, where no instruction is known to begin"),
        ("s_add_u32 s9, s9, 1", r"where no instruction is known to begin"),
    ],
)
def test_a_jump_to_what_is_no_instruction_is_refused(changed: str, message: str) -> None:
    code = FORWARD.replace("s_setpc", f"{changed}\n\ts_setpc")
    code = code.replace("far:", "far:\n\ts_mov_b32 s21, 0x12345678\n\ts_mov_b32 s21, 0x12345678")
    text = read_code_object(kernel_object(code)).assembly("kernel")
    with pytest.raises(EmulationError, match=f"s_setpc_b64.*{message}"):
        emulate(text, [np.zeros(64, np.uint32)], (1,), (64,))


def test_the_text_tells_where_its_instructions_lie_and_is_the_same_code() -> None:
    """As llvm-objdump does, in comments: LLVM makes the same words of it."""
    data = read_code_object(kernel_object(CALLS))
    text, code = data.assembly("kernel"), data.kernels["kernel"]
    words = re.findall(r"// ([0-9A-F]{12}): ((?:[0-9A-F]{8} ?)+)$", text, re.MULTILINE)
    assert int(words[0][0], 16) == code.address
    assert b"".join(bytes.fromhex(w)[::-1] for _, row in words for w in row.split()) == code.code
    program = parse_assembly(text)
    assert sorted(program.addresses.values()) == list(range(len(program.instructions)))
    plain = read_code_object(kernel_object(STORE)).assembly("kernel")
    assert "//" not in plain


def test_a_jump_to_a_function_that_is_not_known_says_what_it_has() -> None:
    function = "\t.p2align 8\n\t.type odd,@function\nodd:\n\t.long 0xffffffff\n.Lodd:\n"
    after = f"{function}\t.size odd, .Lodd-odd\n"
    code = f"{address('odd', 8)}\n\ts_swappc_b64 s[30:31], s[8:9]"
    text = read_code_object(kernel_object(code, after=after)).assembly("kernel")
    with pytest.raises(EmulationError, match="begin: byte 0 of the code, ffffffff: gfx942 has no"):
        emulate(text, [np.zeros(64, np.uint32)], (1,), (64,))


def test_text_that_does_not_tell_where_it_lies_is_refused() -> None:
    with pytest.raises(EmulationError, match=r"s_getpc_b64.*text does not tell where code lies"):
        run(wave(), "s_getpc_b64 s[4:5]")


def test_constants_beside_the_code_are_read() -> None:
    after = "\t.p2align 3\nbeside:\n\t.long 11, 0xffffffff, 33\n"
    code = f"{address('beside', 8)}\n\ts_load_dword s20, s[8:9], 0x8\n{STORE}"
    code = code.replace("v_mov_b32_e32 v1, s20", "s_waitcnt lgkmcnt(0)\n\tv_mov_b32_e32 v1, s20")
    assert ran(code, after=after)[0] == 33


def test_an_address_that_nobody_wrote_is_a_fault() -> None:
    text = read_code_object(kernel_object("\ts_setpc_b64 s[24:25]")).assembly("kernel")
    with pytest.raises(EmulationError, match="reads s24, which nobody wrote"):
        sanitize(text, [np.zeros(64, np.uint32)], (1,), (64,))


def test_an_address_that_is_still_being_loaded_is_a_fault() -> None:
    code = "\ts_load_dwordx2 s[8:9], s[0:1], 0x0\n\ts_setpc_b64 s[8:9]"
    text = read_code_object(kernel_object(code)).assembly("kernel")
    with pytest.raises(EmulationError, match="reads s8, which a load still in flight will write"):
        sanitize(text, [np.zeros(64, np.uint32)], (1,), (64,))


def test_it_is_profiled_as_scalar_instructions() -> None:
    text = read_code_object(kernel_object(CALLS)).assembly("kernel")
    found = profile(text, [np.zeros(64, np.uint32)], (1,), (64,))
    assert found.whole.instructions["salu"] == 5 + 1 + 2 * 3 + 1


def test_a_function_of_several_names_is_read_once_and_one_beyond_its_section_is_not() -> None:
    after = "".join(
        f"\t.type {name},@function\n{name}:\n\t.size {name}, {size}\n"
        for name, size in (("one", 8), ("another", 8), ("too_long", 1 << 20))
    )
    found = read_code_object(
        kernel_object(STORE, after=f"{after}\ts_nop 1\n\ts_setpc_b64 s[30:31]")
    )
    (function,) = found.functions
    kernel_code = found.kernels["kernel"]
    assert function.address == kernel_code.address + len(kernel_code.code)
    assert (len(function.content), function.sized) == (8, True)

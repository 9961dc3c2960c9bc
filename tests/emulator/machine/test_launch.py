"""What a kernel finds when it starts: arguments, hidden ones among them, and its coordinates."""

from __future__ import annotations

import numpy as np
import pytest

from mfmadsl.emulator import EmulationError, emulate
from tests.emulator.waves import kernel

HIDDEN = """
      - {.offset: 8, .size: 4, .value_kind: hidden_block_count_x}
      - {.offset: 12, .size: 4, .value_kind: hidden_block_count_y}
      - {.offset: 20, .size: 2, .value_kind: hidden_group_size_x}
      - {.offset: 22, .size: 2, .value_kind: hidden_group_size_y}
      - {.offset: 72, .size: 2, .value_kind: hidden_grid_dims}
      - {.offset: 128, .size: 4, .value_kind: hidden_dynamic_lds_size}
..."""


def stored(words: int, code: str) -> str:
    """A kernel that stores s12 and the following registers, one after the other."""
    stores = "\n".join(
        f"	v_mov_b32_e32 v1, s{12 + i}\n	global_store_dword v2, v1, s[4:5] offset:{4 * i}"
        for i in range(words)
    )
    return kernel(
        f"\n	s_load_dwordx2 s[4:5], s[0:1], 0x0\n{code}\n	s_waitcnt lgkmcnt(0)\n"
        f"	v_mov_b32_e32 v2, 0\n{stores}"
    )


def test_hidden_arguments_describe_the_launch() -> None:
    """As kernels have them that hipcc compiles for code object version 5."""
    code = "	s_load_dwordx4 s[12:15], s[0:1], 0x8\n	s_load_dword s16, s[0:1], 0x48"
    text = stored(5, code).replace("\n...", HIDDEN)
    result = np.zeros(5, np.uint32)
    emulate(text, [result], (3, 2), (64, 4))
    assert result.tolist() == [3, 2, 0, 64 | 4 << 16, 3]


def test_the_dispatch_packet_describes_the_launch() -> None:
    """As kernels of code object version 4 read it."""
    code = "	s_load_dword s12, s[2:3], 0x4\n	s_load_dwordx2 s[14:15], s[2:3], 0xc"
    text = stored(4, code).replace(
        ".amdhsa_user_sgpr_kernarg_segment_ptr 1",
        ".amdhsa_user_sgpr_dispatch_ptr 1\n\t\t.amdhsa_user_sgpr_kernarg_segment_ptr 1",
    )
    text = text.replace("s[4:5], s[0:1], 0x0", "s[4:5], s[2:3], 0x0")
    text = text.replace("s12, s[2:3], 0x4", "s12, s[0:1], 0x4")
    text = text.replace("s[14:15], s[2:3], 0xc", "s[14:15], s[0:1], 0xc")
    result = np.zeros(4, np.uint32)
    emulate(text, [result], (3, 2), (64, 4))
    assert result.tolist() == [64 | 4 << 16, 0, 192, 8]


def test_the_kernel_arguments_may_be_read_up_to_the_next_sixteen_bytes() -> None:
    """As LLVM reads three words."""
    described = "".join(
        f"\n      - {{.offset: {place}, .size: 4, .value_kind: by_value}}" for place in (8, 12, 16)
    )
    text = stored(4, "	s_load_dwordx4 s[12:15], s[0:1], 0x8").replace(
        "\n...", f"{described}\n..."
    )
    result = np.zeros(4, np.uint32)
    numbers = [np.uint32(n) for n in (1, 2, 3)]
    emulate(text, [result, *numbers], (1,), (64,))
    assert result[:3].tolist() == [1, 2, 3]
    beyond = text.replace("s[12:15], s[0:1], 0x8", "s[12:15], s[0:1], 0x14")
    with pytest.raises(EmulationError, match=r"16 bytes .*, offset 20 of `kernel arguments`"):
        emulate(beyond, [result, *numbers], (1,), (64,))


def test_a_null_pointer_is_one() -> None:
    code = (
        "	s_load_dwordx2 s[4:5], s[0:1], 0x8\n	s_waitcnt lgkmcnt(0)\n"
        "	v_mov_b32_e32 v1, 0\n	global_load_dword v2, v1, s[4:5]"
    )
    text = kernel(code, arguments=2)
    with pytest.raises(EmulationError, match="4 bytes at 0x0, far from every argument"):
        emulate(text, [np.zeros(4, np.uint32), None], (1,), (64,))


def test_a_required_size_of_workgroups_need_not_be_given() -> None:
    text = stored(1, "	s_mov_b32 s12, 7").replace(
        "  - .name: kernel", "  - .name: kernel\n    .reqd_workgroup_size: [128, 1, 1]"
    )
    result = np.zeros(1, np.uint32)
    assert emulate(text, [result], (1,)).waves == 2
    assert result[0] == 7


def test_numbers_are_passed_by_value() -> None:
    text = stored(2, "	s_load_dwordx2 s[12:13], s[0:1], 0x8").replace(
        "\n...", "\n      - {.name: x, .offset: 8, .size: 8, .value_kind: by_value}\n..."
    )
    result = np.zeros(2, np.uint32)
    emulate(text, [result, np.float64(1.5)], (1,), (64,))
    assert result.view(np.float64)[0] == 1.5
    with pytest.raises(ValueError, match="argument x has 8 bytes, but float32 has 4"):
        emulate(text, [result, np.float32(1.5)], (1,), (64,))


def test_registers_that_the_linker_counts_are_in_the_metadata() -> None:
    """`.amdhsa_next_free_vgpr` may be an expression of symbols, where functions are called."""
    text = stored(1, "	v_mov_b32_e32 v20, 9\n	v_readfirstlane_b32 s12, v20")
    text = text.replace("next_free_vgpr 32", "next_free_vgpr max(totalnumvgprs(kernel.num_agpr))")
    text = text.replace("accum_offset 32", "accum_offset 24")
    text = text.replace("  - .name: kernel", "  - .name: kernel\n    .vgpr_count: 24")
    result = np.zeros(1, np.uint32)
    emulate(text, [result], (1,), (64,))
    assert result[0] == 9


def test_a_register_that_the_kernel_has_not_asked_for() -> None:
    text = stored(1, "	v_mov_b32_e32 v40, 9")
    with pytest.raises(EmulationError, match=r"uses v40, but the kernel asks for 32 such") as found:
        emulate(text, [np.zeros(1, np.uint32)], (1,), (64,))
    assert found.value.fault.kind == "register"


def test_a_kernel_reads_the_mode_that_it_runs_in() -> None:
    text = kernel("""
	s_getreg_b32 s6, hwreg(HW_REG_MODE)
	s_load_dwordx2 s[4:5], s[0:1], 0x0
	v_mov_b32_e32 v2, s6
	v_mov_b32_e32 v1, 0
	s_waitcnt lgkmcnt(0)
	global_store_dword v1, v2, s[4:5]""")
    for directives, expected in (
        ("", 0x3C0),  # what LLVM's assembler has where nothing is said
        (".amdhsa_float_denorm_mode_32 3", 0x3F0),
        (".amdhsa_ieee_mode 0", 0x1C0),
        (".amdhsa_dx10_clamp 0", 0x2C0),
        (".amdhsa_fp16_overflow 1", 0x8003C0),
    ):
        mode = np.zeros(1, np.uint32)
        emulate(text.replace("\t.end_amdhsa_kernel", f"\t\t{directives}\n\t.end_amdhsa_kernel"),
                [mode], (1,), (64,))  # fmt: skip
        assert mode[0] == expected, directives

"""Code objects to read: LLVM's assembler makes them of text, and says what instructions mean."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from mfmadsl.backend.gpu.linker import link
from mfmadsl.model import ARCHITECTURES

TWO_KERNELS = """\
	.amdgcn_target "amdgcn-amd-amdhsa--{target}"
	.amdhsa_code_object_version {version}
	.text
	.globl double
	.p2align 8
	.type double,@function
double:
	s_load_dwordx2 s[4:5], s[0:1], 0x0
	v_cmp_gt_u32_e32 vcc, 48, v0
	s_and_saveexec_b64 s[6:7], vcc
	s_cbranch_execz .Lend
	v_lshlrev_b32_e32 v1, 2, v0
	s_waitcnt lgkmcnt(0)
	global_load_dword v2, v1, s[4:5]
	s_mov_b32 s8, 3
.Lagain:
	s_waitcnt vmcnt(0)
	v_add_f32_e32 v2, v2, v2
	s_add_i32 s8, s8, -1
	s_cmp_lg_u32 s8, 0
	s_cbranch_scc1 .Lagain
	v_add_f32_e32 v2, 0x40490fdb, v2
	global_store_dword v1, v2, s[4:5]
.Lend:
	s_endpgm
.Ldouble_end:
	.size double, .Ldouble_end-double
	.globl other
	.p2align 8
	.type other,@function
other:
	{other}
	s_endpgm
.Lother_end:
	.size other, .Lother_end-other
	.rodata
	.p2align 6
	.amdhsa_kernel double
		.amdhsa_user_sgpr_kernarg_segment_ptr 1
		.amdhsa_next_free_vgpr 3
		.amdhsa_next_free_sgpr 9
		{accum_offset}
		.amdhsa_float_denorm_mode_32 3
	.end_amdhsa_kernel
	.amdhsa_kernel other
		.amdhsa_group_segment_fixed_size 1024
		.amdhsa_user_sgpr_kernarg_segment_ptr 1
		.amdhsa_system_sgpr_workgroup_id_y 1
		.amdhsa_next_free_vgpr 33
		.amdhsa_next_free_sgpr 40
		{accum_offset}
	.end_amdhsa_kernel
	.amdgpu_metadata
---
amdhsa.kernels:
  - .name: double
    .symbol: double.kd
    .args:
      - {{.name: x, .offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global}}
    .group_segment_fixed_size: 0
    .kernarg_segment_align: 8
    .kernarg_segment_size: 8
    .max_flat_workgroup_size: 64
    .private_segment_fixed_size: 0
    .sgpr_count: 15
    .vgpr_count: 3
    .wavefront_size: 64
  - .name: other
    .symbol: other.kd
    .args: []
    .group_segment_fixed_size: 1024
    .kernarg_segment_align: 8
    .kernarg_segment_size: 0
    .max_flat_workgroup_size: 1024
    .private_segment_fixed_size: 0
    .sgpr_count: 46
    .vgpr_count: 33
    .wavefront_size: 64
amdhsa.target: amdgcn-amd-amdhsa--{target}
amdhsa.version: [1, 2]
...
	.end_amdgpu_metadata
"""


ONE_KERNEL = """\
	.text
	.globl kernel
	.p2align 8
	.type kernel,@function
kernel:
{code}
	s_endpgm
.Lkernel_end:
	.size kernel, .Lkernel_end-kernel
{after}
	.rodata
	.p2align 6
	.amdhsa_kernel kernel
		.amdhsa_user_sgpr_kernarg_segment_ptr 1
		.amdhsa_next_free_vgpr 16
		.amdhsa_next_free_sgpr 40
		{accum_offset}
		.amdhsa_float_denorm_mode_32 3
	.end_amdhsa_kernel
	.amdgpu_metadata
---
amdhsa.kernels:
  - .name: kernel
    .symbol: kernel.kd
    .args:
      - {{.name: x, .offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global}}
    .group_segment_fixed_size: 0
    .kernarg_segment_align: 8
    .kernarg_segment_size: 8
    .max_flat_workgroup_size: 1024
    .private_segment_fixed_size: 0
    .sgpr_count: 46
    .vgpr_count: 16
    .wavefront_size: 64
amdhsa.target: amdgcn-amd-amdhsa--{target}
amdhsa.version: [1, 2]
...
	.end_amdgpu_metadata
"""


@cache
def kernel_object(code: str, arch: str = "gfx942", after: str = "") -> bytes:
    """A code object of one kernel, which is given the address of `x` in s[0:1] and its workgroup in
    s2; functions may stand behind it."""
    split = "" if ARCHITECTURES[arch].separate_files else ".amdhsa_accum_offset 16"
    text = ONE_KERNEL.format(code=code, after=after, accum_offset=split, target=arch)
    linked = link(object_file(text, arch))
    assert linked is not None
    return linked


@cache
def code_object(arch: str = "gfx942", version: int = 5, other: str = "s_nop 0") -> bytes:
    """A code object of two kernels: `double`, and one of which the code is given."""
    linked = link(object_file(two_kernels(arch, version, other), arch))
    assert linked is not None
    return linked


def two_kernels(arch: str, version: int = 5, other: str = "s_nop 0") -> str:
    """The text of `code_object`."""
    split = "" if ARCHITECTURES[arch].separate_files else ".amdhsa_accum_offset 4"
    return TWO_KERNELS.format(target=arch, version=version, other=other, accum_offset=split)


def object_file(text: str, arch: str) -> bytes:
    """What LLVM assembles of a text for a chip."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "kernel.s")
        # Which chip it is is told to the assembler, as it spells that.
        source.write_text(re.sub(r"\t\.amdgcn_target.*\n", "", text))
        command = [
            sys.executable, "-m", "ziglang", "cc", "-target", "amdgcn-amdhsa-none",
            f"-mcpu={arch}", "-c", str(source), "-o", str(source.with_suffix(".o")),
        ]  # fmt: skip
        subprocess.run(command, check=True, capture_output=True, text=True)
        return source.with_suffix(".o").read_bytes()


def instructions(text: str) -> list[str]:
    """The instructions of an assembly text, in one spelling.

    What is spelled in several ways: encodings that the operands tell, the names of labels, numbers
    in decimal and hexadecimal, the order of modifiers and those that are as they are without.
    """
    found = []
    for line in text.split(".amdhsa_kernel", maxsplit=1)[0].splitlines():
        code = re.split(";|//", line)[0].strip()
        if code and not code.startswith(".") and not code.endswith(":"):
            found.append(_canonical(code))
    return found


def _canonical(code: str) -> str:
    name, _, rest = code.replace("\t", " ").partition(" ")
    rest = re.sub(r"\.\w+", "LABEL", rest) if "branch" in name else rest
    rest = re.sub(r"0x[0-9a-f]+", lambda number: str(int(number[0], 16)), rest)
    rest = re.sub(r"hwreg\((\w+)\)", r"hwreg(\1, 0, 32)", rest)
    rest = re.sub(r"\bbound_ctrl:1", "bound_ctrl:0", rest)
    operands, *modifiers = re.split(r"\s+(?=[a-z]\w*(?::|$|\s)(?!.*,\s))", " ".join(rest.split()))
    return " ".join([re.sub("_e(32|64)$", "", name), operands, *sorted(modifiers)])

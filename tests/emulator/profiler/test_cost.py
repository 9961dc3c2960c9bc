"""Cycles of instructions; those of matrix instructions have the library as their witness."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from mfmadsl.backend.gpu.instruction import build_instruction
from mfmadsl.emulator import EmulationError
from mfmadsl.emulator.instructions.compare import COMPARE
from mfmadsl.emulator.instructions.packed import PAIRS_OF_F32, PAIRS_OF_HALVES
from mfmadsl.emulator.instructions.table import compile_instruction
from mfmadsl.emulator.instructions.vector import vector_rows
from mfmadsl.emulator.machine.mode import Machine
from mfmadsl.emulator.machine.operation import Slots
from mfmadsl.emulator.profiler.cost import SLOT, busy_cycles, check_costs, issue_cycles
from mfmadsl.emulator.text.assembly import parse_assembly, parse_instruction
from mfmadsl.language import library
from mfmadsl.model import ARCHITECTURES, Intrinsic, architecture
from tests.emulator.waves import kernel

ENTRIES = [(i, arch) for i in library().values() for arch, _ in i.cycles]


@pytest.mark.parametrize(("entry", "arch"), ENTRIES, ids=lambda x: getattr(x, "name", x))
def test_matrix_cycles_are_those_of_the_library(entry: Intrinsic, arch: str) -> None:
    """The library's agree with the waits that LLVM inserts; these are written from the manuals."""
    text = next(
        line for line in build_instruction(entry, arch).assembly.splitlines()
        if line.strip().startswith(("v_mfma", "v_smfmac"))
    )  # fmt: skip
    expected = dict(entry.cycles)[arch]
    operation = compile_instruction(parse_instruction(text.strip()), Machine(arch))
    assert operation.unit == "matrix"
    assert busy_cycles(architecture(arch), operation) == expected
    assert issue_cycles(architecture(arch), operation) == SLOT


def test_cycles_of_all_rows() -> None:
    """By their names: the chip says what it takes to approximate; products of 32 bits and what is
    approximated in 64 take four turns."""
    rows = {**vector_rows("gfx950"), **COMPARE, **PAIRS_OF_F32, **PAIRS_OF_HALVES}
    for name, row in rows.items():
        slots: Slots = 1
        if re.match(r"v_(exp|log|rcp|rsq|sqrt|sin|cos)_", name) and not name.endswith("f64"):
            slots = "transcendental"
        elif re.match(r"v_(rcp|rsq|sqrt)_f64|v_mul_(lo|hi)_[ui]32$", name):
            slots = 4
        elif re.search(r"_[fuib]64(_|$)|qsad_", name) and name != "v_mov_b64":
            slots = "wide"
        assert row.cost == slots, name


FULL_RATE = [
    "v_add_f32 v0, v1, v2",
    "v_pk_fma_f32 v[0:1], v[2:3], v[4:5], v[6:7]",
    "v_mul_u32_u24 v0, v1, v2",
    "v_mul_hi_u32_u24 v0, v1, v2",
    "v_mad_u32_u24 v0, v1, v2, v3",
    "v_mov_b64_e32 v[0:1], v[2:3]",
    "v_div_fmas_f32 v0, v2, v4, v6",
    "s_add_u32 s0, s1, s2",
]
TRANSCENDENTAL = ["v_exp_f32 v0, v1", "v_rcp_f16 v0, v1", "v_rcp_iflag_f32 v0, v1"]
QUARTER_RATE = [
    "v_rcp_f64 v[0:1], v[2:3]",
    "v_mul_lo_u32 v0, v1, v2",
    "v_mul_hi_u32 v0, v1, v2",
    "v_mul_hi_i32 v0, v1, v2",
    "v_mad_u64_u32 v[0:1], vcc, v2, v3, v[4:5]",
    "v_mad_i64_i32 v[0:1], vcc, v2, v3, v[4:5]",
]
WIDE = [
    "v_fma_f64 v[0:1], v[2:3], v[4:5], v[6:7]",
    "v_add_f64 v[0:1], v[2:3], v[4:5]",
    "v_mul_f64 v[0:1], v[2:3], v[4:5]",
    "v_max_f64 v[0:1], v[2:3], v[4:5]",
    "v_cmp_lt_f64 vcc, v[0:1], v[2:3]",
    "v_cvt_f64_f32 v[0:1], v2",
    "v_cvt_i32_f64 v0, v[2:3]",
    "v_lshlrev_b64 v[0:1], v2, v[4:5]",
    "v_div_scale_f64 v[0:1], vcc, v[2:3], v[4:5], v[6:7]",
    "v_div_fmas_f64 v[0:1], v[2:3], v[4:5], v[6:7]",
]
CHIPS = tuple(ARCHITECTURES)
NEWER = {"v_pk_fma_f32": CHIPS[1:], "v_mov_b64_e32": CHIPS[2:]}


# CDNA 4 has twice the rate of transcendental functions (AMD's white paper).
CYCLES = (
    (FULL_RATE, dict.fromkeys(CHIPS, 4)),
    (QUARTER_RATE, dict.fromkeys(CHIPS, 16)),
    (WIDE, {"gfx908": 8, "gfx90a": 4, "gfx942": 4, "gfx950": 4}),
    (TRANSCENDENTAL, {"gfx908": 16, "gfx90a": 16, "gfx942": 16, "gfx950": 8}),
)


@pytest.mark.parametrize(
    ("arch", "code", "cycles"),
    [
        (arch, code, cycles[arch])
        for codes, cycles in CYCLES
        for code in codes
        for arch in NEWER.get(code.split()[0], CHIPS)
    ],
)
def test_cycles_to_issue(code: str, cycles: int, arch: str) -> None:
    chip = architecture(arch)
    operation = compile_instruction(parse_instruction(code), Machine(arch))
    assert issue_cycles(chip, operation) == busy_cycles(chip, operation) == cycles


@pytest.mark.parametrize(
    "code",
    [
        "v_cvt_scalef32_2xpk16_bf6_f32 v[0:5], v[6:21], v[22:37], v38",
        "v_cvt_scalef32_sr_pk32_fp6_f16 v[0:5], v[6:21], v22, v38",
        "v_cvt_scalef32_pk32_f32_fp6 v[0:31], v[32:37], v38",
        "v_cvt_scalef32_sr_pk_fp4_bf16 v0, v1, v2, v3",
        "v_mqsad_u32_u8 v[0:3], v[4:5], v6, v[8:11]",
    ],
)
def test_what_takes_passes_that_no_source_counts_is_not_profiled(code: str) -> None:
    program = parse_assembly(kernel(f"\tv_mov_b32_e32 v38, 1.0\n\t{code}"))
    with pytest.raises(EmulationError, match=r"no source says how many passes it takes"):
        check_costs(program)
    check_costs(parse_assembly(kernel("\tv_cvt_scalef32_pk_fp4_f32 v0, v1, v2, v3")))


# Peak of f64 vector instructions, in TFLOP/s, compute units and MHz, by AMD's white papers and data
# sheets of MI100, MI250X (two dies), MI300X and MI355X.
F64_PEAKS = {
    "gfx908": (11.5, 120, 1502),
    "gfx90a": (47.9, 220, 1700),
    "gfx942": (81.7, 304, 2100),
    "gfx950": (78.6, 256, 2400),
}


@pytest.mark.parametrize("arch", CHIPS)
def test_the_rate_of_doubles_is_that_of_the_data_sheet(arch: str) -> None:
    """A fused multiply-add counts as two; four SIMDs issue one for 64 lanes each."""
    chip = architecture(arch)
    teraflops, units, megahertz = F64_PEAKS[arch]
    cycles = busy_cycles(chip, compile_instruction(parse_instruction(WIDE[0]), Machine(arch)))
    peak = 2 * chip.wave_size * chip.simds / cycles * units * megahertz * 1e6
    assert peak / 1e12 == pytest.approx(teraflops, rel=0.01)


# What LLVM 19's cost model says of the throughput of these (`opt -passes='print<cost-model>'`), in
# turns, and the instructions that they become. It does not know gfx950.
LLVM_COSTS = {
    "fadd double %a, %b": ("v_add_f64 v[0:1], v[2:3], v[4:5]", {"gfx908": 2}, 1),
    "fmul double %a, %b": ("v_mul_f64 v[0:1], v[2:3], v[4:5]", {"gfx908": 2}, 1),
    "call double @llvm.fma.f64(double %a, double %b, double %a)": (WIDE[0], {"gfx908": 2}, 1),
    "shl i64 %x, %y": ("v_lshlrev_b64 v[0:1], v2, v[4:5]", {"gfx908": 2}, 1),
    "mul i32 %i, %j": ("v_mul_lo_u32 v0, v1, v2", {}, 4),
    "fadd float %u, %u": ("v_add_f32 v0, v1, v2", {}, 1),
}


@pytest.mark.parametrize("arch", ["gfx908", "gfx90a", "gfx942"])
def test_the_cost_model_of_llvm_agrees(arch: str) -> None:
    chip = architecture(arch)
    for code, of_chips, else_ in LLVM_COSTS.values():
        operation = compile_instruction(parse_instruction(code), Machine(arch))
        assert busy_cycles(chip, operation) == of_chips.get(arch, else_) * SLOT, code


@pytest.mark.skipif(
    not shutil.which("opt-19"),
    reason=("pip has no `opt`: Debian's llvm-19 does. The figures that it gave are asserted above"),
)
@pytest.mark.parametrize("arch", ["gfx908", "gfx90a", "gfx942"])
def test_that_is_what_llvm_says(arch: str) -> None:
    lines = "\n".join(f"  %r{i} = {text}" for i, text in enumerate(LLVM_COSTS))
    module = f"""define void @f(double %a, double %b, i32 %i, i32 %j, i64 %x, i64 %y, float %u) {{
{lines}
  ret void
}}
declare double @llvm.fma.f64(double, double, double)
"""
    options = ["-mtriple=amdgcn-amd-amdhsa", f"-mcpu={arch}", "-passes=print<cost-model>"]
    told = subprocess.run(
        ["opt-19", *options, "-disable-output"],
        input=module, capture_output=True, text=True, check=True, timeout=60,
    ).stderr  # fmt: skip
    found = re.findall(r"estimated cost of (\d+) for instruction:   %r", told)
    expected = [of_chips.get(arch, else_) for _, of_chips, else_ in LLVM_COSTS.values()]
    assert [int(cost) for cost in found] == expected

"""What LLVM emits too early, where paths meet behind a matrix instruction, waits."""

from __future__ import annotations

import re
from functools import partial

import pytest

import mfmadsl
from mfmadsl.backend.gpu.linker import link
from mfmadsl.backend.gpu.llvm import emit, emit_object, set_code_object_version
from mfmadsl.backend.gpu.wait_states import with_wait_states
from mfmadsl.backend.isolate import run_isolated
from tests.emulator.code_object.objects import instructions
from tests.emulator.sanitizer.wait_states.joined import joined, kinds

ARCH = "gfx942"
PLAIN = """
target triple = "amdgcn-amd-amdhsa"
define amdgpu_kernel void @plain(ptr addrspace(1) %p, i32 %n) {
  store i32 %n, ptr addrspace(1) %p
  ret void
}
"""
_STRAIGHT = """
target triple = "amdgcn-amd-amdhsa"
declare i32 @llvm.amdgcn.workitem.id.x()
declare <16 x float> @llvm.amdgcn.mfma.scale.f32.32x32x64.f8f6f4.v8i32.v8i32(
  <8 x i32>, <8 x i32>, <16 x float>, i32, i32, i32, i32, i32, i32)

define amdgpu_kernel void @kernel(ptr addrspace(1) %p, i32 %n, i32 %m)
    "amdgpu-flat-work-group-size"="64,64" {
  %lane = call i32 @llvm.amdgcn.workitem.id.x()
  %at = getelementptr <16 x float>, ptr addrspace(1) %p, i32 %lane
  %c = load <16 x float>, ptr addrspace(1) %at
  %a = load <8 x i32>, ptr addrspace(1) %at
  %d = call <16 x float> @llvm.amdgcn.mfma.scale.f32.32x32x64.f8f6f4.v8i32.v8i32(
    <8 x i32> %a, <8 x i32> %a, <16 x float> %c, i32 0, i32 1, i32 0, i32 0, i32 0, i32 0)
  %old = extractelement <16 x float> %d, i32 0
  %new = fmul float %old, 3.0
  %all = insertelement <16 x float> %d, float %new, i32 0
  store <16 x float> %all, ptr addrspace(1) %at
  ret void
}
"""
_NOP = re.compile(r"^\ts_nop (\d+)\n", re.MULTILINE)


@pytest.mark.parametrize(("first", "second"), [("long", "short"), ("short", "long")])
def test_the_worst_path_has_the_states_that_it_needs_and_not_one_more(
    first: str, second: str
) -> None:
    text = run_isolated(lambda: emit(joined(first, second), "kernel", ARCH)).assembly
    assert kinds(text) == set()
    (nop,) = _NOP.finditer(text)
    left = int(nop[1]) - 1
    less = f"\ts_nop {left}\n" if left >= 0 else ""
    assert kinds(text[: nop.start()] + less + text[nop.end() :]) == {"wait-states"}


@pytest.mark.parametrize("between", [19, 20])
def test_what_comes_just_where_llvm_stops_looking_waits_for_one_state_more(between: int) -> None:
    """Of gfx950's longest instructions the results are there after 20 wait states; LLVM looks back
    over 19, and sees what comes earlier."""
    text = run_isolated(lambda: emit(_STRAIGHT, "kernel", "gfx950")).assembly
    (nops,) = re.finditer(r"(?:\ts_nop \d+\n)+", text)
    apart = text[: nops.start()] + "\tv_nop\n" * between + text[nops.end() :]
    assert kinds(apart) == ({"wait-states"} if between == 19 else set())
    assert with_wait_states(apart).count("\ts_nop 0\n") == 20 - between
    assert kinds(with_wait_states(apart)) == set()


def test_the_code_object_has_them_too_among_other_kernels() -> None:
    join = joined("long", "short")
    kernels = {"kernel": join, "other": join.replace("@kernel(", "@other("), "plain": PLAIN}
    codes = {name: run_isolated(partial(emit, ir, name, ARCH)) for name, ir in kernels.items()}
    optimized = [code.optimized for code in codes.values()]
    linked = link(run_isolated(lambda: emit_object(optimized, ARCH)))
    assert linked is not None
    found = mfmadsl.read_code_object(linked)
    for name, code in codes.items():
        assert instructions(found.assembly(name)) == instructions(code.assembly)


@pytest.mark.parametrize("version", [5, 6])
def test_the_version_of_the_code_object_stays(version: int) -> None:
    ir = set_code_object_version(joined("long", "short"), version)
    optimized = run_isolated(lambda: emit(ir, "kernel", ARCH)).optimized
    linked = link(run_isolated(lambda: emit_object([optimized], ARCH)))
    assert linked is not None
    assert f".amdhsa_code_object_version {version}" in mfmadsl.read_code_object(linked).assembly(
        "kernel"
    )


def test_text_that_lacks_nothing_stays_as_it_is() -> None:
    code = run_isolated(lambda: emit(PLAIN, "plain", ARCH))
    assert with_wait_states(code.assembly) == code.assembly
    assert "mfmadsl." not in code.optimized

"""Two paths of different lengths that meet behind a matrix instruction."""

from __future__ import annotations

import numpy as np

from mfmadsl.emulator.sanitizer import sanitize

_IR = """
target triple = "amdgcn-amd-amdhsa"
declare i32 @llvm.amdgcn.workitem.id.x()
declare void @llvm.amdgcn.s.sleep(i32)
declare <16 x float> @llvm.amdgcn.mfma.f32.32x32x8f16(
  <4 x half>, <4 x half>, <16 x float>, i32, i32, i32)

define amdgpu_kernel void @kernel(ptr addrspace(1) %p, i32 %n, i32 %m)
    "amdgpu-flat-work-group-size"="64,64" {
  %lane = call i32 @llvm.amdgcn.workitem.id.x()
  %at = getelementptr <16 x float>, ptr addrspace(1) %p, i32 %lane
  %c = load <16 x float>, ptr addrspace(1) %at
  %h = load <4 x half>, ptr addrspace(1) %at
  %d = call <16 x float> @llvm.amdgcn.mfma.f32.32x32x8f16(
    <4 x half> %h, <4 x half> %h, <16 x float> %c, i32 0, i32 0, i32 0)
  %chosen = icmp eq i32 %n, 0
  br i1 %chosen, label %FIRST, label %SECOND
long:
  %l1 = mul i32 %m, %m
  %l2 = xor i32 %l1, 5
  %l3 = mul i32 %l2, %l1
  %l4 = xor i32 %l3, %m
  %l5 = mul i32 %l4, %l3
  %l6 = sub i32 %l5, %l4
  %l7 = mul i32 %l6, %l5
  %l8 = xor i32 %l7, %l6
  %l9 = mul i32 %l8, %l7
  %l10 = xor i32 %l9, 77
  %l11 = mul i32 %l10, %l2
  br label %join
short:
  call void @llvm.amdgcn.s.sleep(i32 3)
  br label %join
join:
  %k = phi i32 [%l11, %long], [%m, %short]
  %old = extractelement <16 x float> %d, i32 0
  %new = fmul float %old, 3.0
  %stored = insertelement <16 x float> %d, float %new, i32 0
  %last = sitofp i32 %k to float
  %all = insertelement <16 x float> %stored, float %last, i32 1
  store <16 x float> %all, ptr addrspace(1) %at
  ret void
}
"""


def joined(first: str, second: str) -> str:
    """LLVM IR for gfx942 whose branch leads to the `long` and the `short` path, in an order."""
    return _IR.replace("FIRST", first).replace("SECOND", second)


def kinds(text: str) -> set[str]:
    """The kinds of faults on both paths of the kernel's machine code."""
    found = set()
    for number in (0, 1):
        arguments = [np.zeros(64 * 16, np.float32), np.int32(number), np.int32(3)]
        run = sanitize(text, arguments, (1,), (64,), keep_going=True)
        found |= {fault.kind for fault in run.faults}
    return found

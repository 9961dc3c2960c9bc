"""One wave passes a word to another, as LLVM compiles that: a witness of what a chip needs."""

from __future__ import annotations

from functools import cache

import llvmlite.binding as llvm

_PASSED_ON = """
target triple = "amdgcn-amd-amdhsa"

define amdgpu_kernel void @kernel(ptr addrspace(1) %data) "amdgpu-flat-work-group-size"="64,64" {{
  %flag = getelementptr i32, ptr addrspace(1) %data, i64 64
  %out = getelementptr i32, ptr addrspace(1) %data, i64 128
  %lane = call i32 @llvm.amdgcn.workitem.id.x()
  %group = call i32 @llvm.amdgcn.workgroup.id.x()
  %own = getelementptr i32, ptr addrspace(1) %data, i32 %lane
  %sends = icmp eq i32 %group, 1
  br i1 %sends, label %send, label %look

send:
  %value = mul i32 %lane, 5
  store i32 %value, ptr addrspace(1) %own
  {send}
  ret void

look:
  {look}
  %unset = icmp eq i32 %found, 0
  br i1 %unset, label %look, label %take

take:
  %taken = load i32, ptr addrspace(1) %own
  %to = getelementptr i32, ptr addrspace(1) %out, i32 %lane
  store i32 %taken, ptr addrspace(1) %to
  ret void
}}

declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.workgroup.id.x()
"""
STORE = 'store atomic i32 1, ptr addrspace(1) %flag syncscope("agent") {order}, align 4'
ADD = '%old = atomicrmw add ptr addrspace(1) %flag, i32 1 syncscope("agent") {order}'
LOAD = '%found = load atomic i32, ptr addrspace(1) %flag syncscope("agent") {order}, align 4'
OR = '%found = atomicrmw or ptr addrspace(1) %flag, i32 0 syncscope("agent") {order}'


def passing_on(arch: str, send: str, look: str) -> str:
    """The assembly of a kernel of two workgroups: the second one writes 64 words and `send`s, the
    first one `look`s until it finds that, and copies them."""
    return compiled(_PASSED_ON.format(send=send, look=look), arch)


@cache
def compiled(module_text: str, arch: str) -> str:
    """The assembly of a module of LLVM's."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    module = llvm.parse_assembly(module_text)
    target = llvm.Target.from_triple("amdgcn-amd-amdhsa")
    text: str = target.create_target_machine(cpu=arch, opt=2).emit_assembly(module)
    return text

"""Code objects that never heard of mfmadsl: LLVM IR, compiled and linked."""

from __future__ import annotations

from functools import cache

from mfmadsl.backend.gpu.linker import link
from mfmadsl.backend.gpu.llvm import emit_object
from mfmadsl.backend.isolate import run_isolated

_HEAD = """
target triple = "amdgcn-amd-amdhsa"
declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.workgroup.id.x()
declare ptr addrspace(4) @llvm.amdgcn.implicitarg.ptr()
@lds = external addrspace(3) global [0 x float], align 4
@table = internal addrspace(4) constant [4 x i32] [i32 10, i32 20, i32 30, i32 40], align 4
@counter = addrspace(1) externally_initialized global [2 x i32] [i32 7, i32 0], align 8
@place = addrspace(1) externally_initialized global ptr addrspace(1) @counter, align 8

define amdgpu_kernel void @{name}({parameters}) #0 {{
  %lane = call i32 @llvm.amdgcn.workitem.id.x()
  %group = call i32 @llvm.amdgcn.workgroup.id.x()
  %first = mul i32 %group, 64
  %i = add i32 %first, %lane
  %wide = zext i32 %i to i64
  {body}
  ret void
}}
attributes #0 = {{ "amdgpu-flat-work-group-size"="1,256" "uniform-work-group-size"="true" }}
"""


def _described() -> str:
    """x[0:6] = the extents of the grid and of a block; x[6] = the sum of `numbers`.

    Where they are told: LLVM's guide, "Code Object V5 Metadata", hidden_block_count_x and on.
    """
    lines = ["  %told = call ptr addrspace(4) @llvm.amdgcn.implicitarg.ptr()"]
    for i, (offset, kind) in enumerate(
        [(0, "i32"), (4, "i32"), (8, "i32"), (12, "i16"), (14, "i16"), (16, "i16")]
    ):
        lines += [
            f"  %from{i} = getelementptr i8, ptr addrspace(4) %told, i64 {offset}",
            f"  %value{i} = load {kind}, ptr addrspace(4) %from{i}",
            f"  %wide{i} = zext {kind} %value{i} to i64",
            f"  %word{i} = trunc i64 %wide{i} to i32",
            f"  %to{i} = getelementptr i32, ptr addrspace(1) %x, i64 {i}",
            f"  store i32 %word{i}, ptr addrspace(1) %to{i}",
            f"  %number{i} = extractvalue [6 x i32] %numbers, {i}",
            f"  %sum{i} = add i32 {f'%sum{i - 1}' if i else '0'}, %number{i}",
        ]
    lines.append("  %last = getelementptr i32, ptr addrspace(1) %x, i64 6")
    lines.append("  store i32 %sum5, ptr addrspace(1) %last")
    return "\n".join(lines)


_BODIES = {
    # y[i] = a * x[i] + i for i < n
    "scaled": ("ptr addrspace(1) %x, ptr addrspace(1) %y, float %a, i32 %n", """
  %inside = icmp ult i32 %i, %n
  br i1 %inside, label %some, label %end
some:
  %from = getelementptr float, ptr addrspace(1) %x, i64 %wide
  %to = getelementptr float, ptr addrspace(1) %y, i64 %wide
  %value = load float, ptr addrspace(1) %from
  %place = uitofp i32 %i to float
  %scaled = fmul float %value, %a
  %sum = fadd float %scaled, %place
  store float %sum, ptr addrspace(1) %to
  br label %end
end:"""),
    # x[i] = i, wherever that is
    "numbered": ("ptr addrspace(1) %x", """
  %to = getelementptr i32, ptr addrspace(1) %x, i64 %wide
  store i32 %i, ptr addrspace(1) %to"""),
    # y[i] = x[i], as they are
    "copied": ("ptr addrspace(1) %x, ptr addrspace(1) %y", """
  %from = getelementptr i32, ptr addrspace(1) %x, i64 %wide
  %to = getelementptr i32, ptr addrspace(1) %y, i64 %wide
  %value = load i32, ptr addrspace(1) %from
  store i32 %value, ptr addrspace(1) %to"""),
    # x[6 * stride] = 6, by one lane
    "jumped": ("ptr addrspace(1) %x, i32 %stride", """
  %sixth = icmp eq i32 %i, 6
  br i1 %sixth, label %some, label %end
some:
  %far = mul i32 %stride, %i
  %place = sext i32 %far to i64
  %to = getelementptr i32, ptr addrspace(1) %x, i64 %place
  store i32 %i, ptr addrspace(1) %to
  br label %end
end:"""),
    # each pointer of a list of them is followed: list[i][0] += 1
    "followed": ("ptr addrspace(1) %list", """
  %entry = getelementptr ptr addrspace(1), ptr addrspace(1) %list, i64 %wide
  %to = load ptr addrspace(1), ptr addrspace(1) %entry
  %value = load i32, ptr addrspace(1) %to
  %sum = add i32 %value, 1
  store i32 %sum, ptr addrspace(1) %to"""),
    # x[i] = what another lane left in LDS of the launch's size, with no barrier between its waves
    "raced": ("ptr addrspace(1) %x", """
  %mine = getelementptr float, ptr addrspace(3) @lds, i32 %lane
  %place = uitofp i32 %i to float
  store float %place, ptr addrspace(3) %mine
  %other = xor i32 %lane, 64
  %theirs = getelementptr float, ptr addrspace(3) @lds, i32 %other
  %value = load volatile float, ptr addrspace(3) %theirs
  %to = getelementptr float, ptr addrspace(1) %x, i64 %wide
  store float %value, ptr addrspace(1) %to"""),
    # x[i] = table[i % 4] + counter[0], and counter[1], which `place` points to, counts lanes
    "variables": ("ptr addrspace(1) %x", """
  %rest = and i32 %i, 3
  %entry = getelementptr i32, ptr addrspace(4) @table, i32 %rest
  %constant = load i32, ptr addrspace(4) %entry
  %added = load i32, ptr addrspace(1) @counter
  %sum = add i32 %constant, %added
  %to = getelementptr i32, ptr addrspace(1) %x, i64 %wide
  store i32 %sum, ptr addrspace(1) %to
  %there = load ptr addrspace(1), ptr addrspace(1) @place
  %second = getelementptr i32, ptr addrspace(1) %there, i32 1
  %old = atomicrmw add ptr addrspace(1) %second, i32 1 syncscope("agent") monotonic"""),
    # what the runtime tells it of its launch, and the sum of a structure
    "described": ("ptr addrspace(1) %x, [6 x i32] %numbers", _described()),
}  # fmt: skip


@cache
def code_object(name: str, arch: str = "gfx942") -> bytes:
    """The linked kernel of that name."""
    parameters, body = _BODIES[name]
    ir = _HEAD.format(name=name, parameters=parameters, body=body.strip())
    linked = link(run_isolated(lambda: emit_object([ir], arch)))
    assert linked is not None, "the tests' environment has a linker"
    return linked

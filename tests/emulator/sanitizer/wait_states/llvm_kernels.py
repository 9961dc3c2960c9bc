"""Kernels between whose instructions LLVM must insert wait states, by what they are about."""

from __future__ import annotations

import re

import llvmlite.binding as llvm

ALL = ("gfx908", "gfx90a", "gfx942", "gfx950")
SINCE_CDNA2, SINCE_CDNA3 = ALL[1:], ALL[2:]

_FRAME = """\
@lds = internal addrspace(3) global [4096 x i8] poison, align 16
define amdgpu_kernel void @kernel(ptr addrspace(1) %in, ptr addrspace(1) %out, i32 %n) #0 {{
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %p = getelementptr i8, ptr addrspace(1) %in, i32 %t
  %q = getelementptr i8, ptr addrspace(1) %out, i32 %t
{body}
  ret void
}}
attributes #0 = {{ "amdgpu-flat-work-group-size"="64,256" }}
"""


_CALL = re.compile(r"call (.+?) @([\w.]+)\(((?:[^()]|\(\d\))*)\)")
_COMMA = re.compile(r",\s")


def _mfma(name: str, factor: str, result: str) -> str:
    """Two products, the second of the first one's result, which is also stored."""
    call = f"call {result} @llvm.amdgcn.mfma.{name}({factor} %a, {factor} %b, {result}"
    return f"""
  %a = load {factor}, ptr addrspace(1) %p
  %b = load {factor}, ptr addrspace(1) %q
  %c = load {result}, ptr addrspace(1) %p
  %x = {call} %c, i32 0, i32 0, i32 0)
  %y = {call} %x, i32 0, i32 0, i32 0)
  %z = fadd {result} %y, %c
  store {result} %z, ptr addrspace(1) %q"""


KERNELS: dict[str, tuple[tuple[str, ...], str]] = {
    "matrices of floats": (ALL, _mfma("f32.32x32x2f32", "float", "<16 x float>")),
    "small matrices": (ALL, _mfma("f32.4x4x1f32", "float", "<4 x float>")),
    "matrices of halves": (ALL, _mfma("f32.16x16x16f16", "<4 x half>", "<4 x float>")),
    "matrices of doubles": (SINCE_CDNA2, _mfma("f64.16x16x4f64", "double", "<4 x double>")),
    "small ones of doubles": (SINCE_CDNA2, _mfma("f64.4x4x4f64", "double", "double")),
    "matrices of eight bits": (
        SINCE_CDNA3, _mfma("f32.16x16x32.fp8.fp8", "i64", "<4 x float>"),
    ),
    "a product of a product": (ALL, """
  %a = load float, ptr addrspace(1) %p
  %c = load <4 x float>, ptr addrspace(1) %p
  %x = call <4 x float> @llvm.amdgcn.mfma.f32.16x16x4f32(
    float %a, float %a, <4 x float> %c, i32 0, i32 0, i32 0)
  %e = extractelement <4 x float> %x, i32 2
  %y = call <4 x float> @llvm.amdgcn.mfma.f32.16x16x4f32(
    float %e, float %a, <4 x float> %x, i32 0, i32 0, i32 0)
  store <4 x float> %y, ptr addrspace(1) %q"""),
    "a step of a division": (ALL, """
  %a = load float, ptr addrspace(1) %p
  %e = fcmp olt float %a, 0.0
  %c = call float @llvm.amdgcn.div.fmas.f32(float %a, float %a, float %a, i1 %e)
  store float %c, ptr addrspace(1) %q"""),
    "lanes moved": (ALL, """
  %a = load i32, ptr addrspace(1) %p
  %b = call i32 @llvm.amdgcn.update.dpp.i32(i32 0, i32 %a, i32 273, i32 15, i32 15, i1 false)
  %c = add i32 %a, %b
  %d = call i32 @llvm.amdgcn.update.dpp.i32(i32 0, i32 %c, i32 274, i32 15, i32 15, i1 false)
  %e = call i32 @llvm.amdgcn.readlane.i32(i32 %d, i32 63)
  %f = and i32 %e, 63
  %g = call i32 @llvm.amdgcn.readlane.i32(i32 %a, i32 %f)
  store i32 %g, ptr addrspace(1) %q"""),
    "a lane chosen by another": (ALL, """
  %a = load i32, ptr addrspace(1) %p
  %e = call i32 @llvm.amdgcn.readfirstlane.i32(i32 %a)
  %g = call i32 @llvm.amdgcn.readlane.i32(i32 %a, i32 %e)
  store i32 %g, ptr addrspace(1) %q"""),
    "an address of a lane": (ALL, """
  %a = load i32, ptr addrspace(1) %p
  %e = call i32 @llvm.amdgcn.readfirstlane.i32(i32 %a)
  %d = call ptr addrspace(8) @llvm.amdgcn.make.buffer.rsrc.p8.p1(
    ptr addrspace(1) %in, i16 0, i64 4096, i32 159744)
  %g = call i32 @llvm.amdgcn.raw.ptr.buffer.load.i32(ptr addrspace(8) %d, i32 %a, i32 %e, i32 0)
  store i32 %g, ptr addrspace(1) %q"""),
    "a carry": (SINCE_CDNA3, """
  %a = load <2 x i64>, ptr addrspace(1) %p
  %b = extractelement <2 x i64> %a, i32 0
  %c = extractelement <2 x i64> %a, i32 1
  %d = sub i64 %b, %c
  store i64 %d, ptr addrspace(1) %q"""),
    "exponentials": (SINCE_CDNA3, """
  %a = load float, ptr addrspace(1) %p
  %b = call float @llvm.amdgcn.exp2.f32(float %a)
  %c = fadd float %b, 1.0
  store float %c, ptr addrspace(1) %q"""),
    "packed floats": (SINCE_CDNA3, """
  %a = load <2 x float>, ptr addrspace(1) %p
  %b = fmul <2 x float> %a, %a
  %c = fadd <2 x float> %b, %a
  store <2 x float> %c, ptr addrspace(1) %q"""),
    "dot products": (SINCE_CDNA2, """
  %a = load i32, ptr addrspace(1) %p
  %b = call i32 @llvm.amdgcn.sdot4(i32 %a, i32 %n, i32 %t, i1 false)
  %c = call i32 @llvm.amdgcn.sdot4(i32 %b, i32 %n, i32 %b, i1 false)
  store i32 %c, ptr addrspace(1) %q"""),
    "halves of lanes swapped": (("gfx950",), """
  %a = load i32, ptr addrspace(1) %p
  %b = add i32 %a, 1
  %c = call { i32, i32 } @llvm.amdgcn.permlane32.swap(i32 %b, i32 %a, i1 false, i1 false)
  %d = extractvalue { i32, i32 } %c, 0
  store i32 %d, ptr addrspace(1) %q"""),
    "bytes of a word": (("gfx950",), """
  %a = load <2 x float>, ptr addrspace(1) %p
  %f = extractelement <2 x float> %a, i32 0
  %b = call i32 @llvm.amdgcn.cvt.sr.fp8.f32(float %f, i32 %n, i32 %t, i32 2)
  %c = call i32 @llvm.amdgcn.cvt.scalef32.sr.fp8.f32(
    i32 %b, float %f, i32 %n, float 2.0, i32 1)
  %d = call i32 @llvm.amdgcn.cvt.scalef32.pk.fp4.f32(
    i32 %c, float %f, float %f, float 2.0, i32 0)
  %e = call i32 @llvm.amdgcn.cvt.scalef32.sr.pk.fp4.f32(
    i32 %d, <2 x float> %a, i32 %n, float 2.0, i32 0)
  %g = add i32 %e, %n
  store i32 %g, ptr addrspace(1) %q"""),
    "a list followed": (SINCE_CDNA3, """
  %a = load ptr addrspace(1), ptr addrspace(1) %in
  %b = load ptr addrspace(1), ptr addrspace(1) %a
  %e = getelementptr ptr addrspace(1), ptr addrspace(1) %in, i32 99
  %c = load <4 x i32>, ptr addrspace(1) %e
  store <4 x i32> %c, ptr addrspace(1) %q
  store ptr addrspace(1) %b, ptr addrspace(1) %out"""),
    "a loop around a product": (ALL, """
  br label %again
again:
  %i = phi i32 [ 0, %0 ], [ %j, %again ]
  %x = phi <4 x float> [ zeroinitializer, %0 ], [ %y, %again ]
  %s = getelementptr float, ptr addrspace(1) %p, i32 %i
  %a = load float, ptr addrspace(1) %s
  %y = call <4 x float> @llvm.amdgcn.mfma.f32.16x16x4f32(
    float %a, float %a, <4 x float> %x, i32 0, i32 0, i32 0)
  %j = add i32 %i, 1
  %e = icmp eq i32 %j, %n
  br i1 %e, label %end, label %again
end:
  store <4 x float> %y, ptr addrspace(1) %q"""),
}  # fmt: skip


def assembly(body: str, arch: str) -> str:
    """LLVM's text for a kernel that is called `kernel`."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple("amdgcn-amd-amdhsa")
    machine = target.create_target_machine(cpu=arch, opt=3)
    return str(machine.emit_assembly(llvm.parse_assembly(_declared(_FRAME.format(body=body)))))


def _declared(ir: str) -> str:
    """LLVM IR with declarations of the intrinsics that it calls, of the types of the calls."""
    found = {}
    for result, name, given in _CALL.findall(ir):
        # The last of what stands between commas is an argument, and before it its type.
        types = ", ".join(each.strip().rpartition(" ")[0] for each in _COMMA.split(given) if each)
        found[name] = f"declare {result} @{name}({types})"
    return ir + "\n".join(found.values())

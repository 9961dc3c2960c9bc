"""Corrections to the LLVM IR that TVM writes."""

from __future__ import annotations

from mfmadsl.backend.gpu.llvm import (
    fence_barriers,
    loses_address_space,
    pass_bfloat,
    separate_direct_loads,
    set_code_object_version,
    set_group_size,
)

BARRIER = """\
define amdgpu_kernel void @k() #0 {
  tail call void @llvm.amdgcn.s.barrier()
  ret void
}
attributes #0 = { "amdgpu-flat-work-group-size"="1,256" }
!0 = !{i32 1}
!7 = !{i32 2}
"""


def test_the_group_size_is_stated_exactly() -> None:
    assert '"amdgpu-flat-work-group-size"="512,512"' in set_group_size(BARRIER, 512)


def test_a_barrier_is_fenced_for_lds_alone_under_a_number_that_is_free() -> None:
    assert fence_barriers(BARRIER).splitlines()[1:4] == [
        '  fence syncscope("workgroup") release, !mmra !8',
        "  tail call void @llvm.amdgcn.s.barrier()",
        '  fence syncscope("workgroup") acquire, !mmra !8',
    ]
    assert fence_barriers(BARRIER).endswith('!8 = !{!"amdgpu-synchronize-as", !"local"}\n')


def test_without_a_barrier_nothing_changes() -> None:
    text = BARRIER.replace("s.barrier", "s.nothing")
    assert fence_barriers(text) == text


def test_an_lds_address_that_is_taken_for_a_global_one_is_noticed() -> None:
    lost = "load float, ptr addrspace(1) addrspacecast (ptr addrspace(3) @x to ptr addrspace(1))"
    assert loses_address_space(lost)
    assert loses_address_space("%1 = addrspacecast ptr addrspace(3) %0 to ptr addrspace(1)")
    assert not loses_address_space("%1 = addrspacecast ptr addrspace(3) %0 to ptr")
    assert not loses_address_space("load float, ptr addrspace(3) @x")


def test_loads_into_the_lds_are_told_apart_from_those_from_it() -> None:
    ir = """define void @f(ptr addrspace(8) %b, ptr addrspace(3) %m) {
  call void @llvm.amdgcn.raw.ptr.buffer.load.lds(ptr addrspace(8) %b, ptr addrspace(3) %m, i32 16)
  %1 = load i32, ptr addrspace(3) %m, align 4, !tbaa !0
  %2 = load i32, ptr addrspace(1) %g, align 4
  ret void
}
!0 = !{}
"""
    told = separate_direct_loads(ir)
    lines = told.splitlines()
    assert lines[1].endswith(", !alias.scope !4, !noalias !5")
    assert lines[2].endswith("!tbaa !0, !alias.scope !5, !noalias !4")
    assert lines[3] == "  %2 = load i32, ptr addrspace(1) %g, align 4"
    assert "!4 = !{!2}" in lines
    assert separate_direct_loads("define void @f() {}") == "define void @f() {}"


def test_the_version_of_code_objects_is_a_flag_beside_those_that_are_there() -> None:
    assert set_code_object_version(BARRIER, 5).splitlines()[-2:] == [
        "!llvm.module.flags = !{!8}",
        '!8 = !{i32 1, !"amdhsa_code_object_version", i32 500}',
    ]
    flagged = BARRIER + "!llvm.module.flags = !{!0, !7}\n"
    assert set_code_object_version(flagged, 6).splitlines()[-3:] == [
        "!llvm.module.flags = !{!0, !7, !8}",
        "",
        '!8 = !{i32 1, !"amdhsa_code_object_version", i32 600}',
    ]


def test_a_bfloat_vector_may_have_any_name_of_llvms() -> None:
    """Its optimizer joins names by a minus sign."""
    names = {"%a.pre-phi3265": "%b$1", "%7": "%.idx.pre-phi"}
    for first, second in names.items():
        call = (
            f"  %9 = tail call <16 x float> @bfloat.llvm.amdgcn.mfma(<8 x i16> {first}, <8 x i16>"
            f" noundef {second}, i32 0)\n"
        )
        assert pass_bfloat(call).splitlines() == [
            f"  %bfloat.9.0 = bitcast <8 x i16> {first} to <8 x bfloat>",
            f"  %bfloat.9.1 = bitcast <8 x i16> {second} to <8 x bfloat>",
            "  %9 = tail call <16 x float> @llvm.amdgcn.mfma(<8 x bfloat> %bfloat.9.0,"
            " <8 x bfloat> %bfloat.9.1, i32 0)",
        ]

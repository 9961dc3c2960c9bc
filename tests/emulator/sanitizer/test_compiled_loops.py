"""Loops by which LLVM's kernels take locks and combine values: none of them is a race."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from mfmadsl.emulator.sanitizer import sanitize
from tests.cases import drawn
from tests.emulator.sanitizer.message import compiled

CHIPS = ("gfx908", "gfx90a", "gfx942", "gfx950")

_KERNEL = """
target triple = "amdgcn-amd-amdhsa"
declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.workgroup.id.x()
declare void @llvm.amdgcn.s.barrier()
@shared = internal addrspace(3) global [64 x i32] undef, align 16

define amdgpu_kernel void @kernel(ptr addrspace(1) %p) "amdgpu-flat-work-group-size"="128,128" {
entry:
  %lane = call i32 @llvm.amdgcn.workitem.id.x()
  %group = call i32 @llvm.amdgcn.workgroup.id.x()
  %first = icmp eq i32 %lane, 0
CODE
}
"""

LOCK = """
  br i1 %first, label %take, label %end
take:
  %taken = cmpxchg ptr addrspace(1) %p, i32 0, i32 1 syncscope("agent") acq_rel monotonic
  %mine = extractvalue {i32, i1} %taken, 1
  br i1 %mine, label %locked, label %take
locked:
  %at = getelementptr i32, ptr addrspace(1) %p, i32 5
  %old = load i32, ptr addrspace(1) %at
  %new = add i32 %old, %group
  store i32 %new, ptr addrspace(1) %at
  RELEASE
  br label %end
end:
  ret void"""
_RELEASE = 'store atomic i32 0, ptr addrspace(1) %p syncscope("agent") release, align 4'
_NO_RELEASE = 'store atomic i32 0, ptr addrspace(1) %p syncscope("agent") monotonic, align 4'

SUM = """
  %old = atomicrmw fadd ptr addrspace(1) %p, TYPE 1.0 syncscope("agent") monotonic
  ret void"""

SHARED_SUM = """
  br i1 %first, label %clear, label %cleared
clear:
  store i32 0, ptr addrspace(3) @shared
  br label %cleared
cleared:
  fence syncscope("workgroup") release
  call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
  %old = atomicrmw fadd ptr addrspace(3) @shared, half 1.0 syncscope("workgroup") monotonic
  fence syncscope("workgroup") release
  call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
  br i1 %first, label %give, label %end
give:
  %sum = load i32, ptr addrspace(3) @shared
  store i32 %sum, ptr addrspace(1) %p
  br label %end
end:
  ret void"""

FLAG_OF_A_WORKGROUP = """
  %flag = getelementptr i32, ptr addrspace(1) %p, i32 %group
  %data = getelementptr i32, ptr addrspace(1) %flag, i32 16
  %result = getelementptr i32, ptr addrspace(1) %flag, i32 32
  %sends = icmp slt i32 %lane, 64
  br i1 %sends, label %send, label %look
send:
  store i32 7, ptr addrspace(1) %data
  store atomic i32 1, ptr addrspace(1) %flag syncscope("workgroup") release, align 4
  ret void
look:
  %found = load atomic i32, ptr addrspace(1) %flag syncscope("workgroup") acquire, align 4
  %unset = icmp eq i32 %found, 0
  br i1 %unset, label %look, label %seen
seen:
  %got = load i32, ptr addrspace(1) %data
  store i32 %got, ptr addrspace(1) %result
  ret void"""


def _result(
    code: str, arch: str, order: str, seed: int
) -> tuple[npt.NDArray[np.uint32], list[str]]:
    """The memory after nine workgroups, and the races."""
    memory = np.zeros(64, np.uint32)
    found = sanitize(
        compiled(_KERNEL.replace("CODE", code), arch), [memory], (9,), (128,), keep_going=True,
        order=order, seed=seed,
    )  # fmt: skip
    assert {fault.kind for fault in found.faults} <= {"race"}, found.faults
    return memory, [fault.message for fault in found.faults]


_ORDERS = ("lockstep", 0), ("random", 1), ("random", 2)
ORDERS = pytest.mark.parametrize(("order", "seed"), _ORDERS)
_TYPES = ("float", np.float32), ("double", np.float64), ("half", np.float16)


@ORDERS
@pytest.mark.parametrize("arch", CHIPS)
def test_a_lock_that_a_store_releases(arch: str, order: str, seed: int) -> None:
    memory, races = _result(LOCK.replace("RELEASE", _RELEASE), arch, order, seed)
    assert (memory[5], races) == (36, [])


@pytest.mark.parametrize("arch", CHIPS)
def test_a_lock_that_orders_nothing(arch: str) -> None:
    _, races = _result(LOCK.replace("RELEASE", _NO_RELEASE), arch, "lockstep", 0)
    assert any("offset 20 of `p`" in each for each in races), races


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("arch", "kind", "dtype", "order", "seed"),
    drawn(((arch, *type_, *order) for arch in CHIPS for type_ in _TYPES for order in _ORDERS), 5),
)
def test_sums_that_a_loop_of_compare_and_swap_makes(
    arch: str, kind: str, dtype: type[np.floating[Any]], order: str, seed: int
) -> None:
    memory, races = _result(SUM.replace("TYPE", kind), arch, order, seed)
    assert (memory.view(dtype)[0], races) == (9 * 128, [])


@ORDERS
@pytest.mark.parametrize("arch", CHIPS)
def test_sums_in_the_lds_that_such_a_loop_makes(arch: str, order: str, seed: int) -> None:
    memory, races = _result(SHARED_SUM, arch, order, seed)
    assert (memory.view(np.float16)[0], races) == (128, [])


@pytest.mark.thorough
@pytest.mark.parametrize("arch", drawn(CHIPS, 1))
def test_a_load_that_no_swap_looks_at_again_is_a_race(arch: str) -> None:
    other = SUM.replace("  ret", "  %now = load half, ptr addrspace(1) %p\n"
                        "  %to = getelementptr half, ptr addrspace(1) %p, i32 9\n"
                        "  %all = fadd half %now, %old\n"
                        "  store half %all, ptr addrspace(1) %to\n  ret")  # fmt: skip
    _, races = _result(other.replace("TYPE", "half"), arch, "lockstep", 0)
    assert any(each.startswith("reads offset 0 of `p`") for each in races), races


@ORDERS
@pytest.mark.parametrize("arch", CHIPS)
def test_a_flag_for_waves_of_one_workgroup(arch: str, order: str, seed: int) -> None:
    memory, races = _result(FLAG_OF_A_WORKGROUP, arch, order, seed)
    assert (memory[32:41].tolist(), races) == ([7] * 9, [])

"""GEMM kernels as code objects: the text is LLVM's own, and runs to the same bits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest

import mfmadsl
from mfmadsl.backend.gpu.linker import link
from mfmadsl.emulator import emulate
from mfmadsl.emulator.code_object import read_code_object
from mfmadsl.emulator.text.assembly import parse_assembly
from mfmadsl.model import ARCHITECTURES
from mfmadsl.model.numpy_type import numpy_type
from tests.emulator.code_object.objects import instructions

KERNELS = [
    ("gfx908", "float16", "float16"), ("gfx90a", "float64", "float64"),
    ("gfx90a", "bfloat16", "float32"), ("gfx942", "int8", "int32"),
    ("gfx942", "float8_e4m3fnuz", "float32"), ("gfx950", "float16", "float32"),
    ("gfx950", "float8_e5m2", "bfloat16"),
]  # fmt: skip
M, N, K = 70, 33, 130


FENCES = """
target triple = "amdgcn-amd-amdhsa"
define amdgpu_kernel void @fences(ptr addrspace(1) %p) {
  %old = atomicrmw add ptr addrspace(1) %p, i32 3 seq_cst
  fence seq_cst
  %q = getelementptr i32, ptr addrspace(1) %p, i32 1
  store atomic i32 %old, ptr addrspace(1) %q release, align 4
  ret void
}
"""


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_what_the_code_generator_writes_and_no_assembler_is_read(arch: str) -> None:
    """Of a gfx90a's `buffer_wbl2` it sets bits that have no name."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple("amdgcn-amd-amdhsa").create_target_machine(cpu=arch)
    linked = link(bytes(machine.emit_object(llvm.parse_assembly(FENCES))))
    assert linked is not None
    text = machine.emit_assembly(llvm.parse_assembly(FENCES))
    found = read_code_object(linked).assembly("fences")
    assert instructions(found) == instructions(text)
    memory = np.array([4, 0], np.uint32)
    emulate(found, [memory], (1,), (1,))
    assert memory.tolist() == [7, 4]


def operand(shape: tuple[int, int], kind: str) -> Any:
    generator = np.random.default_rng(shape)
    if kind.startswith("int"):
        return generator.integers(-100, 100, shape).astype(kind)
    return generator.standard_normal(shape).astype(numpy_type(kind))


@pytest.mark.parametrize(("arch", "kind", "out"), KERNELS)
def test_a_gemm_is_read_from_its_code_object(arch: str, kind: str, out: str) -> None:
    workload = mfmadsl.matmul(M, N, K, kind, out, b_transposed=True)
    kernel = mfmadsl.build(mfmadsl.gemm_schedule(workload, arch=arch), arch=arch)
    assert kernel.code_object is not None
    text = read_code_object(kernel.code_object, arch).assembly(kernel.symbol)
    assert instructions(text) == instructions(kernel.assembly)
    ours, theirs = (parse_assembly(t, kernel.symbol) for t in (text, kernel.assembly))
    assert [ours.labels[kernel.symbol], ours.arguments] == [ours.entry, theirs.arguments]
    assert (ours.workgroup_size, ours.most_threads) == (theirs.workgroup_size, theirs.most_threads)
    for name in theirs.directives:
        if not name.startswith(("next_free", "reserve")):
            assert ours.directive(name) == theirs.directive(name), name
    assert 0 <= ours.directive("next_free_vgpr") - theirs.directive("next_free_vgpr") < 8
    results = []
    for one in (kernel, replace(kernel, assembly=text)):
        a, b = operand((M, K), kind), operand((N, K), kind)
        c = np.zeros((M, N), numpy_type(out))
        counted = emulate(one, [a, b, c])
        results.append((c.tobytes(), counted.total))
    assert results[0] == results[1]

"""Kernels that take given resources, as LLVM writes them, and what LLVM says that they take.

An outside witness: LLVM prints `; NumVgprs:`, `; Occupancy:` and the like beside the code.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import llvmlite.binding as llvm


@dataclass(frozen=True)
class Resources:
    """Registers of a lane, scalar ones of a wave, bytes of LDS and threads of a workgroup."""

    vector: int
    accumulation: int = 0
    scalar: int = 0
    lds_bytes: int = 0
    threads: int = 64


def assembly(arch: str, wanted: Resources, features: str = "") -> str:
    """LLVM's text for a kernel that is called `kernel`, with its comments."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple("amdgcn-amd-amdhsa")
    machine = target.create_target_machine(cpu=arch, opt=3, features=features)
    machine.set_asm_verbosity(True)
    return str(machine.emit_assembly(llvm.parse_assembly(_ir(wanted))))


def said(text: str, name: str) -> int:
    """The number of a comment such as `; Occupancy: 8`."""
    found = re.search(rf"^; {name}: (\d+)", text, re.MULTILINE)
    assert found, name
    return int(found[1])


def _ir(wanted: Resources) -> str:
    counts = {"v": wanted.vector, "a": wanted.accumulation, "s": wanted.scalar}
    clobbers = "\n".join(
        f'  call void asm sideeffect "", "~{{{bank}{count - 1}}}"()'
        for bank, count in counts.items()
        if count
    )
    lds = use = ""
    if wanted.lds_bytes:
        lds = f"@lds = internal addrspace(3) global [{wanted.lds_bytes} x i8] poison, align 16"
        use = "  store volatile i8 0, ptr addrspace(3) @lds"
    size = f'"amdgpu-flat-work-group-size"="{wanted.threads},{wanted.threads}"'
    return f"""{lds}
define amdgpu_kernel void @kernel() #0 {{
{clobbers}
{use}
  ret void
}}
attributes #0 = {{ {size} }}
"""

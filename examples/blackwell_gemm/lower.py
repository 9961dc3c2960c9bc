"""From a TIRX kernel to CUDA for sm_100a."""

from __future__ import annotations

import re
from dataclasses import dataclass

import tvm
import tvm_ffi
from tvm import IRModule
from tvm.target import Target
from tvm.tirx import AttrStmt, PrimFunc

ARCH = "sm_100a"
SHARED_BYTES = 232448  # that a CTA may have on sm_100: 227 KiB
TENSOR_MEMORY_COLUMNS = 512


@dataclass(frozen=True)
class Lowered:
    """CUDA, and what a launch of it takes: `threads` a CTA, dynamic `shared_bytes` a CTA."""

    source: str
    threads: int
    shared_bytes: int

    def body(self) -> str:
        """The kernel's own function, without the header and the functions that it calls."""
        start = self.source.rindex('extern "C" __global__')
        return self.source[start:]


def lower(kernel: PrimFunc) -> Lowered:
    """A kernel of this folder as CUDA for sm_100a."""
    target = Target({"kind": "cuda", "arch": ARCH})
    built = tvm.compile(IRModule({"main": kernel}), target=target, tir_pipeline="tirx")
    source = built.mod.imports[0].inspect_source()
    threads = re.findall(r"__launch_bounds__\((\d+)\) \w+\(", source)
    return Lowered(source, int(threads[-1]), shared_bytes(kernel))


def shared_bytes(kernel: PrimFunc) -> int:
    """Of dynamic shared memory that the kernel's pool takes for a CTA."""
    statements: list[AttrStmt] = []
    tvm_ffi.structural_walk(kernel.body, (AttrStmt, statements.append))
    said = (int(x.value) for x in statements if x.attr_key == "tirx.dyn_smem_bytes")
    return max(said, default=0)

"""Libraries as users export them: TVM's own host code and kernels, and a product of mfmadsl's.

python -m tests.runtime.exported FOLDER
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tvm
from tvm.script import from_source

import mfmadsl
from mfmadsl.backend.gpu.linker import link
from mfmadsl.backend.gpu.lower import rocm_target
from mfmadsl.model import architecture

M, N, K = 48, 80, 96
ARCH = "gfx942"


SIMPLE = """
@I.ir_module
class Simple:
    @T.prim_func(s_tir=True)
    def shifted(a: T.handle, b: T.handle, by: T.int32, far: T.int64, times: T.float32):
        n = T.int32()
        A = T.match_buffer(a, (n,), "float32")
        B = T.match_buffer(b, (n,), "float32")
        for i in T.thread_binding(T.ceildiv(n, 64), thread="blockIdx.x"):
            for j in T.thread_binding(64, thread="threadIdx.x"):
                with T.sblock("shifted"):
                    T.where(i * 64 + j < n)
                    v = T.axis.spatial(n, i * 64 + j)
                    B[v] = A[v] * times + T.Cast("float32", by) + T.Cast("float32", far)

    @T.prim_func(s_tir=True)
    def doubled(a: T.handle):
        A = T.match_buffer(a, (128,), "int32")
        for i in T.thread_binding(2, thread="blockIdx.y"):
            for j in T.thread_binding(64, thread="threadIdx.x"):
                with T.sblock("doubled"):
                    v = T.axis.spatial(128, i * 64 + j)
                    A[v] = A[v] * 2

    @T.prim_func(s_tir=True)
    def through_lds(A: T.Buffer((256,), "float32"), B: T.Buffer((256,), "float32")):
        for i in T.thread_binding(4, thread="blockIdx.x"):
            for j in T.thread_binding(64, thread="threadIdx.x"):
                with T.sblock("all"):
                    T.reads(A[0:256])
                    T.writes(B[0:256])
                    lds = T.sblock_alloc_buffer((64,), "float32", scope="shared.dyn")
                    lds[j] = A[i * 64 + j]
                    B[255 - i * 64 - j] = lds[j]
"""
LAUNCHED = """
@I.ir_module
class Launched:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer(({m}, {k}), "float16"), B: T.Buffer(({k}, {n}), "float16"),
             C: T.Buffer(({m}, {n}), "float32")):
        for x in T.thread_binding({grid}, thread="blockIdx.x"):
            for ty in T.thread_binding({waves}, thread="threadIdx.y"):
                for tx in T.thread_binding({lanes}, thread="threadIdx.x"):
                    with T.sblock("all"):
                        vx, vy, vz = T.axis.remap("SSS", [x, ty, tx])
                        if vx + vy + vz == 0:
                            C[0, 0] = T.Cast("float32", A[0, 0] * B[0, 0])
"""
"""What TVM launches as a kernel of that name, those arguments, that grid and block."""


def compiled(module: tvm.IRModule, linked: Callable[[bytes], bytearray]) -> Any:
    tvm.register_global_func("tvm_callback_rocm_link", linked, override=True)
    tvm.register_global_func("tvm_callback_rocm_bitcode_path", list, override=True)
    return tvm.compile(module, target=rocm_target(architecture(ARCH)))


def simple() -> Any:
    """Kernels as TVM's own code generator makes them."""
    return compiled(from_source(SIMPLE), lambda text: bytearray(link(text) or b""))


def product() -> Any:
    """A kernel of mfmadsl's that TVM launches."""
    workload = mfmadsl.matmul(M, N, K, "float16", "float32")
    kernel = mfmadsl.build(mfmadsl.gemm_schedule(workload, arch=ARCH), arch=ARCH)
    grid, (lanes, waves, _) = kernel.grid[0], kernel.block
    launched = LAUNCHED.format(m=M, n=N, k=K, grid=grid, lanes=lanes, waves=waves)
    return compiled(from_source(launched), lambda _: bytearray(kernel.code_object or b""))


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    simple().export_library(str(folder / "simple.so"))
    product().export_library(str(folder / "product.so"))

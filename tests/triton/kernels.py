"""Kernels that Triton compiles: a GEMM of every type, and element-wise functions.

Run as a program, in a process of its own, for Triton brings an LLVM that TVM's must not meet:

    python -m tests.triton.kernels FOLDER CASE...

writes FOLDER/CASE.s and FOLDER/CASE.json (LDS bytes, warps, and what
casts give) for each case; `compile_case` says what cases are.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def matmul(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, ACC: tl.constexpr, OUT: tl.constexpr,
):  # fmt: skip
    """C = A x B, of any shape."""
    tiles = tl.cdiv(N, BN)
    row, column = tl.program_id(0) // tiles, tl.program_id(0) % tiles
    rows = (row * BM + tl.arange(0, BM)) % M
    columns = (column * BN + tl.arange(0, BN)) % N
    steps = tl.arange(0, BK)
    a = a_ptr + rows[:, None] * stride_am + steps[None, :] * stride_ak
    b = b_ptr + steps[:, None] * stride_bk + columns[None, :] * stride_bn
    total = tl.zeros((BM, BN), dtype=ACC)
    for k in range(tl.cdiv(K, BK)):
        left = tl.load(a, mask=steps[None, :] < K - k * BK, other=0.0)
        right = tl.load(b, mask=steps[:, None] < K - k * BK, other=0.0)
        total = tl.dot(left, right, total, out_dtype=ACC)
        a += BK * stride_ak
        b += BK * stride_bk
    rows = row * BM + tl.arange(0, BM)
    columns = column * BN + tl.arange(0, BN)
    mask = (rows[:, None] < M) & (columns[None, :] < N)
    c = c_ptr + rows[:, None] * stride_cm + columns[None, :] * stride_cn
    tl.store(c, total.to(OUT), mask=mask)


@triton.jit
def softmax(x_ptr, y_ptr, n, SIZE: tl.constexpr):
    """Exponentials, reductions across lanes and waves, a division."""
    i = tl.arange(0, SIZE)
    x = tl.load(x_ptr + tl.program_id(0) * n + i, mask=i < n, other=-float("inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(y_ptr + tl.program_id(0) * n + i, e / tl.sum(e, axis=0), mask=i < n)


@triton.jit
def histogram(x_ptr, y_ptr, n, SIZE: tl.constexpr):
    """Atomics of lanes that meet, and the error function."""
    i = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.atomic_add(y_ptr + i % 8, tl.erf(x), mask=i < n)


@triton.jit
def locked_sum(x_ptr, y_ptr, lock_ptr, SIZE: tl.constexpr):
    """Rows are added to one, by one program at a time, as in Triton's tutorial on layer norm."""
    i = tl.arange(0, SIZE)
    x = tl.load(x_ptr + tl.program_id(0) * SIZE + i)
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    tl.store(y_ptr + i, tl.load(y_ptr + i) + x)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0)


@triton.jit
def passed_on(x_ptr, y_ptr, lock_ptr, SIZE: tl.constexpr):
    """Sums of rows up to each, from program to program; the last of the grid is the first one."""
    row = tl.num_programs(0) - 1 - tl.program_id(0)
    i = tl.arange(0, SIZE)
    x = tl.load(x_ptr + row * SIZE + i)
    if row > 0:
        while tl.atomic_cas(lock_ptr + row - 1, 1, 1) != 1:
            pass
        x += tl.load(y_ptr + (row - 1) * SIZE + i)
    tl.store(y_ptr + row * SIZE + i, x)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr + row, 1)


@triton.jit
def casts(
    x_ptr, y0, y1, y2, y3, y4, y5, y6, y7, y8, y9, y10, y11,
    N0: tl.constexpr, N1: tl.constexpr, N2: tl.constexpr, N3: tl.constexpr, N4: tl.constexpr,
    N5: tl.constexpr, N6: tl.constexpr, N7: tl.constexpr, N8: tl.constexpr, N9: tl.constexpr,
    N10: tl.constexpr, N11: tl.constexpr,
):  # fmt: skip
    """256 numbers as numbers of other types."""
    i = tl.arange(0, 256)
    x = tl.load(x_ptr + i)
    tl.store(y0 + i, x.to(N0))
    tl.store(y1 + i, x.to(N1))
    tl.store(y2 + i, x.to(N2))
    tl.store(y3 + i, x.to(N3))
    tl.store(y4 + i, x.to(N4))
    tl.store(y5 + i, x.to(N5))
    tl.store(y6 + i, x.to(N6))
    tl.store(y7 + i, x.to(N7))
    tl.store(y8 + i, x.to(N8))
    tl.store(y9 + i, x.to(N9))
    tl.store(y10 + i, x.to(N10))
    tl.store(y11 + i, x.to(N11))


@dataclass(frozen=True)
class Types:
    """Of A and B, of the accumulator, and of C, for Triton."""

    input: str
    accumulator: Any
    output: Any
    output_name: str


def _types(kind: str, arch: str) -> Types:
    fnuz = arch == "gfx942"
    inputs = {
        "f16": "fp16", "bf16": "bf16", "f32": "fp32", "f64": "fp64", "i8": "i8",
        "fp8": "fp8e4b8" if fnuz else "fp8e4nv", "bf8": "fp8e5b16" if fnuz else "fp8e5",
    }  # fmt: skip
    if kind == "f64":
        return Types(inputs[kind], tl.float64, tl.float64, "fp64")
    if kind == "i8":
        return Types(inputs[kind], tl.int32, tl.int32, "i32")
    if kind == "f16":
        return Types(inputs[kind], tl.float32, tl.float16, "fp16")
    if kind == "bf16":
        return Types(inputs[kind], tl.float32, tl.bfloat16, "bf16")
    return Types(inputs[kind], tl.float32, tl.float32, "fp32")


def compile_gemm(
    arch: str,
    kind: str,
    b_transposed: bool,
    tile: tuple[int, int, int] = (64, 64, 32),
    warps: int = 4,
    stages: int = 2,
    instruction: int = 0,
    k_pack: int = 1,
) -> Any:
    """One GEMM kernel; `instruction` is 16 or 32, or 0 for Triton's own choice."""
    types = _types(kind, arch)
    ones = ["stride_ak", "stride_cn", "stride_bk" if b_transposed else "stride_bn"]
    signature = {
        "a_ptr": f"*{types.input}", "b_ptr": f"*{types.input}", "c_ptr": f"*{types.output_name}",
        **dict.fromkeys(
            ["M", "N", "K", "stride_am", "stride_ak", "stride_bk", "stride_bn", "stride_cm",
             "stride_cn"], "i32"),
        **dict.fromkeys(["BM", "BN", "BK", "ACC", "OUT"], "constexpr"),
        **dict.fromkeys(ones, "constexpr"),
    }  # fmt: skip
    constants = {
        **dict.fromkeys(ones, 1),
        "BM": tile[0], "BN": tile[1], "BK": tile[2], "ACC": types.accumulator, "OUT": types.output,
    }  # fmt: skip
    attributes = {
        (position,): [["tt.divisibility", 16]]
        + ([["tt.pointer_range", 32]] if name.endswith("ptr") else [])
        for position, name in enumerate(signature)
        if name not in constants
    }
    options = {"num_warps": warps, "num_stages": stages, "matrix_instr_nonkdim": instruction,
               "kpack": k_pack}  # fmt: skip
    return triton.compile(
        ASTSource(matmul, signature, constants, attributes), GPUTarget("hip", arch, 64), options
    )


def compile_elementwise(name: str, arch: str) -> Any:
    function = {"softmax": softmax, "histogram": histogram}[name]
    signature = {"x_ptr": "*fp32", "y_ptr": "*fp32", "n": "i32", "SIZE": "constexpr"}
    source = ASTSource(function, signature, {"SIZE": 1024})
    return triton.compile(source, GPUTarget("hip", arch, 64), {"num_warps": 4})


LOCKED = {"locked_sum": locked_sum, "passed_on": passed_on}


def compile_locked(name: str, arch: str) -> Any:
    pointers = {"x_ptr": "*fp32", "y_ptr": "*fp32", "lock_ptr": "*i32"}
    source = ASTSource(LOCKED[name], {**pointers, "SIZE": "constexpr"}, {"SIZE": 512})
    return triton.compile(source, GPUTarget("hip", arch, 64), {"num_warps": 4})


TYPES = {
    "fp64": tl.float64, "fp32": tl.float32, "fp16": tl.float16, "bf16": tl.bfloat16,
    "i64": tl.int64, "i32": tl.int32, "i16": tl.int16, "i8": tl.int8,
    "u64": tl.uint64, "u32": tl.uint32, "u16": tl.uint16, "u8": tl.uint8,
    "fp8e5": tl.float8e5, "fp8e4nv": tl.float8e4nv, "fp8e4b8": tl.float8e4b8,
    "fp8e5b16": tl.float8e5b16,
}  # fmt: skip
_PLAIN = [name for name in TYPES if not name.startswith("fp8")]
_NARROW = [name for name in TYPES if name.startswith("fp8")]


def cast_targets(source: str, narrow: bool) -> list[str]:
    """The twelve outputs of a kernel of casts: all types, or those that Triton casts fp8 to."""
    if narrow:
        return _NARROW * 3
    return ["fp32", "fp16", "bf16"] * 4 if source in _NARROW else _PLAIN


def compile_casts(source: str, narrow: bool, arch: str) -> Any:
    targets = cast_targets(source, narrow)
    constants = {f"N{i}": TYPES[target] for i, target in enumerate(targets)}
    signature = {
        "x_ptr": f"*{source}",
        **{f"y{i}": f"*{target}" for i, target in enumerate(targets)},
        **dict.fromkeys(constants, "constexpr"),
    }
    kernel = ASTSource(casts, signature, constants)
    return triton.compile(kernel, GPUTarget("hip", arch, 64), {"num_warps": 1})


def compile_case(case: str) -> Any:
    """ARCH.KIND.bt, ARCH.KIND.kn, ARCH.FUNCTION, ARCH.SOURCE.casts or ARCH.SOURCE.narrow."""
    arch, kind, *order = case.split(".")
    if kind in LOCKED:
        return compile_locked(kind, arch)
    if order in (["casts"], ["narrow"]):
        return compile_casts(kind, order == ["narrow"], arch)
    return compile_gemm(arch, kind, order == ["bt"]) if order else compile_elementwise(kind, arch)


def main() -> None:
    """Compile the cases, which are those of `compile_case`."""
    folder = Path(sys.argv[1])
    for case in sys.argv[2:]:
        kernel = compile_case(case)
        (folder / f"{case}.s").write_text(kernel.asm["amdgcn"])
        (folder / f"{case}.hsaco").write_bytes(kernel.asm["hsaco"])
        facts = {"lds_bytes": kernel.metadata.shared, "warps": kernel.metadata.num_warps}
        _, kind, *form = case.split(".")
        if form in (["casts"], ["narrow"]):
            facts["targets"] = cast_targets(kind, form == ["narrow"])
        (folder / f"{case}.json").write_text(json.dumps(facts))


if __name__ == "__main__":
    main()

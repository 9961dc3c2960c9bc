"""Triton's flash attention, compiled offline: the peer of `benchmarks/attention`.

Run as a program, in a process of its own, for Triton brings an LLVM that TVM's must not meet:

    python -m benchmarks.attention.triton_kernels FOLDER CASE...

writes FOLDER/CASE-SETTING.s, and .json with LDS bytes and waves, for each setting of each CASE
(CHIP.TYPE.DEPTH.full or .causal). What lies there already is not compiled again.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import triton
import triton.language as tl

from benchmarks.triton_compile import compiled, keep

QUERIES = (64, 128, 256)
KEYS = (32, 64, 128)
WAVES = (4, 8)
STAGES = (1, 2)
INSTRUCTIONS = (16, 32)


@triton.jit
def steps(
    q, k_ptrs, v_ptrs, total, largest, o, first, last, rows, stride_k, stride_v, scale,
    BN: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """A range of keys, whole tiles of them, behind a mask or without one."""
    for start in range(first, last, BN):
        k = tl.load(k_ptrs + start * stride_k)
        s = tl.dot(q, k)
        if MASKED:
            columns = start + tl.arange(0, BN)
            s = tl.where(rows[:, None] >= columns[None, :], s, -1.0e6)
        new = tl.maximum(largest, tl.max(s, 1) * scale)
        p = tl.math.exp2(s * scale - new[:, None])
        rescale = tl.math.exp2(largest - new)
        total = total * rescale + tl.sum(p, 1)
        o = o * rescale[:, None]
        v = tl.load(v_ptrs + start * stride_v)
        o = tl.dot(p.to(v.dtype), v, o)
        largest = new
    return total, largest, o


@triton.jit
def attention(
    q_ptr, k_ptr, v_ptr, o_ptr, M, N, stride_q, stride_k, head_q, head_k, group, scale,
    D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    """O = softmax(Q K^T scale) V of heads one after the other; BM and BN divide M and N.

    Heads count fastest in the grid, so that the dies get as much work each.
    """
    head, tile = tl.program_id(0), tl.program_id(1)
    if CAUSAL:  # the longest first
        tile = tl.num_programs(1) - 1 - tile
    rows, columns, depth = tile * BM + tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, D)
    q = tl.load(q_ptr + head * head_q + rows[:, None] * stride_q + depth[None, :])
    k_ptrs = k_ptr + head // group * head_k + columns[None, :] * stride_k + depth[:, None]
    v_ptrs = v_ptr + head // group * head_k + columns[:, None] * stride_k + depth[None, :]
    largest = tl.full((BM,), -1.0e30, tl.float32)
    total = tl.zeros((BM,), tl.float32)
    o = tl.zeros((BM, D), tl.float32)
    whole = N
    if CAUSAL:
        whole = tile * BM // BN * BN
    total, largest, o = steps(
        q, k_ptrs, v_ptrs, total, largest, o, 0, whole, rows, stride_k, stride_k, scale, BN, False
    )
    if CAUSAL:
        end = tl.minimum((tile + 1) * BM, N)
        total, largest, o = steps(
            q,
            k_ptrs,
            v_ptrs,
            total,
            largest,
            o,
            whole,
            end,
            rows,
            stride_k,
            stride_k,
            scale,
            BN,
            True,
        )
    o = o / total[:, None]
    o_ptrs = o_ptr + head * head_q + rows[:, None] * stride_q + depth[None, :]
    tl.store(o_ptrs, o.to(o_ptr.dtype.element_ty))


@dataclass(frozen=True)
class Setting:
    """What a user of Triton tunes."""

    queries: int
    keys: int
    waves: int
    stages: int
    instruction: int

    def __str__(self) -> str:
        return f"{self.queries}x{self.keys}-w{self.waves}-s{self.stages}-i{self.instruction}"


def settings() -> Iterator[Setting]:
    """The grid."""
    for each in itertools.product(QUERIES, KEYS, WAVES, STAGES, INSTRUCTIONS):
        yield Setting(*each)


def compile_attention(arch: str, kind: str, depth: int, causal: bool, setting: Setting) -> Any:
    dtype = {"f16": "fp16", "bf16": "bf16"}[kind]
    constants = {"D": depth, "BM": setting.queries, "BN": setting.keys, "CAUSAL": causal}
    pointers = dict.fromkeys(("q_ptr", "k_ptr", "v_ptr", "o_ptr"), f"*{dtype}")
    numbers = ("M", "N", "stride_q", "stride_k", "head_q", "head_k", "group")
    signature = {**pointers, **dict.fromkeys(numbers, "i32"), "scale": "fp32"}
    options = {
        "num_warps": setting.waves, "num_stages": setting.stages,
        "matrix_instr_nonkdim": setting.instruction,
    }  # fmt: skip
    return compiled(attention, arch, signature, constants, options, ("group", "scale"))


def main() -> None:
    folder = Path(sys.argv[1])
    for case in sys.argv[2:]:
        arch, kind, depth, mask = case.split(".")
        for setting in settings():
            path = folder / f"{case}-{setting}.json"
            if path.exists():
                continue
            keep(
                path, partial(compile_attention, arch, kind, int(depth), mask == "causal", setting)
            )


if __name__ == "__main__":
    main()

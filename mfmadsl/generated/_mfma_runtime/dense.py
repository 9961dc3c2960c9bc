"""The description of C += A x B.

Written by `mfmadsl compile` beside the modules that it generates.
"""

# mypy: disable-error-code="untyped-decorator,no-any-return"
# ruff: noqa: N806, N812 (buffers are called like matrices, and TVMScript `T`)

from typing import Any

from tvm import tirx
from tvm.script import tirx as T
from tvm.tirx import PrimFunc

from .block import block_axes, whole
from .operand import Operand


def dense(a: Operand, b: Operand, c: Operand, neg: int = 0, scope: str = "warp") -> PrimFunc:
    """The description of C += A x B in registers; neg negates A (1), B (2) and C (4).

    Those of a CPU lie in memory of the scope "global".
    """
    *blocks, m, k = a.shape
    shape = (*blocks, m, b.shape[-1], k)

    @T.prim_func(s_tir=True)
    def desc(a_held: T.handle, b_held: T.handle, c_held: T.handle) -> None:
        A = T.match_buffer(a_held, a.registers, a.dtype, offset_factor=1, scope=scope)
        B = T.match_buffer(b_held, b.registers, b.dtype, offset_factor=1, scope=scope)
        C = T.match_buffer(c_held, c.registers, c.dtype, offset_factor=1, scope=scope)
        with T.sblock("root"):
            T.reads(whole(C), whole(A), whole(B))
            T.writes(whole(C))
            for loops in T.grid(*shape):
                with T.sblock("C"):
                    at = T.meta_var(block_axes(shape, loops, "vblock", "vi", "vj", "vk"))
                    a_at = T.meta_var(a.slot(*at[:-2], at[-1]))
                    b_at = T.meta_var(b.slot(*at[:-3], at[-1], at[-2]))
                    c_at = T.meta_var(c.slot(*at[:-1]))
                    T.reads(C[c_at], A[a_at], B[b_at])
                    T.writes(C[c_at])
                    left = T.meta_var(_signed(_cast(A[a_at], a.dtype, c.dtype), neg & 1))
                    right = T.meta_var(_signed(_cast(B[b_at], b.dtype, c.dtype), neg & 2))
                    C[c_at] = _signed(C[c_at], neg & 4) + left * right

    return desc


def _cast(value: Any, source: str, target: str) -> Any:
    return value if source == target else tirx.Cast(target, value)


def _signed(value: Any, negative: int) -> Any:
    return -value if negative else value

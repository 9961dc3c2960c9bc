"""Functions written in TVM's own language, for what tensor expressions do not say."""

from __future__ import annotations

from tvm.script import from_source
from tvm.tirx import PrimFunc

PRODUCT = """
for i, j, k in T.grid(8, 8, 8):
    with T.sblock("C"):
        vi, vj, vk = T.axis.remap("SSR", [i, j, k])
        with T.init():
            C[vi, vj] = T.float32(0)
        C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vj, vk]
"""


def parsed(body: str, more: str = "", result: str = "C") -> PrimFunc:
    """A function of float32 matrices A, B and a result of 8 by 8, and more arguments."""
    matrix = 'T.Buffer((8, 8), "float32")'
    arguments = ", ".join(
        [*(f"{name}: {matrix}" for name in f"AB{result}"), *([more] if more else [])]
    )
    lines = "".join(f"    {line}\n" for line in body.strip("\n").splitlines())
    text = f"@T.prim_func(s_tir=True)\ndef main({arguments}):\n"
    function: PrimFunc = from_source(text + lines)
    return function

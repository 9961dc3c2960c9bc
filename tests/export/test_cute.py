"""CuTe's own layouts of an instruction, made of where another manual says that its elements lie."""

from __future__ import annotations

from dataclasses import replace

from mfmadsl import export_layouts
from mfmadsl.language import find
from mfmadsl.model import Layout
from tests.export.layouts import HALF

A = Layout(16, 16, 32, 8, tuple(
    (row % 8 * 4 + k % 8 // 2, k % 2 + row // 8 * 2 + k // 8 * 4)
    for row in range(16) for k in range(16)
))  # fmt: skip
B = Layout(16, 8, 32, 4, tuple(
    (column * 4 + k % 8 // 2, k % 2 + k // 8 * 2) for k in range(16) for column in range(8)
))  # fmt: skip
C = Layout(16, 8, 32, 4, tuple(
    (row % 8 * 4 + column // 2, column % 2 + row // 8 * 2)
    for row in range(16) for column in range(8)
))  # fmt: skip
"""mma.m16n8k16 with .f16: PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type"."""


def test_what_is_written_of_ptxs_fragments_is_what_cute_has() -> None:
    """MMA_Traits<SM80_16x8x16_F32F16F16F32_TN> in cute/atom/mma_traits_sm80.hpp."""
    half = find(HALF)
    a, b, c = (
        replace(operand, layout=layout)
        for operand, layout in ((half.a, A), (half.b, B), (half.c, C))
    )
    text = export_layouts(replace(half, a=a, b=b, c=c), "cute")
    assert [line for line in text.splitlines() if line.startswith("using")] == [
        "using ALayout = Layout<Shape<Shape<_4, _8>, Shape<_2, _2, _2>>, "
        "Stride<Stride<_32, _1>, Stride<_16, _8, _128>>>;",
        "using BLayout = Layout<Shape<Shape<_4, _8>, Shape<_2, _2>>, "
        "Stride<Stride<_16, _1>, Stride<_8, _64>>>;",
        "using CLayout = Layout<Shape<Shape<_4, _8>, Shape<_2, _2>>, "
        "Stride<Stride<_32, _1>, Stride<_16, _8>>>;",
    ]
    assert "(T32, V8) -> (M16, K16)" in text
    assert "(T32, V4) -> (N8, K16)" in text

"""The LLVM intrinsics of which micro-kernels of a CPU are made.

Signatures and features are those of LLVM 22 (IntrinsicsX86.td, X86.td), and of compiling each.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from mfmadsl.model.cpu import TILE_ROW_BITS, with_implied


class LlvmVector(NamedTuple):
    """One instruction on whole registers: C += A * B, element by element or row by row.

    `types` are the element types of A, B and C; `bits` those of a register, of `tiles` of a row.
    `arguments` are its operands in LLVM's order. A CPU has it that has all features of one of
    `features`.
    """

    types: tuple[str, str, str]
    bits: int
    arguments: tuple[str, ...]
    features: tuple[tuple[str, ...], ...]
    tiles: bool = False

    def runs_with(self, features: Iterable[str]) -> bool:
        """Whether a CPU of these features has it."""
        had = with_implied(features)
        return any(had.issuperset(each) for each in self.features)


_FMA = ("a", "b", "c")
_DOT = ("c", "a", "b")
_FLOATS = {"f32": ("float32",) * 3, "f64": ("float64",) * 3}

LLVM_VECTORS: Mapping[str, LlvmVector] = {
    **{
        f"llvm.fma.v{bits // int(short[1:])}{short}": LlvmVector(types, bits, _FMA, (feature,))
        for bits, feature in ((128, ("fma",)), (256, ("fma",)), (512, ("avx512f",)))
        for short, types in _FLOATS.items()
    },
    # The sum of products of four unsigned bytes of A and four signed ones of B.
    **{
        f"llvm.x86.avx512.vpdpbusd.{bits}": LlvmVector(
            ("uint8", "int8", "int32"), bits, _DOT, features
        )
        for bits, features in (
            (128, (("avx512vnni", "avx512vl"), ("avxvnni",))),
            (256, (("avx512vnni", "avx512vl"), ("avxvnni",))),
            (512, (("avx512vnni",),)),
        )
    },
    "llvm.x86.tdpbssd": LlvmVector(
        ("int8", "int8", "int32"), TILE_ROW_BITS, _DOT, (("amx_int8",),), tiles=True
    ),
    "llvm.x86.tdpbf16ps": LlvmVector(
        ("bfloat16", "bfloat16", "float32"), TILE_ROW_BITS, _DOT, (("amx_bf16",),), tiles=True
    ),
}

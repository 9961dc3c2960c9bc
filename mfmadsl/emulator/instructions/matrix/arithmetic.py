"""Which sums the matrix cores of a chip compute, and which numbers they read.

Source: what MMA-Sim 2.1.1 (arXiv 2511.10909) found of MI100, MI200 and MI300, whose bits it gives;
of gfx950, and of sparse and scaled instructions, no model is public.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal as OneOf

from mfmadsl.model import assumed

Number = OneOf["i32", "f32", "f64"]
Kind = OneOf["integers", "chain", "once", "exact", "pairs", "aligned", "interleaved"]


@dataclass(frozen=True)
class Sum:
    """How products are added to an element of C: `group` of them at a time, in the order of k.

    `integers` wrap around. `chain`: a fused multiply-add a product, in the type of C. `once`: in
    float64, rounded at the end. `exact`: the exact sum of C and a group, rounded. `pairs`:
    c + ((p0 + p1) + (p2 + p3)), each rounded, denormals flushed. `aligned`: the products of a
    group are cut to 24 bits below the largest exponent; `interleaved`: those of even and those of
    odd k each for themselves. With `overflowing`, a product of 2^128 or more is infinite.
    """

    kind: Kind
    group: int = 1
    double: bool = False
    overflowing: bool = False

    @property
    def narrow(self) -> bool:
        """Whether the exponents of A and B are those of halves and eight-bit floats, -15 to 15."""
        return self.splits and not self.overflowing

    @property
    def zero_exponent(self) -> int:
        """What stands for the exponent of a zero: so small that no product of other numbers has the
        exponent of a product with it. Narrow products may be 151 apart, to be shifted as floats."""
        return -50 if self.narrow else -8192

    @property
    def element(self) -> Number:
        """The type of C and D."""
        return "i32" if self.kind == "integers" else "f64" if self.double else "f32"

    @property
    def factor(self) -> Number:
        """The type in which A and B are given, or their significands."""
        if self.kind == "integers":
            return "i32"
        return "f64" if self.double or self.kind in ("once", "exact") else "f32"

    @property
    def splits(self) -> bool:
        """Whether A and B are given as significands, from 1 to below 2, and exponents."""
        return self.kind in ("aligned", "interleaved")

    def of_at_most(self, k: int) -> Sum:
        """How an instruction of so many products an element adds, maybe less than a group."""
        return replace(self, group=min(self.group, k))


_CDNA3 = {
    "f16": Sum("aligned", 8),
    "bf16": Sum("aligned", 8, overflowing=True),
    "xf32": Sum("aligned", 4, overflowing=True),
    "fp8": Sum("interleaved", 16),
    "bf8": Sum("interleaved", 16),
}
_SUMS = {
    ("CDNA1", "f16"): Sum("exact", 4),
    ("CDNA1", "bf16"): Sum("exact", 2),
    ("CDNA2", "f16"): Sum("pairs", 4),
    ("CDNA2", "bf16"): Sum("pairs", 2),
    ("CDNA2", "bf16_1k"): Sum("pairs", 4),
    **{("CDNA3", kind): how for kind, how in _CDNA3.items()},
}
_MODELLED = {family for family, _ in _SUMS}


@dataclass(frozen=True)
class Arithmetic:
    """What is added up how; `known` is whether these are the bits of the real chip."""

    how: Sum
    known: bool

    def roundings(self, k: int) -> int:
        """How many units in the last place a sum of k products may be off.

        The unit is 2^-24, of float64 2^-53, of the sum of the products' magnitudes. Where no model
        is known, each product may have been rounded.
        """
        how, groups = self.how, -(-k // self.how.group)
        if not self.known or how.kind in ("chain", "once"):
            return k
        cut = {
            "exact": 0,
            "pairs": how.group.bit_length() - 1,  # the additions within a group
            "aligned": how.group,  # every product is cut
            "interleaved": how.group + 2,  # and so are both of a group's sums
        }[how.kind]
        # Each group's sum is rounded; where it is cut, C is cut before.
        return cut + groups * (2 if how.splits else 1) + how.splits


def arithmetic(arch: str, dense: bool, kind: str) -> Arithmetic:
    """What an instruction of a chip adds up how, by the type of A, such as `f16` or `bf16_1k`.

    Where no model is known, float32 results are sums in float64, rounded once; those of f32 and f64
    are chains of fma all the same.
    """
    if kind == "i8":
        return Arithmetic(Sum("integers"), True)
    family = assumed(arch).family
    modelled = dense and family in _MODELLED
    if kind in ("f32", "f64"):
        return Arithmetic(Sum("chain", double=kind == "f64"), modelled)
    how = _SUMS.get((family, kind)) if modelled else None
    return Arithmetic(how or Sum("once"), how is not None)

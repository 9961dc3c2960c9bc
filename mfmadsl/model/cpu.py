"""CPUs that run micro-kernels: what each has of the features that the language knows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mfmadsl.error import ArgumentError

_IMPLIED: Mapping[str, tuple[str, ...]] = {
    "sse2": (),
    "avx": ("sse2",),
    "avx2": ("avx",),
    "fma": ("avx",),
    "avx512f": ("avx2", "fma"),
    "avx512bw": ("avx512f",),
    "avx512vl": ("avx512f",),
    "avx512dq": ("avx512f",),
    "avx512vnni": ("avx512f",),
    "avxvnni": ("avx2",),
    "amx_tile": ("sse2",),
    "amx_int8": ("amx_tile",),
    "amx_bf16": ("amx_tile",),
}
"""What a CPU that has a feature has as well (LLVM 22, X86.td)."""

FEATURES = tuple(_IMPLIED)
"""LLVM's names of features, with `_` for `-`."""

VECTOR_BITS: Mapping[str, int] = {"sse2": 128, "avx": 256, "avx512f": 512}
"""The widest vector register of a CPU that has the feature, and none further down."""

TILES = 8
"""Tile registers of AMX."""

TILE_ROWS, TILE_ROW_BITS = 16, 512
"""What one of them holds (Intel SDM, volume 1, 18.2: palette 1)."""


def llvm_feature(feature: str) -> str:
    """What LLVM calls it."""
    return feature.replace("_", "-")


def with_implied(features: Iterable[str]) -> frozenset[str]:
    """These features, and those that a CPU with them has as well."""
    found: set[str] = set()
    left = list(features)
    while left:
        feature = left.pop()
        if feature not in found:
            found.add(feature)
            left += _IMPLIED[feature]
    return frozenset(found)


def vector_registers(features: Iterable[str], bits: int) -> int:
    """How many vector registers of so many bits code for these features has."""
    had = with_implied(features)
    wide = "avx512f" in had and bits == VECTOR_BITS["avx512f"]
    return 32 if wide or "avx512vl" in had else 16


def vector_bits(features: Iterable[str]) -> int:
    """The bits of the widest vector register of code for these features; 0 without any."""
    had = with_implied(features)
    return max((bits for feature, bits in VECTOR_BITS.items() if feature in had), default=0)


@dataclass(frozen=True)
class Cpu:
    """A CPU by LLVM's name of it (`mcpu`), with its `features` among `FEATURES`; it has those that
    these imply, too."""

    name: str
    features: tuple[str, ...]

    @property
    def vector_registers(self) -> int:
        """How many of its widest vector registers it has."""
        return vector_registers(self.features, vector_bits(self.features))

    def missing(self, features: Iterable[str]) -> tuple[str, ...]:
        """Those of `features` that it lacks, in the order in which they are given."""
        had = with_implied(self.features)
        return tuple(feature for feature in features if feature not in had)


_V3 = ("sse2", "avx", "avx2", "fma")
_V4 = (*_V3, "avx512f", "avx512bw", "avx512vl", "avx512dq")

CPUS: Mapping[str, Cpu] = {
    name: Cpu(name, features)
    for name, features in {
        "x86-64": ("sse2",),
        "x86-64-v3": _V3,
        "x86-64-v4": _V4,
        "haswell": _V3,
        "skylake-avx512": _V4,
        "cascadelake": (*_V4, "avx512vnni"),
        "icelake-server": (*_V4, "avx512vnni"),
        "sapphirerapids": (
            *_V4, "avx512vnni", "avxvnni", "amx_tile", "amx_int8", "amx_bf16",
        ),
        "znver2": _V3,
        "znver3": _V3,
        "znver4": (*_V4, "avx512vnni"),
        "znver5": (*_V4, "avx512vnni", "avxvnni"),
    }.items()
}  # fmt: skip


def cpu(name: str) -> Cpu:
    """The CPU of that name. Raises ArgumentError, naming those there are."""
    if name not in CPUS:
        raise ArgumentError(f"unknown CPU `{name}`: there are {', '.join(CPUS)}")
    return CPUS[name]

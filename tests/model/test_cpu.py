"""CPUs, their features, and what follows from those."""

from __future__ import annotations

import pytest

from mfmadsl.error import ArgumentError
from mfmadsl.model import CPUS, FEATURES, Cpu, cpu
from mfmadsl.model.cpu import llvm_feature, vector_bits, vector_registers, with_implied


def test_a_cpu_is_found_by_llvms_name_of_it() -> None:
    assert cpu("znver5").name == "znver5"
    with pytest.raises(ArgumentError, match=r"unknown CPU `zen5`: there are x86-64, .*znver5"):
        cpu("zen5")


@pytest.mark.parametrize("known", CPUS.values(), ids=lambda c: c.name)
def test_a_cpu_has_what_its_features_imply_in_the_order_of_all(known: Cpu) -> None:
    assert set(known.features) == with_implied(known.features)
    assert list(known.features) == [f for f in FEATURES if f in known.features]


@pytest.mark.parametrize(
    ("features", "bits", "registers"),
    [
        (("sse2",), 128, 16),
        (("avx2", "fma"), 256, 16),
        (("avx512f",), 512, 32),
        (("avx512f",), 256, 16),  # only AVX-512VL has more than 16 narrow ones
        (("avx512vnni", "avx512vl"), 256, 32),
    ],
)
def test_how_many_registers_there_are(features: tuple[str, ...], bits: int, registers: int) -> None:
    assert vector_registers(features, bits) == registers


def test_the_widest_registers_of_some_features() -> None:
    assert [vector_bits([f]) for f in ("sse2", "fma", "avx512vl")] == [128, 256, 512]
    assert vector_bits([]) == 0
    assert [CPUS[name].vector_registers for name in ("haswell", "znver4")] == [16, 32]


def test_what_a_cpu_lacks_is_told_in_the_order_in_which_it_is_asked_for() -> None:
    assert CPUS["znver3"].missing(["avx512vnni", "fma", "avx512f"]) == ("avx512vnni", "avx512f")
    assert Cpu("x86-64", ("avx512f",)).missing(["fma", "sse2"]) == ()


def test_llvm_writes_a_feature_with_a_hyphen() -> None:
    assert llvm_feature("amx_int8") == "amx-int8"

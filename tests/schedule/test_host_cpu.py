"""The CPU that this runs on, and what LLVM says of the others."""

from __future__ import annotations

from pathlib import Path

import pytest
from tvm.target import Target, codegen

from mfmadsl.error import ArgumentError, ArgumentTypeError
from mfmadsl.language import find_microkernel
from mfmadsl.model import CPUS, FEATURES, Cpu
from mfmadsl.model.cpu import llvm_feature, with_implied
from mfmadsl.schedule import host_cpu as module
from mfmadsl.schedule.host_cpu import check_features, cpu_target, host_cpu, llvm_features

HASWELL = CPUS["haswell"]


@pytest.mark.parametrize("known", CPUS.values(), ids=lambda c: c.name)
def test_the_record_of_a_cpu_is_llvms(known: Cpu) -> None:
    assert llvm_features(known.name) == set(known.features)
    assert codegen.llvm_is_valid_cpu(known.name, "x86_64-unknown-linux-gnu")


@pytest.mark.parametrize("feature", FEATURES)
def test_a_feature_implies_what_it_does_in_llvm(feature: str) -> None:
    target = Target({"kind": "llvm", "mcpu": "x86-64", "mattr": [f"+{llvm_feature(feature)}"]})
    had = set(map(str, codegen.llvm_get_cpu_features(target)))
    assert {f for f in FEATURES if llvm_feature(f) in had} >= with_implied([feature])
    assert llvm_feature(feature) in had


def test_the_host_is_called_as_llvm_calls_it() -> None:
    assert host_cpu().name == codegen.llvm_get_system_cpu()
    assert set(host_cpu().features) <= llvm_features(host_cpu().name)


@pytest.fixture
def hides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cpu:
    """A Sapphire Rapids whose virtual machine hides AVX-512F, but not what needs it."""
    flags = [module._linux_flag(f) for f in CPUS["sapphirerapids"].features if f != "avx512f"]
    path = tmp_path / "cpuinfo"
    path.write_text(f"processor\t: 0\nflags\t\t: {' '.join(flags)}\n")
    monkeypatch.setattr(module, "_CPUINFO", path)
    monkeypatch.setattr(codegen, "llvm_get_system_cpu", lambda: "sapphirerapids")
    found: Cpu = host_cpu.__wrapped__()
    return found


def test_what_a_virtual_machine_hides_is_missing_and_what_needs_it(hides: Cpu) -> None:
    assert hides.features == (
        "sse2", "avx", "avx2", "fma", "avxvnni", "amx_tile", "amx_int8", "amx_bf16",
    )  # fmt: skip
    off = [str(x) for x in cpu_target(hides).attrs["mattr"]]
    assert off == ["-avx512f", "-avx512bw", "-avx512vl", "-avx512dq", "-avx512vnni"]


def test_where_linux_says_nothing_llvm_is_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_CPUINFO", tmp_path / "none")
    assert set(host_cpu.__wrapped__().features) == llvm_features(host_cpu().name)


def test_the_target_names_the_cpu_and_what_it_has_besides() -> None:
    assert cpu_target(HASWELL).attrs["mcpu"] == "haswell"
    assert "mattr" not in cpu_target(HASWELL).attrs
    more = cpu_target(Cpu("haswell", (*HASWELL.features, "avxvnni")))
    assert [str(x) for x in more.attrs["mattr"]] == ["+avxvnni"]
    assert cpu_target().attrs["mcpu"] == host_cpu().name
    with pytest.raises(ArgumentTypeError, match="cpu: is a Cpu, not 'haswell'"):
        cpu_target("haswell")  # type: ignore[arg-type]


def test_a_cpu_without_a_feature_is_refused_by_its_name_and_with_what_it_has() -> None:
    check_features(find_microkernel("avx2_f32_6x16"), HASWELL)
    with pytest.raises(ArgumentError) as error:
        check_features(find_microkernel("vnni256_u8i8_8x16"), HASWELL)
    assert str(error.value) == (
        "vnni256_u8i8_8x16 needs avx512vnni and avx512vl, which the CPU haswell lacks: "
        "it has sse2, avx, avx2, fma"
    )
    with pytest.raises(ArgumentError, match="which the CPU neoverse-n1 lacks: it has none of the"):
        check_features(find_microkernel("sse2_f32_6x8"), Cpu("neoverse-n1", ()))
    with pytest.raises(ArgumentTypeError, match="microkernel: is a Microkernel"):
        check_features("sse2_f32_6x8")  # type: ignore[arg-type]


def test_the_librarys_most_modest_runs_here() -> None:
    check_features(find_microkernel("sse2_f32_6x8"))

"""The CPU that this runs on, and what LLVM says of the others."""

from __future__ import annotations

import platform
from collections.abc import Callable
from dataclasses import dataclass

import llvmlite.binding as llvm
import pytest
from tvm.target import Target, codegen

import mfmadsl
from mfmadsl.error import ArgumentError, ArgumentTypeError
from mfmadsl.host import cpu as module
from mfmadsl.host.cpu import (
    check_features,
    cpu_target,
    features_of,
    host_cpu,
    host_features,
    llvm_features,
)
from mfmadsl.host.tile_permission import gives_tiles
from mfmadsl.language import find_microkernel
from mfmadsl.model import CPUS, FEATURES, Cpu
from mfmadsl.model.cpu import llvm_feature, with_implied
from tests.host.cpuid import asked, features

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


_X86 = platform.machine() == "x86_64"


@pytest.mark.skipif(not _X86, reason="CPUID is an instruction of x86")
def test_the_hosts_features_are_those_that_cpuid_and_xcr0_tell() -> None:
    """Asked here once more, by the tables of Intel's manual."""
    assert set(host_cpu().features) == features(asked(), tiles=gives_tiles())


def test_what_the_system_does_not_save_is_not_there() -> None:
    """The witness itself: XCR0's bits for AVX (1, 2), AVX-512 (5 to 7) and AMX (17, 18)."""
    every = dict.fromkeys(("1c", "1d", "7b", "7c", "7d", "71a"), 0xFFFFFFFF)
    assert features({**every, "xcr0": 0x600E7}, tiles=True) == set(FEATURES)
    assert features({**every, "xcr0": 0x600E7}, tiles=False) == {
        f for f in FEATURES if "amx" not in f
    }
    assert "avx512f" not in features({**every, "xcr0": 0x60007}, tiles=True)
    assert features({**every, "xcr0": 3}, tiles=True) == {"sse2"}


@dataclass
class Machine:
    """What LLVM says of a made-up machine, and whether its system gives tile registers."""

    name: str
    had: tuple[str, ...]
    tiles: bool = True
    silent: bool = False

    def features(self) -> dict[str, bool]:
        if self.silent:
            raise RuntimeError("no features")
        return {llvm_feature(f): f in self.had for f in FEATURES}


@pytest.fixture
def on(monkeypatch: pytest.MonkeyPatch) -> Callable[[Machine], Cpu]:
    """What `host_cpu` says on a machine."""

    def cpu(machine: Machine) -> Cpu:
        monkeypatch.setattr(llvm, "get_host_cpu_features", machine.features)
        monkeypatch.setattr(codegen, "llvm_get_system_cpu", lambda: machine.name)
        monkeypatch.setattr(module, "gives_tiles", lambda: machine.tiles)
        monkeypatch.setattr(module, "host_features", module.host_features.__wrapped__)
        found: Cpu = host_cpu.__wrapped__()
        return found

    return cpu


SPR = CPUS["sapphirerapids"].features


def test_a_model_that_a_hypervisor_gives_has_the_features_of_the_real_one(
    on: Callable[[Machine], Cpu],
) -> None:
    """A Sapphire Rapids that calls itself a Rocket Lake: tile registers, and what needs them."""
    cpu = on(Machine("rocketlake", SPR))
    assert cpu == Cpu("rocketlake", SPR)
    check_features(find_microkernel("amx_bf16_32x32x32"), cpu)
    more = [str(x) for x in cpu_target(cpu).attrs["mattr"]]
    assert more == ["+avxvnni", "+amx-tile", "+amx-int8", "+amx-bf16"]
    assert cpu_target(cpu).attrs["mcpu"] == "rocketlake"


def test_what_a_virtual_machine_hides_is_missing_and_what_needs_it(
    on: Callable[[Machine], Cpu],
) -> None:
    hides = on(Machine("sapphirerapids", tuple(f for f in SPR if f != "avx512f")))
    assert hides.features == (
        "sse2", "avx", "avx2", "fma", "avxvnni", "amx_tile", "amx_int8", "amx_bf16",
    )  # fmt: skip
    off = [str(x) for x in cpu_target(hides).attrs["mattr"]]
    assert off == ["-avx512f", "-avx512bw", "-avx512vl", "-avx512dq", "-avx512vnni"]


def test_a_system_that_saves_no_wide_registers_takes_avx512_with_them(
    on: Callable[[Machine], Cpu],
) -> None:
    """CPUID has AVX-512, XCR0 has not: LLVM says no, whatever the model's name."""
    assert on(Machine("znver4", HASWELL.features)) == Cpu("znver4", HASWELL.features)


def test_a_system_that_gives_no_tile_registers_takes_amx_with_them(
    on: Callable[[Machine], Cpu],
) -> None:
    assert on(Machine("sapphirerapids", SPR, tiles=False)).features == SPR[:-3]


def test_what_is_not_told_of_where_others_are_is_not_there(
    on: Callable[[Machine], Cpu], monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {
        f: had for f, had in Machine("sapphirerapids", SPR).features().items() if "amx" not in f
    }
    machine = Machine("sapphirerapids", SPR)
    monkeypatch.setattr(machine, "features", lambda: told)
    assert on(machine).features == SPR[:-3]


def test_where_nobody_says_what_there_is_the_name_is_believed(
    on: Callable[[Machine], Cpu],
) -> None:
    assert on(Machine("znver4", (), silent=True)) == CPUS["znver4"]


def test_a_cpu_of_another_kind_has_none_and_is_told_so(on: Callable[[Machine], Cpu]) -> None:
    arm = on(Machine("x86-64", (), tiles=False))
    assert arm.features == ()
    for dtype in ("float32", "float16"):
        workload = mfmadsl.matmul(8, 8, 8, dtype, dtype)
        with pytest.raises(mfmadsl.ScheduleError, match="it has none of the features that are"):
            mfmadsl.cpu_gemm_schedule(workload, cpu=Cpu("neoverse-n1", ()))


def test_the_target_of_this_machine_has_nothing_that_cpuid_denies() -> None:
    denied = {each for each, there in host_features().items() if not there}
    assert not features_of(cpu_target()) & denied


def test_of_other_features_the_target_lacks_what_is_denied_and_not_what_nobody_tells(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """LLVM's host tells some features only; of the others the model's name is believed."""
    cpu = CPUS["haswell"]
    told = {"bmi2": False, "movbe": True}
    monkeypatch.setattr(module, "host_cpu", lambda: cpu)
    monkeypatch.setattr(module, "host_features", lambda: told)
    assert features_of(Target({"kind": "llvm", "mcpu": "haswell"})) >= {"bmi2", "movbe", "lzcnt"}
    assert [str(x) for x in cpu_target(cpu).attrs["mattr"]] == ["-bmi2"]


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

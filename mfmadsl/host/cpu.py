"""The CPU that this process runs on, and whether a CPU can run a micro-kernel."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import llvmlite.binding as llvm
from tvm.target import Target, codegen

from mfmadsl.argument import check_type
from mfmadsl.error import ArgumentError
from mfmadsl.host.tile_permission import gives_tiles
from mfmadsl.model import FEATURES, Cpu, Microkernel
from mfmadsl.model.cpu import llvm_feature, with_implied

_TUNING = (
    "allow-", "branchfusion", "ermsb", "false-deps-", "fast-", "faster-", "fsrm", "idivq-",
    "macrofusion", "no-bypass-", "prefer-", "sbb-dep-", "slow-", "tuning-", "vzeroupper",
)  # fmt: skip
"""How names of what LLVM calls features begin, which say what is fast and not what there is."""

_ASKED_FOR = frozenset(
    {
        "cldemote", "clflushopt", "clwb", "clzero", "enqcmd", "fsgsbase", "hreset", "invpcid", "kl",
        "lwp", "movdir64b", "movdiri", "mwaitx", "pconfig", "pku", "prefetchi", "ptwrite", "rdpid",
        "rdpru", "rdrnd", "rdseed", "serialize", "sgx", "shstk", "tsxldtrk", "uintr", "usermsr",
        "waitpkg", "wbnoinvd", "widekl", "xsave", "xsavec", "xsaveopt", "xsaves",
    }
)  # fmt: skip
"""Features whose instructions LLVM takes only for intrinsics of their own, which no kernel calls;
hypervisors hide many of them (LLVM 22, X86InstrInfo.td and X86InstrSystem.td)."""


@cache
def host_cpu() -> Cpu:
    """This machine's, by LLVM's name of it, with the features that it really has.

    The name is of a model, and a hypervisor may give another one's. Features are those of CPUID
    whose registers the system saves.
    """
    name = str(codegen.llvm_get_system_cpu())
    known, told = llvm_features(name), host_features()
    had = {f for f in FEATURES if told.get(llvm_feature(f), not told and f in known)}
    if "amx_tile" in had and not gives_tiles():
        had.remove("amx_tile")
    # What is hidden takes with it what cannot be without it.
    return Cpu(name, tuple(f for f in FEATURES if with_implied([f]) <= had))


@cache
def host_features() -> Mapping[str, bool]:
    """What LLVM finds out about this CPU, by its names of features; nothing where it cannot.

    On x86 it asks CPUID, and XCR0 for what the system saves of AVX, AVX-512 and AMX (llvm/lib/
    TargetParser/Host.cpp).
    """
    try:
        return dict(llvm.get_host_cpu_features())
    except RuntimeError:
        return {}


def llvm_features(name: str) -> frozenset[str]:
    """Those of `FEATURES` that LLVM's CPU of this name has."""
    found = features_of(Target({"kind": "llvm", "mcpu": name}))
    return frozenset(f for f in FEATURES if llvm_feature(f) in found)


def features_of(target: Target) -> frozenset[str]:
    """Those whose instructions may be in code for a target, by LLVM's names."""
    found = frozenset(map(str, codegen.llvm_get_cpu_features(target)))
    return frozenset(f for f in found - _ASKED_FOR if not f.startswith(_TUNING))


def cpu_target(cpu: Cpu | None = None) -> Target:
    """TVM's target for code of a CPU, this machine's if none is given.

    It names the CPU: `native` would be one without vectors of more than 128 bits, without a word.
    Where the features of that name are not those of the CPU, it says so.
    """
    cpu = host_cpu() if cpu is None else cpu
    check_type("cpu", cpu, Cpu, "a Cpu")
    by_name, had = features_of(Target({"kind": "llvm", "mcpu": cpu.name})), cpu_features(cpu)
    more = [f"+{llvm_feature(f)}" for f in FEATURES if llvm_feature(f) in had - by_name]
    less = [f"-{llvm_feature(f)}" for f in FEATURES if llvm_feature(f) in by_name - had]
    if cpu == host_cpu():
        told = host_features()
        others = by_name - set(map(llvm_feature, FEATURES))
        less += [f"-{each}" for each in sorted(others) if told.get(each) is False]
    attributes = {"mattr": [*more, *less]} if more or less else {}
    return Target({"kind": "llvm", "mcpu": cpu.name, **attributes})


def cpu_features(cpu: Cpu) -> frozenset[str]:
    """Those of `FEATURES` that a CPU has, as LLVM calls them."""
    return frozenset(map(llvm_feature, with_implied(cpu.features)))


def check_features(microkernel: Microkernel, cpu: Cpu | None = None) -> None:
    """Raise ArgumentError, saying what is missing, unless the CPU can run the micro-kernel.

    The CPU is this machine's if none is given.
    """
    check_type("microkernel", microkernel, Microkernel, "a Microkernel")
    cpu = host_cpu() if cpu is None else cpu
    check_type("cpu", cpu, Cpu, "a Cpu")
    if missing := cpu.missing(microkernel.features):
        raise ArgumentError(
            f"{microkernel.name} needs {' and '.join(missing)}, which the CPU {cpu.name} lacks: "
            f"it has {had_by(cpu)}"
        )


def had_by(cpu: Cpu) -> str:
    """The features of a CPU, to be read."""
    return ", ".join(cpu.features) or "none of the features that are known here"

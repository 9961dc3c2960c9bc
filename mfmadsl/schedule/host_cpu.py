"""The CPU that this process runs on, and whether a CPU can run a micro-kernel."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from tvm.target import Target, codegen

from mfmadsl.argument import check_type
from mfmadsl.error import ArgumentError
from mfmadsl.model import FEATURES, Cpu, Microkernel
from mfmadsl.model.cpu import llvm_feature, with_implied

_CPUINFO = Path("/proc/cpuinfo")


@cache
def host_cpu() -> Cpu:
    """This machine's, by LLVM's name of it, with the features that it really has.

    LLVM knows them by the name; a virtual machine may hide some, of which Linux tells.
    """
    name = str(codegen.llvm_get_system_cpu())
    known = llvm_features(name)
    flags = _linux_flags()
    had = [f for f in FEATURES if f in known and (flags is None or _linux_flag(f) in flags)]
    # What is hidden takes with it what cannot be without it.
    return Cpu(name, tuple(f for f in had if with_implied([f]) <= set(had)))


def llvm_features(name: str) -> frozenset[str]:
    """Those of `FEATURES` that LLVM's CPU of this name has."""
    found = set(map(str, codegen.llvm_get_cpu_features(Target({"kind": "llvm", "mcpu": name}))))
    return frozenset(f for f in FEATURES if llvm_feature(f) in found)


def cpu_target(cpu: Cpu | None = None) -> Target:
    """TVM's target for code of a CPU, this machine's if none is given.

    It names the CPU: `native` would be one without vectors of more than 128 bits, without a word.
    """
    cpu = host_cpu() if cpu is None else cpu
    check_type("cpu", cpu, Cpu, "a Cpu")
    known, had = llvm_features(cpu.name), with_implied(cpu.features)
    more = [f"+{llvm_feature(f)}" for f in FEATURES if f in had - known]
    less = [f"-{llvm_feature(f)}" for f in FEATURES if f in known - had]
    attributes = {"mattr": [*more, *less]} if more or less else {}
    return Target({"kind": "llvm", "mcpu": cpu.name, **attributes})


def check_features(microkernel: Microkernel, cpu: Cpu | None = None) -> None:
    """Raise ArgumentError, saying what is missing, unless the CPU can run the micro-kernel.

    The CPU is this machine's if none is given.
    """
    check_type("microkernel", microkernel, Microkernel, "a Microkernel")
    cpu = host_cpu() if cpu is None else cpu
    check_type("cpu", cpu, Cpu, "a Cpu")
    if missing := cpu.missing(microkernel.features):
        had = ", ".join(cpu.features) or "none of the features that are known here"
        raise ArgumentError(
            f"{microkernel.name} needs {' and '.join(missing)}, which the CPU {cpu.name} lacks: "
            f"it has {had}"
        )


def _linux_flags() -> frozenset[str] | None:
    """What Linux says that the CPU has; None where it does not say."""
    try:
        lines = _CPUINFO.read_text().splitlines()
    except OSError:
        return None
    flags = next((line.partition(":")[2].split() for line in lines if line.startswith("flags")), [])
    return frozenset(flags) or None


def _linux_flag(feature: str) -> str:
    """What Linux calls a feature."""
    return {"avx512vnni": "avx512_vnni", "avxvnni": "avx_vnni"}.get(feature, feature)

"""Which micro-kernel and which tiling a product on a CPU takes."""

from __future__ import annotations

from collections.abc import Iterator

import tvm

from mfmadsl.argument import check_integer, check_type
from mfmadsl.error import ArgumentError
from mfmadsl.host.caches import host_caches
from mfmadsl.host.cpu import check_features, had_by, host_cpu
from mfmadsl.language import find_microkernel, microkernels
from mfmadsl.model import Cpu, Microkernel
from mfmadsl.schedule.cpu.tiling import (
    CpuShape,
    CpuTiling,
    check_cpu_tiling,
    default_cpu_tiling,
)
from mfmadsl.schedule.error import ScheduleError
from mfmadsl.schedule.product.memory import number
from mfmadsl.schedule.product.normalise import Product


def cpu_of(asked: Cpu | None) -> Cpu:
    """The CPU that is asked for, or this machine's."""
    cpu = host_cpu() if asked is None else asked
    check_type("cpu", cpu, Cpu, "a Cpu, as `mfmadsl.model.cpu` gives it")
    return cpu


def chosen(
    product: Product,
    asked: Microkernel | str | None,
    cpu: Cpu | None,
    tiling: CpuTiling | None,
    threads: int | None,
) -> tuple[Microkernel, CpuTiling]:
    """The micro-kernel and the tiling that are asked for, or chosen."""
    cpu = cpu_of(cpu)
    threads = tvm.runtime.num_threads() if threads is None else check_integer("threads", threads)
    if threads < 1:
        raise ArgumentError(f"threads: {threads}, but there is one or more")
    found = _asked(asked, tiling)
    offered = _fitting(product, cpu) if found is None else [found]
    if found is not None:
        check_features(found, cpu)
        _check_types(found, product.types)
        if tiling is not None and tiling.microkernel != found.name:
            raise ScheduleError(
                f"tiling: it is for {tiling.microkernel}, but {found.name} is asked for"
            )
    shape = _shape(product)
    if tiling is not None:
        return offered[0], tiling
    taken = default_cpu_tiling(shape, offered, host_caches(), threads)
    return next(each for each in offered if each.name == taken.microkernel), taken


def _asked(microkernel: Microkernel | str | None, tiling: CpuTiling | None) -> Microkernel | None:
    """The micro-kernel that is asked for, be it by the tiling."""
    if tiling is not None:
        check_cpu_tiling(tiling)
    name = tiling.microkernel if microkernel is None and tiling is not None else microkernel
    return find_microkernel(name) if isinstance(name, str) else name


def asked_types(
    microkernel: Microkernel | str | None, tiling: CpuTiling | None
) -> tuple[str, str, str] | None:
    """What the micro-kernel that is asked for multiplies, if one is."""
    found = _asked(microkernel, tiling)
    return types_of(found) if isinstance(found, Microkernel) else None


def _shape(product: Product) -> CpuShape:
    """The extents as numbers."""
    extents = [number(extent) for extent in product.extents]
    if None in extents:
        raise ScheduleError(
            "workload: an extent is a symbol, but a schedule for a CPU is of one size"
        )
    if 0 in extents:
        raise ScheduleError("workload: an extent is 0: there is nothing to multiply")
    s, m, n, k = (int(extent) for extent in extents if extent is not None)
    a = product.memory[0]
    along = a.axis == "k" and not a.computed and isinstance(a.distance, int)
    row = a.distance * a.size if along and isinstance(a.distance, int) else None
    return CpuShape(s, m, n, k, row)


def _fitting(product: Product, cpu: Cpu) -> list[Microkernel]:
    """The micro-kernels of the library for the types, of the widest vectors that the CPU has."""
    runs = list(running(product.types, cpu))
    if not runs:
        raise ScheduleError(
            f"workload: no micro-kernel of the CPU {cpu.name} multiplies {_spoken(product.types)}"
            f"{_why_none(product.types, cpu)}"
        )
    return [each for each in runs if each.bits == max(other.bits for other in runs)]


def _why_none(types: tuple[str, str, str], cpu: Cpu) -> str:
    """What there is instead."""
    fitting = [each for each in microkernels().values() if types_of(each) == types]
    tiles = [each.name for each in fitting if each.tiles and not cpu.missing(each.features)]
    if tiles:
        return f"; by its name {tiles[-1]} does, in tile registers: `microkernel=`"
    if fitting:
        needed = dict.fromkeys(" and ".join(each.features) for each in fitting)
        return f": they need {', or '.join(needed)}; it has {had_by(cpu)}"
    there = dict.fromkeys(
        _spoken(types_of(each))
        for each in microkernels().values()
        if not cpu.missing(each.features)
    )
    if not there:
        return f": it has {had_by(cpu)}"
    return f"; there are those of {', of '.join(there)}: a block before may cast, if values fit"


def running(types: tuple[str, str, str], cpu: Cpu) -> Iterator[Microkernel]:
    """The micro-kernels of the library for the types that the CPU can run, in vector registers.

    Tile registers take a leave of the system first, and are for those who ask for them.
    """
    for each in microkernels().values():
        if types_of(each) == types and not each.tiles and not cpu.missing(each.features):
            yield each


def types_of(microkernel: Microkernel) -> tuple[str, str, str]:
    """The types of A, B and C of a micro-kernel."""
    a, b, c = (operand.type.dtype for operand in microkernel.operands.values())
    return a, b, c


def _check_types(microkernel: Microkernel, types: tuple[str, str, str]) -> None:
    if types_of(microkernel) != types:
        raise ScheduleError(
            f"workload: {microkernel.name} multiplies {_spoken(types_of(microkernel))}, not"
            f" {_spoken(types)}"
        )


def _spoken(types: tuple[str, str, str]) -> str:
    return f"{types[0]} and {types[1]} into {types[2]}"

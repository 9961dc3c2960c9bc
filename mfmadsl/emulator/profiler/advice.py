"""What would make a kernel faster, as far as its profile shows it.

A rule speaks where the model says that what it is about takes a noticeable part of the time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mfmadsl.emulator.machine.wait import wait_counts

if TYPE_CHECKING:
    from mfmadsl.emulator.profiler.profile import LdsAccess, Profile

_IDLE = 0.2  # of the compute units' time
_CONFLICTS, _LDS = 0.2, 0.25  # of the LDS's cycles, and of the time in which it is busy
_WAITING = 0.1  # of the waves' time
_SPARSE, _MOVING = 1.5, 0.3  # lines for each byte that is wanted, and their share of the time


@dataclass(frozen=True)
class Advice:
    """What to do, by which rule: its name stays the same."""

    rule: str
    text: str


def advice_on(profile: Profile) -> tuple[Advice, ...]:
    """What is advised, the rules in a fixed order; nothing where no rule knows better."""
    found = ((name, rule(profile)) for name, rule in _RULES.items())
    return tuple(Advice(name, text) for name, text in found if text)


def headline(profile: Profile) -> str:
    """What limits the kernel, how near that limit is, and the first thing to do."""
    limit = profile.on_chip.limit
    if limit == "latency":
        start = "It waits: nothing of the chip is busy for half of the time."
    else:
        start = f"It is limited by {limit}, at {profile.on_chip.shares[limit]:.0%}."
    return " ".join([start, *(each.text for each in advice_on(profile)[:1])])


def _idle_units(profile: Profile) -> str:
    time, units = profile.on_chip, profile.on_chip.product.compute_units
    idle = time.shares.get("idle compute units", 0.0)
    if idle < _IDLE or time.launches > 1:
        return ""
    if time.rounds == 1:
        used = round((1 - idle) * units)
        return (
            f"Only {used} of {units} compute units have a workgroup: smaller tiles, or K split "
            "over workgroups, would give work to the others."
        )
    return (
        f"Compute units are idle for {idle:.0%} of the time, in the last of {time.rounds} rounds "
        "of workgroups: tiles of another size may fill it."
    )


def _bank_conflicts(profile: Profile) -> str:
    whole = profile.whole
    busy = profile.timing.busy.get("lds", 0) / max(1, profile.timing.cycles)
    if not profile.lds or whole.lds_conflict_cycles < _CONFLICTS * whole.lds_cycles or busy < _LDS:
        return ""

    def lost(access: LdsAccess) -> float:
        return (access.cycles - access.least_cycles) * access.times

    worst = max(profile.lds, key=lost)
    return (
        f"Bank conflicts take {whole.lds_conflict_cycles / whole.lds_cycles:.0%} of the LDS's "
        f"cycles: line {worst.line}, `{worst.instruction}`, takes {worst.cycles:.0f} where "
        f"{worst.least_cycles:.0f} would do. A swizzle (the row's bits by exclusive or into the "
        "column's), or rows padded by one access, spreads them over the banks."
    )


def _full_waits(profile: Profile) -> str:
    waiting = _share_of(profile, "memory") + _share_of(profile, "queue of memory")
    if profile.loop is None or waiting < _WAITING:
        return ""
    first, last = profile.loop.lines
    for instruction in profile.program.instructions:
        if instruction.name != "s_waitcnt" or not first <= instruction.line <= last:
            continue
        if wait_counts(instruction.modifiers["argument"]).get("vmcnt") == 0:
            return (
                f"Waves wait for memory for {waiting:.0%} of the time, and "
                f"line {instruction.line} waits for all loads in each iteration: start the loads "
                "of the iteration after the next one, and wait until only those are left."
            )
    return ""


def _spills(profile: Profile) -> str:
    spilled = profile.registers.spilled
    if not spilled:
        return ""
    return (
        f"{spilled} registers are spilled into memory: a smaller tile of a wave needs fewer; fewer "
        "waves of a workgroup leave more to each."
    )


def _lone_waves(profile: Profile) -> str:
    held, chip = profile.occupancy, profile.chip
    needed = {"registers": f"{chip.simd_registers // 2} registers a lane",
              "LDS": f"{chip.lds_bytes // 2} bytes of LDS"}  # fmt: skip
    alone = held.groups == 1 and held.waves_per_simd == 1 and held.limit in needed
    if not alone or profile.on_chip.limit != "latency":
        return ""
    return (
        f"A compute unit holds one workgroup for its {held.limit}, so that nobody works while it "
        f"waits: with {needed[held.limit]} it would hold two."
    )


def _sparse_lines(profile: Profile) -> str:
    whole, shares = profile.whole, profile.on_chip.shares
    moving = max((shares.get(name, 0.0) for name in ("L1", "L2", "HBM")), default=0.0)
    if whole.line_bytes < _SPARSE * whole.memory_bytes or moving < _MOVING:
        return ""
    return (
        f"Memory gives {whole.line_bytes / max(1, whole.memory_bytes):.1f} bytes of cache lines "
        "for each that is wanted: let neighbouring lanes access neighbouring bytes, 16 at best."
    )


def _share_of(profile: Profile, stall: str) -> float:
    """The part of the waves' time that they wait for it."""
    stalled = profile.timing.stalls.get(stall, 0)
    return stalled / max(1, profile.timing.cycles) / max(1, profile.waves)


_RULES: dict[str, Callable[[Profile], str]] = {
    "spilled-registers": _spills,
    "idle-compute-units": _idle_units,
    "bank-conflicts": _bank_conflicts,
    "full-waits": _full_waits,
    "sparse-lines": _sparse_lines,
    "lone-workgroup": _lone_waves,
}

"""A profile as a table for people and as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from mfmadsl.report.chip import chip_json, chip_lines
from mfmadsl.report.registers import registers_json, registers_line

if TYPE_CHECKING:
    from mfmadsl.emulator.profiler import LdsAccess, Profile
    from mfmadsl.emulator.profiler.advice import Advice
    from mfmadsl.emulator.profiler.profile import Section

_MOST_CONFLICTS = 5


def profile_json(profile: Profile) -> dict[str, Any]:
    """All that a profile says; cycles are clock cycles, counts those of one wave."""
    timing = profile.timing
    return {
        "kernel": profile.symbol,
        "arch": profile.chip.name,
        "launch": {"place": profile.launch[0], "count": profile.launch[1]},
        **registers_json(profile.registers),
        "allocated": profile.allocated,
        "lds_bytes": profile.lds_bytes,
        "occupancy": {
            "waves_per_simd": profile.occupancy.waves_per_simd,
            "workgroups": profile.occupancy.groups,
            "limit": profile.occupancy.limit,
        },
        "modelled": {"workgroups": profile.workgroups, "waves": profile.waves},
        "whole": _section_json(profile.whole),
        "loop": _section_json(profile.loop) if profile.loop else None,
        "lds_instructions": [
            {
                "line": access.line,
                "instruction": access.instruction,
                "cycles": access.cycles,
                "least_cycles": access.least_cycles,
            }
            for access in profile.lds
        ],
        "timing": {
            "cycles": timing.cycles,
            "matrix_bound": profile.matrix_bound,
            "matrix_use": round(profile.matrix_use, 4),
            "busy": dict(sorted(timing.busy.items())),
            "stalls": dict(sorted(timing.stalls.items())),
        },
        "limits": list(profile.limits),
        "advice": [{"rule": each.rule, "text": each.text} for each in _advice(profile)],
        "chip": chip_json(profile.on_chip),
    }


def _section_json(section: Section) -> dict[str, Any]:
    return {
        "lines": list(section.lines),
        "instructions": dict(section.instructions),
        "matrix_cycles": section.matrix_cycles,
        "lds_cycles": section.lds_cycles,
        "lds_conflict_cycles": section.lds_conflict_cycles,
        "memory_bytes": section.memory_bytes,
        "line_bytes": section.line_bytes,
        "l2_bytes": section.l2_bytes,
    }


def profile_table(profile: Profile) -> str:
    """What limits the kernel, and the figures behind it."""
    held, timing = profile.occupancy, profile.timing
    place, count = profile.launch
    lines = [
        f"kernel      {profile.symbol} on {profile.chip.name}",
        *([f"launch      {place}, of {count} counted from 0"] if count > 1 else []),
        f"registers   {registers_line(profile.registers)}; {profile.allocated} allocated",
        f"LDS         {profile.lds_bytes} bytes",
        f"occupancy   {_several(held.waves_per_simd, 'wave')} a SIMD in "
        f"{_several(held.groups, 'workgroup')}, limited by {held.limit}",
        f"model       {timing.cycles} cycles for {_several(profile.waves, 'wave')} of "
        f"{_several(profile.workgroups, 'workgroup')}; matrix cores in use "
        f"{profile.matrix_use:.0%} (bound {profile.matrix_bound})",
        *chip_lines(profile.on_chip),
        "",
        *_columns(profile),
        "",
        *(f"limit       {limit}" for limit in profile.limits),
        *(f"advice      {each.text}" for each in _advice(profile)),
    ]
    worst = sorted(profile.lds, key=_conflicts, reverse=True)[:_MOST_CONFLICTS]
    if conflicts := [access for access in worst if _conflicts(access) > 0]:
        lines += ["", "LDS bank conflicts, by instruction, in cycles (without conflicts)"]
        lines += [
            f"  line {access.line:<5} {access.cycles:6.1f} ({access.least_cycles:.1f})  "
            f"{access.instruction}"
            for access in conflicts
        ]
    return "\n".join(lines)


def _several(count: int, name: str) -> str:
    return f"{count} {name}{'s' * (count != 1)}"


def _conflicts(access: LdsAccess) -> float:
    return (access.cycles - access.least_cycles) * access.times


def _columns(profile: Profile) -> list[str]:
    """The main loop beside the whole kernel."""
    sections = [s for s in (profile.loop, profile.whole) if s is not None]
    kinds = sorted({kind for section in sections for kind in section.instructions})
    rows: list[tuple[str, list[str]]] = [
        ("lines", [f"{s.lines[0]}-{s.lines[1]}" for s in sections]),
        ("instructions", _cells(s.total for s in sections)),
        *[(f"  {kind}", _cells(s.instructions.get(kind, 0) for s in sections)) for kind in kinds],
        ("matrix cycles", _cells(s.matrix_cycles for s in sections)),
        ("LDS cycles", _cells(s.lds_cycles for s in sections)),
        ("  of conflicts", _cells(s.lds_conflict_cycles for s in sections)),
        ("memory bytes", _cells(s.memory_bytes for s in sections)),
        ("  in lines of", _cells(s.line_bytes for s in sections)),
        ("  past the L1", _cells(s.l2_bytes for s in sections)),
    ]
    header = ("one wave", ["main loop", "whole"][-len(sections) :])
    return [
        f"{name:<16}" + "".join(f"{cell:>14}" for cell in cells) for name, cells in (header, *rows)
    ]


def _cells(values: Iterable[int]) -> list[str]:
    return [str(value) for value in values]


def _advice(profile: Profile) -> tuple[Advice, ...]:
    # Commands that read no profile do not import the profiler.
    from mfmadsl.emulator.profiler.advice import advice_on

    return advice_on(profile)

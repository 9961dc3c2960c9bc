"""A profile in time, in the trace event format that ui.perfetto.dev opens."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mfmadsl.emulator.profiler import Event, Profile

_UNITS = 1  # process of the units; the waves are the other
_WAVES = 2
ISSUE = 4  # cycles that a wave needs to issue an instruction


def timeline_json(profile: Profile) -> str:
    """One track for each unit of each SIMD and for each wave; a microsecond is a clock cycle."""
    events = profile.timing.events
    units = sorted({(event.simd, event.unit) for event in events if event.busy})
    tracks = {unit: number for number, unit in enumerate(units)}
    rows = [_name(_UNITS, None, "units"), _name(_WAVES, None, "waves")]
    rows += [_name(_UNITS, t, unit_name(simd, unit)) for (simd, unit), t in tracks.items()]
    rows += [_name(_WAVES, w, f"wave {w}") for w in sorted({event.wave for event in events})]
    for event in events:
        if event.busy:
            track = tracks[event.simd, event.unit]
            rows.append(_slice(profile, event, _UNITS, track, event.start, event.busy))
        rows.append(_slice(profile, event, _WAVES, event.wave, event.issued, ISSUE))
    return json.dumps({"displayTimeUnit": "ns", "traceEvents": rows}, separators=(",", ":"))


def unit_name(simd: int, unit: str) -> str:
    """What a unit is called, of a SIMD or, if that is -1, of all of them."""
    return unit if simd < 0 else f"SIMD {simd} {unit}"


def _name(process: int, thread: int | None, name: str) -> dict[str, Any]:
    kind = "process_name" if thread is None else "thread_name"
    return {"ph": "M", "pid": process, "tid": thread or 0, "name": kind, "args": {"name": name}}


def _slice(
    profile: Profile, event: Event, process: int, thread: int, start: int, busy: int
) -> dict[str, Any]:
    instruction = profile.program.instructions[event.place]
    return {
        "ph": "X",
        "pid": process,
        "tid": thread,
        "ts": start,
        "dur": busy,
        "name": instruction.name,
        "args": {"line": instruction.line, "text": instruction.text, "wave": event.wave},
    }

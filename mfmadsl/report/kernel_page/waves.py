"""The main loop in time: what each unit does, and when each wave issues what, as SVG."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from mfmadsl.report.timeline import ISSUE, unit_name

if TYPE_CHECKING:
    from mfmadsl.emulator.profiler import Event, Profile

COLOURS = {
    "matrix": "#7c5cff", "valu": "#2f9e6e", "salu": "#8a94a6", "lds": "#e0882d", "vmem": "#d6455d",
    "smem": "#c46fb5", "wait": "#c9ccd3", "barrier": "#9aa0ad", "end": "#555a66",
}  # fmt: skip
"""Colours of each unit's instructions, for a page and its legend."""

_WIDTH, _ROW, _MARGIN = 1100, 15, 96
_TURNS = 2  # of the main loop that are drawn
_MOST = 2500  # instructions that a picture can show


def waves_svg(profile: Profile) -> str:
    """Two iterations in the middle of the main loop, or a kernel that has no loop; of either only
    the first part, where there are too many instructions to see."""
    start, end = _window(profile)
    shown = [event for event in profile.timing.events if start <= event.issued < end]
    if len(shown) > _MOST:  # it ends sooner: the axis says when
        end = max(start + 1, sorted(event.issued for event in shown)[_MOST])
        shown = [event for event in shown if event.issued < end]
    units = sorted({(event.simd, event.unit) for event in shown if event.busy})
    waves = sorted({event.wave for event in shown})
    rows = {unit: number for number, unit in enumerate(units)}
    lines = {wave: len(units) + number for number, wave in enumerate(waves)}
    scale = (_WIDTH - _MARGIN) / max(1, end - start)
    parts = [_name(unit_name(*unit), row) for unit, row in rows.items()]
    parts += [_name(f"wave {wave}", row) for wave, row in lines.items()]
    for event in shown:
        if event.busy and event.start < end:
            row = rows[event.simd, event.unit]
            parts.append(_bar(profile, event, event.start, event.busy, row, start, end, scale))
        row = lines[event.wave]
        parts.append(_bar(profile, event, event.issued, ISSUE, row, start, end, scale))
    height = _ROW * (len(units) + len(waves)) + 18
    ends = [(_MARGIN, start, "start"), (_WIDTH, end, "end")]
    parts += [
        f'<text x="{x}" y="{height - 4}" text-anchor="{anchor}">cycle {cycle}</text>'
        for x, cycle, anchor in ends
    ]
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" class="waves">'
    return head + "".join(parts) + "</svg>"


def _window(profile: Profile) -> tuple[int, int]:
    """The first and the last cycle that are shown."""
    events = profile.timing.events
    every = min((e.issued for e in events), default=0), profile.timing.cycles
    if profile.loop is None:
        return every
    line = profile.loop.lines[0]
    starts = sorted(
        event.issued
        for event in events
        if event.wave == 0 and profile.program.instructions[event.place].line == line
    )
    if len(starts) <= _TURNS:
        return every
    first = (len(starts) - _TURNS) // 2
    return starts[first], starts[first + _TURNS]


def _bar(
    profile: Profile, event: Event, at: int, cycles: int, row: int, start: int, end: int,
    scale: float,
) -> str:  # fmt: skip
    left, right = max(at, start), min(at + cycles, end)
    instruction = profile.program.instructions[event.place]
    tip = f"cycle {at}, wave {event.wave}, line {instruction.line}: {instruction.text}"
    colour = COLOURS.get(event.unit, COLOURS["salu"])
    x, width = _MARGIN + (left - start) * scale, max(0.6, (right - left) * scale - 0.3)
    return (
        f'<rect x="{x:.1f}" y="{row * _ROW + 1}" width="{width:.1f}" height="{_ROW - 3}" '
        f'fill="{colour}"><title>{escape(tip)}</title></rect>'
    )


def _name(text: str, row: int) -> str:
    return f'<text x="0" y="{row * _ROW + 11}">{escape(text)}</text>'

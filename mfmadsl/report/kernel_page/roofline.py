"""The rooflines of all memories in one picture, and where kernels are below each, as SVG.

A kernel has a point for each memory, over the operations for a byte that goes through it: as far
below the memory's line as the share of the time that it is busy. The full one limits it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log10
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

if TYPE_CHECKING:
    from mfmadsl.emulator.profiler import ChipTime

_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 620, 330, 62, 34
_DECADES = 4  # of floating-point operations a byte, from _FIRST on
_FIRST = 0.1
_TOP = 2.0  # of the peak, at the upper edge; three decades below it is the lower one
_SPAN = 3.0


@dataclass(frozen=True)
class Roof:
    """The peak of a kernel's own mix of matrix instructions, in TFLOP/s, at the highest clock, and
    bandwidths in GB/s by the name of the memory."""

    peak: float
    bandwidths: tuple[tuple[str, float], ...]

    def limit(self, intensity: float, memory: str) -> float:
        """TFLOP/s that are possible with so many operations a byte of a memory."""
        return min(self.peak, intensity * dict(self.bandwidths)[memory] / 1e3)


@dataclass(frozen=True)
class Point:
    """A kernel: operations for a byte that goes through each memory, TFLOP/s, and the memory that
    limits it. Of several the name begins with a letter and a colon."""

    name: str
    intensities: tuple[tuple[str, float], ...]
    tflops: float
    limit: str


def roof_of(time: ChipTime) -> Roof | None:
    """None of a kernel without matrix instructions."""
    share = time.shares.get("matrix cores", 0.0)
    if not time.flops or not share:
        return None
    product = time.product
    # The clock that power allows changes shares and rates alike.
    return Roof(
        round(time.tflops / share, 3),
        (
            ("HBM", product.memory_bandwidth),
            *((("MALL", product.mall_bandwidth),) if product.mall_bytes else ()),
            ("L2", product.l2_peak),
        ),
    )


def point_of(name: str, time: ChipTime) -> Point:
    """Where a kernel is: the memory that limits it is the busiest one."""
    traffic = time.traffic
    moved = {
        "HBM": traffic.memory + traffic.stored,
        **({"MALL": traffic.beyond} if time.product.mall_bytes else {}),
        "L2": traffic.requested,
    }
    intensities = tuple(
        (memory, time.flops / max(1.0, moved_bytes)) for memory, moved_bytes in moved.items()
    )
    busiest = max(moved, key=lambda memory: time.shares.get(memory, 0.0))
    return Point(name, intensities, time.tflops, busiest)


def roofline_svg(roof: Roof, points: Sequence[Point]) -> str:
    """Both axes logarithmic; each kernel is a point with its name as a title."""
    parts = [*_axes(roof), *_lines(roof)]
    for point in points:
        parts += _dots(roof, point)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
    return head + 'class="roofline">' + "".join(parts) + "</svg>"


def _dots(roof: Roof, point: Point) -> list[str]:
    """A kernel's points, that of the memory which limits it full and over the others."""
    letter, colon, _ = point.name.partition(":")
    letter = letter if colon else ""
    y = _y(point.tflops, roof)
    places = [_x(intensity) for _, intensity in point.intensities]
    parts = [f'<path class="tie" d="M{min(places):.1f} {y:.1f}H{max(places):.1f}"/>']
    for memory, intensity in sorted(point.intensities, key=lambda pair: pair[0] == point.limit):
        x = _x(intensity)
        share = point.tflops / roof.limit(intensity, memory)
        told = (
            f"{point.name}, {memory}: {intensity:.3g} FLOP/byte, {point.tflops:.3g} TFLOP/s, "
            f"{share:.0%} of what it allows"
        )
        kind = f"p{letter}" if memory == point.limit else f"p{letter} other"
        parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" class="{kind}" data-memory="{memory}">'
            f"<title>{escape(told)}</title></circle>"
        )
    parts.append(f'<text x="{max(places) + 9:.1f}" y="{y + 4:.1f}">{letter}</text>')
    return parts


def _axes(roof: Roof) -> list[str]:
    floor, right = _HEIGHT - _BOTTOM, _WIDTH - 8
    parts = [
        f'<text x="{right}" y="{_HEIGHT - 4}" text-anchor="end">FLOP a byte of each memory</text>',
        f'<text x="{_LEFT}" y="10" text-anchor="end">TFLOP/s</text>',
    ]
    for decade in range(_DECADES + 1):
        value = _FIRST * 10**decade
        x = _x(value)
        anchor = "middle" if decade < _DECADES else "end"
        parts.append(f'<path class="axis" d="M{x:.1f} 14V{floor}"/>')
        parts.append(f'<text x="{x:.1f}" y="{floor + 14}" text-anchor="{anchor}">{value:g}</text>')
    lowest = log10(roof.peak * _TOP) - _SPAN
    for power in range(int(lowest) - 1, int(lowest) + 6):
        if lowest <= power <= lowest + _SPAN:
            y = _y(10.0**power, roof)
            parts.append(f'<path class="axis" d="M{_LEFT} {y:.1f}H{right}"/>')
            parts.append(
                f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{10.0**power:g}</text>'
            )
    return parts


def _lines(roof: Roof) -> list[str]:
    parts = []
    last = _FIRST * 10**_DECADES
    for number, (name, bandwidth) in enumerate(roof.bandwidths):
        ridge = roof.peak * 1e3 / bandwidth
        start = max(_FIRST, roof.peak * _TOP / 10**_SPAN * 1e3 / bandwidth)
        points = [(start, roof.limit(start, name)), (min(ridge, last), roof.limit(ridge, name))]
        path = "L".join(f"{_x(x):.1f} {_y(y, roof):.1f}" for x, y in points)
        parts.append(f'<path class="roof" d="M{path}"/>')
        # Lines are near each other: each name has a height of its own, the lowest line's the least.
        part = (number + 1) / (len(roof.bandwidths) + 1)
        place = start * (min(ridge, last) / start) ** part
        x, y = _x(place), _y(roof.limit(place, name), roof)
        side, anchor = (-10, "end") if number else (14, "start")
        told = f"{name} {bandwidth:,.0f} GB/s"
        parts.append(f'<text x="{x + side:.1f}" y="{y:.1f}" text-anchor="{anchor}">{told}</text>')
    y = _y(roof.peak, roof)
    first = min(roof.peak * 1e3 / bandwidth for _, bandwidth in roof.bandwidths)
    parts.append(f'<path class="roof" d="M{_x(first):.1f} {y:.1f}H{_WIDTH - 8}"/>')
    told = f"matrix cores {roof.peak:,.0f} TFLOP/s"
    parts.append(f'<text x="{_WIDTH - 8}" y="{y - 6:.1f}" text-anchor="end">{told}</text>')
    return parts


def _x(intensity: float) -> float:
    share = log10(max(intensity, _FIRST) / _FIRST) / _DECADES
    return _LEFT + min(share, 1.0) * (_WIDTH - 8 - _LEFT)


def _y(tflops: float, roof: Roof) -> float:
    share = (log10(max(tflops, 1e-9)) - log10(roof.peak * _TOP) + _SPAN) / _SPAN
    return _HEIGHT - _BOTTOM - min(max(share, 0.0), 1.0) * (_HEIGHT - _BOTTOM - 14)

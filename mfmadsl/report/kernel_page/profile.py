"""A page about one kernel's profile, or about two kernels side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mfmadsl.emulator.profiler.advice import advice_on, headline
from mfmadsl.report.html import page
from mfmadsl.report.kernel_page.listing import listing
from mfmadsl.report.kernel_page.roofline import Point, Roof, point_of, roof_of, roofline_svg
from mfmadsl.report.kernel_page.waves import COLOURS, waves_svg

if TYPE_CHECKING:
    from mfmadsl.emulator.profiler import Profile


@dataclass(frozen=True)
class Profiled:
    """A profile, the assembly text that it is of, its launch, and what else is known of it."""

    profile: Profile
    assembly: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    facts: Mapping[str, str] = field(default_factory=dict)
    title: str = ""
    """By what it is told from another one; its symbol if nothing else."""


@dataclass(frozen=True)
class _Row:
    """A figure of each kernel, as text, and how many times the second one's is the first one's."""

    name: str
    values: tuple[str, ...]
    ratio: str


_Figure = tuple[str, Callable[[Profiled], float], str]
_FIGURES: tuple[_Figure, ...] = (
    ("time, us, modelled", lambda x: x.profile.on_chip.seconds * 1e6, "{:,.1f}"),
    ("TFLOP/s, modelled", lambda x: x.profile.on_chip.tflops, "{:,.1f}"),
    ("clock, MHz, modelled", lambda x: x.profile.on_chip.clock, "{:,.0f}"),
    ("from HBM, MB", lambda x: x.profile.on_chip.traffic.memory / 1e6, "{:,.2f}"),
    ("from L2, MB", lambda x: x.profile.on_chip.traffic.requested / 1e6, "{:,.2f}"),
    ("stored, MB", lambda x: x.profile.on_chip.traffic.stored / 1e6, "{:,.2f}"),
    ("launches", lambda x: x.profile.on_chip.launches, "{:,.0f}"),
    ("rounds of workgroups", lambda x: x.profile.on_chip.rounds, "{:,.0f}"),
    ("cycles of a compute unit, modelled", lambda x: x.profile.timing.cycles, "{:,.0f}"),
    ("instructions of a wave", lambda x: x.profile.whole.total, "{:,.0f}"),
    ("LDS cycles of conflicts", lambda x: x.profile.whole.lds_conflict_cycles, "{:,.0f}"),
    ("spilled registers", lambda x: x.profile.registers.spilled, "{:,.0f}"),
)


def profile_page(kernels: Sequence[Profiled]) -> str:
    """HTML that needs nothing else, about one kernel or two."""
    return page(
        "profile.html.jinja",
        kernels=[_kernel(each, letter) for each, letter in zip(kernels, "AB", strict=False)],
        rows=[_row(figure, kernels) for figure in _FIGURES],
        rooflines=_rooflines(kernels),
        colours=COLOURS,
    )


def _rooflines(kernels: Sequence[Profiled]) -> list[str]:
    """One for all kernels under the same roof; none for those without matrix instructions."""
    found: dict[Roof, list[Point]] = {}
    for letter, each in zip("AB", kernels, strict=False):
        roof = roof_of(each.profile.on_chip)
        if roof is not None:
            name = f"{letter}: {each.title}" if len(kernels) > 1 else each.profile.symbol
            found.setdefault(roof, []).append(point_of(name, each.profile.on_chip))
    return [roofline_svg(roof, points) for roof, points in found.items()]


def _row(figure: _Figure, kernels: Sequence[Profiled]) -> _Row:
    name, value, form = figure
    values = [value(each) for each in kernels]
    ratio = f"{values[1] / values[0]:.2f}" if len(values) > 1 and values[0] else ""
    return _Row(name, tuple(form.format(each) for each in values), ratio)


def _kernel(kernel: Profiled, letter: str) -> dict[str, object]:
    profile = kernel.profile
    product, chip = profile.on_chip.product, profile.chip
    lines = listing(profile, kernel.assembly)
    sections = {"main loop": profile.loop, "whole": profile.whole}
    return {
        "letter": letter,
        "name": kernel.title or profile.symbol,
        "facts": {
            **kernel.facts,
            "launch": f"{_extents(kernel.grid)} workgroups of {_extents(kernel.block)} threads",
            "chip": f"{product.name} ({chip.name}): {product.dies} dies with "
            f"{product.compute_units} compute units in all",
            "limited by": profile.on_chip.limit,
            "occupancy": f"limited by {profile.occupancy.limit}",
        },
        "bars": _bars(profile),
        "shares": sorted(profile.on_chip.shares.items(), key=lambda item: -item[1]),
        "headline": headline(profile),
        "advice": [each.text for each in advice_on(profile)],
        "limits": profile.limits,
        "mixes": {
            name: _mix(section.instructions) for name, section in sections.items() if section
        },
        "waves": waves_svg(profile),
        "lines": lines,
        "loop": profile.loop.lines[0] if profile.loop else 0,
        "most": max((line.cycles for line in lines), default=0) or 1,
    }


def _extents(extents: Sequence[int]) -> str:
    return " x ".join(map(str, extents))


@dataclass(frozen=True)
class _Bar:
    """How much of what the chip has is used."""

    name: str
    used: int
    most: int
    unit: str


def _bars(profile: Profile) -> list[_Bar]:
    chip, held = profile.chip, profile.occupancy
    return [
        _Bar("vector registers", profile.allocated, chip.registers, "a lane"),
        _Bar("LDS", profile.lds_bytes * held.groups, chip.lds_bytes, "bytes a compute unit"),
        _Bar("waves", held.waves_per_simd, chip.waves_per_simd, "a SIMD"),
    ]


def _mix(instructions: Mapping[str, int]) -> list[tuple[str, int, float]]:
    """Kinds of instructions, their number, and the share of all."""
    total = max(1, sum(instructions.values()))
    most_first = sorted(instructions.items(), key=lambda item: -item[1])
    return [(kind, count, count / total) for kind, count in most_first]

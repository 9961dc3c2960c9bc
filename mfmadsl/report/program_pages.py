"""Pages about the kernels that a program has launched: an index, and a page and a text for each."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mfmadsl.report.html import page
from mfmadsl.report.kernel_page import Profiled, faults_page, profile_page
from mfmadsl.report.sarif import Located, sarif_json

if TYPE_CHECKING:
    from mfmadsl.device.launch import LaunchRecord
    from mfmadsl.emulator.error import Fault

INDEX = "index.html"
_PLAIN = re.compile(r"\W+", re.ASCII)
_LONGEST = 60  # letters of a name in a file's name


@dataclass(frozen=True)
class _Kind:
    """Launches of one kernel with the same extents."""

    launches: tuple[LaunchRecord, ...]
    stem: str

    @property
    def first(self) -> LaunchRecord:
        return self.launches[0]

    @property
    def seconds(self) -> float:
        return sum(launched.modelled or 0.0 for launched in self.launches)

    @property
    def faults(self) -> dict[Fault, int]:
        """Each with how many launches it was found in."""
        found: dict[Fault, int] = {}
        for launched in self.launches:
            for fault in launched.faults:
                found[fault] = found.get(fault, 0) + 1
        return found


def program_pages(
    launches: Sequence[LaunchRecord], calls: Sequence[Fault] = (), folder: Path = Path()
) -> Mapping[str, str]:
    """Files by their names: `index.html`, a page and the assembly text of each kernel and its
    extents, and `faults.sarif`, whose lines are those of the texts in the `folder`. `calls` are
    faults of calls of HIP."""
    kinds = _kinds(launches)
    files: dict[str, str] = {}
    found = []
    for kind in kinds:
        files[f"{kind.stem}.s"] = kind.first.assembly
        if kind.first.profile is not None:
            files[f"{kind.stem}.html"] = _profile(kind)
        if kind.faults:
            files[f"{kind.stem}-faults.html"] = faults_page(
                kind.first.symbol, [kind.first.assembly], list(kind.faults),
                list(kind.faults.values()), 0,
            )  # fmt: skip
        text = str(folder / f"{kind.stem}.s")
        found += [Located(kind.first.symbol, text, fault) for fault in kind.faults]
    found += [Located("HIP", str(folder / INDEX), fault, text=False) for fault in calls]
    files["faults.sarif"] = sarif_json(found)
    files[INDEX] = _index(kinds, calls)
    return files


def _kinds(launches: Sequence[LaunchRecord]) -> list[_Kind]:
    """Those that take most of the time first."""
    alike: dict[tuple[object, ...], list[LaunchRecord]] = {}
    for each in launches:
        key = each.symbol, each.assembly, each.grid, each.block, each.lds_bytes
        alike.setdefault(key, []).append(each)
    most_first = sorted(alike.values(), key=lambda own: -sum(x.modelled or 0.0 for x in own))
    return [
        _Kind(tuple(own), f"{number:03}-{_PLAIN.sub('_', own[0].symbol)[:_LONGEST]}")
        for number, own in enumerate(most_first, 1)
    ]


def _profile(kind: _Kind) -> str:
    first = kind.first
    assert first.profile is not None
    facts = {"launches": str(len(kind.launches))}
    return profile_page([Profiled(first.profile, first.assembly, first.grid, first.block, facts)])


def _index(kinds: Sequence[_Kind], calls: Sequence[Fault]) -> str:
    total = sum(kind.seconds for kind in kinds)
    rows = [
        {
            "symbol": kind.first.symbol,
            "grid": " x ".join(map(str, kind.first.grid)),
            "block": " x ".join(map(str, kind.first.block)),
            "launches": len(kind.launches),
            "microseconds": f"{kind.seconds * 1e6:,.1f}",
            "share": kind.seconds / total if total else 0.0,
            "limit": kind.first.profile.on_chip.limit if kind.first.profile else "",
            "page": f"{kind.stem}.html" if kind.first.profile else "",
            "text": f"{kind.stem}.s",
            "faults": len(kind.faults),
            "faults_page": f"{kind.stem}-faults.html" if kind.faults else "",
        }
        for kind in kinds
    ]
    launches = sum(len(kind.launches) for kind in kinds)
    told = f"{total * 1e6:,.1f}"
    return page("program.html.jinja", rows=rows, launches=launches, total=told, calls=calls)

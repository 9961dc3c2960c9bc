"""What the installed package asks for: names of distributions, and the versions that do."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version

_FORM = re.compile(r"([A-Za-z0-9._-]+)\s*(?:\[([^\]]*)\])?\s*\(?([^;)]*)\)?\s*(?:;(.*))?")
_BOUND = re.compile(r"(>=|<)\s*([0-9.]+)")
_EXTRA = re.compile(r"extra\s*==\s*['\"]([^'\"]+)['\"]")


@dataclass(frozen=True)
class PackageRequirement:
    """A distribution, bounds of its version such as `>=0.27,<0.28`, the extra that asks for it, and
    which extras of it are meant."""

    name: str
    bounds: str = ""
    extra: str | None = None
    extras: tuple[str, ...] = ()

    def complaint(self) -> str:
        """What is wrong with the installed version, or nothing; raises PackageNotFoundError."""
        found = version(self.name)
        fits = all(
            _numbers(found) >= _numbers(bound)
            if sign == ">="
            else _numbers(found) < _numbers(bound)
            for sign, bound in _BOUND.findall(self.bounds)
        )
        return "" if fits else f"{found} is installed, {self.bounds} is needed"


def requirements() -> tuple[PackageRequirement, ...] | None:
    """Those of the installed mfmadsl; None where it is not installed, but run from its folder."""
    try:
        lines = requires("mfmadsl") or []
    except PackageNotFoundError:
        return None
    return tuple(found for line in lines if (found := _read(line)) is not None)


def installed(name: str) -> str | None:
    """The version of a distribution, None if there is none."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _read(line: str) -> PackageRequirement | None:
    form = _FORM.fullmatch(line.strip())
    if form is None:
        return None
    name, extras, bounds, marker = form.groups()
    extra = _EXTRA.search(marker or "")
    within = tuple(each.strip() for each in (extras or "").split(",") if each.strip())
    return PackageRequirement(name.lower(), bounds.strip(), extra[1] if extra else None, within)


def _numbers(text: str) -> tuple[int, ...]:
    """The leading numbers of a version: (0, 27, 0) of 0.27.0.post1."""
    found = re.match(r"[0-9.]*[0-9]", text)
    return tuple(map(int, found[0].split("."))) if found else ()

"""Reading `.mfma` files for a command, which ends if they have mistakes."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

import click

from mfmadsl.cli.failure import fail
from mfmadsl.language import Diagnostic, LanguageError, SpecFileError, load_entries
from mfmadsl.language import find as find_intrinsic
from mfmadsl.model import ARCHITECTURES, Accelerator, Intrinsic

Problem = Diagnostic | SpecFileError

ARCH = click.Choice(list(ARCHITECTURES))


def loaded(
    paths: Iterable[Path], search: tuple[Path, ...]
) -> tuple[list[Intrinsic | Accelerator], list[Problem]]:
    """What all files describe, and all of their mistakes."""
    described: list[Intrinsic | Accelerator] = []
    problems: list[Problem] = []
    for path in paths:
        try:
            entries = load_entries(path, search)
            described += [*entries.intrinsics, *entries.accelerators]
        except (LanguageError, SpecFileError) as error:
            problems += problems_of(error)
    # Files that use the same broken file find the same mistakes in it.
    return described, list(dict.fromkeys(problems))


def problems_of(error: LanguageError | SpecFileError) -> list[Problem]:
    return [error] if isinstance(error, SpecFileError) else list(error.diagnostics)


def load_all(paths: Iterable[Path], search: tuple[Path, ...] = ()) -> list[Intrinsic | Accelerator]:
    """What all files describe; with a mistake in any, all mistakes and the end."""
    described, problems = loaded(paths, search)
    if problems:
        refuse(problems)
    return described


def refuse(problems: list[Problem]) -> NoReturn:
    told = [f"error: {p}" if isinstance(p, SpecFileError) else str(p) for p in problems]
    count = sum(isinstance(p, SpecFileError) or p.code != "stopped" for p in problems)
    more = " and more" * (count < len(problems))
    mistakes = f"{count} mistake{'s' * (count > 1)}{more}"
    click.echo("\n\n".join([*told, mistakes]), err=True)
    sys.exit(1)


def find(name: str, spec: Path | None = None, arch: str | None = None) -> Intrinsic:
    if spec is not None:
        found = [entry for entry in load_all([spec]) if isinstance(entry, Intrinsic)]
        for intrinsic in found:
            if intrinsic.is_called(name):
                return intrinsic
        fail(f"{spec} has no `{name}`, but: {', '.join(i.name for i in found) or 'nothing'}")
    try:
        return find_intrinsic(name, arch)
    except ValueError as error:
        fail(str(error))

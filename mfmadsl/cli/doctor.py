"""`mfmadsl doctor`: what works here, and what to do about the rest."""

from __future__ import annotations

import json
import sys

import click

from mfmadsl.cli.choice import Choice


@click.command()
@click.option("--format", "form", type=Choice(["text", "json"]), default="text", show_default=True)
def doctor(form: str) -> None:
    """Tell whether all is there and works, and what to do if not.

    Ends with 1 if something is broken that the main job needs: from a .mfma file to a kernel that
    is emulated. What only some commands need is told, too.
    """
    from mfmadsl.doctor import doctor_json, doctor_text, examine, works

    findings = examine()
    if form == "json":
        click.echo(json.dumps(doctor_json(findings), indent=2))
    else:
        click.echo(doctor_text(findings))
    sys.exit(0 if works(findings) else 1)

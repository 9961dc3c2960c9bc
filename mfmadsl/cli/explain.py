"""`mfmadsl --explain CODE`: what docs/diagnostics.md says about a code."""

from __future__ import annotations

from typing import Any

import click

from mfmadsl.cli.completion import codes
from mfmadsl.cli.failure import fail
from mfmadsl.cli.mistakes import sections


def _explain(context: click.Context, parameter: click.Parameter, code: Any) -> None:
    if code is None or context.resilient_parsing:
        return
    from mfmadsl.nearest import did_you_mean

    known = sections()
    asked = str(code).strip().removeprefix("error[").removesuffix("]").lower()
    if asked not in known:
        near = did_you_mean(asked, list(known))
        listed = "" if near.startswith("there are") else f"\nthere are: {', '.join(sorted(known))}"
        fail(f"no mistake has the code `{asked[:60]}`: {near}{listed}")
    click.echo(f"{asked}\n\n{known[asked]}")
    context.exit()


explain_option = click.option(
    "--explain",
    metavar="CODE",
    is_eager=True,
    expose_value=False,
    callback=_explain,
    shell_complete=codes,
    help="Explain a mistake by its code, such as `collision`, and show an example.",
)

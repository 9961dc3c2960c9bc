"""Options that take one of some words."""

from __future__ import annotations

from typing import Any

import click

from mfmadsl.nearest import or_meant


class Choice(click.Choice[str]):
    """One of some words; of another it is said which was meant."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The choice that the text names. Raises BadParameter with the nearest one."""
        try:
            return str(super().convert(value, param, ctx))
        except click.BadParameter as error:
            told = error.message.rstrip(".")
            raise click.BadParameter(
                told + or_meant(str(value), self.choices), ctx, param
            ) from None

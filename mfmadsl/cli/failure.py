"""How a command ends: what it prints as JSON, and how it tells what is wrong."""

from __future__ import annotations

import json
import sys
from typing import Any, NoReturn

import click


def print_json(value: Any) -> None:
    click.echo(json.dumps(value, indent=2))


def fail(message: str) -> NoReturn:
    """The input is wrong: say it, and end with 1."""
    click.echo(f"error: {message}", err=True)
    sys.exit(1)

"""How a command ends: what it prints as JSON, and how it tells what is wrong."""

from __future__ import annotations

import errno
import sys
from contextlib import suppress
from typing import Any, NoReturn

import click

from mfmadsl.error import MfmadslError

_INTERRUPTED = 130  # 128 and the number of SIGINT, as shells have it


def print_json(value: Any) -> None:
    """Print a value as JSON, as all commands do."""
    from mfmadsl.report.formats import as_json

    click.echo(as_json(value))


def fail(message: str) -> NoReturn:
    """The input is wrong: say it, and end with 1."""
    with suppress(OSError):  # nobody can be told, but the exit code still says it
        click.echo(f"error: {message}", err=True)
    sys.exit(1)


class Commands(click.Group):
    """Commands that end in an exit code and a line, whatever happens to them.

    0, 1 if the input is wrong, 2 if the call is wrong, 130 after an interrupt. Output that nobody
    reads any more (`| head -1`) is 1 without a word.
    """

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. Raises SystemExit, with the code that tells what went wrong."""
        try:
            return super().invoke(ctx)
        except MfmadslError as error:
            fail(str(error))
        except MemoryError as error:
            fail(f"out of memory: {error}" if str(error) else "out of memory")
        except RecursionError:
            fail("the input is nested too deeply")
        except KeyboardInterrupt:
            with suppress(OSError):
                click.echo("interrupted", err=True)
            sys.exit(_INTERRUPTED)
        except OSError as error:
            sys.exit(_told(error))

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run the command line, and end the process with its exit code. Raises SystemExit."""
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="backslashreplace")  # names of files may be no text
        try:
            return super().main(*args, **kwargs)
        except SystemExit as end:
            code = end.code
        except OSError as error:  # an option's own text, or a usage error, cannot be written
            code = _told(error)
        sys.exit(code)


def _told(error: OSError) -> int:
    """Say what the system would not do; the exit code. Whoever closed a pipe knows it already."""
    if error.errno != errno.EPIPE:
        where = f"{error.filename}: " if error.filename else "cannot write: "
        with suppress(OSError):
            click.echo(f"error: {where}{error.strerror or error}", err=True)
    return 1

"""`mfmadsl explore`: the library as one page to look at."""

from __future__ import annotations

import webbrowser
from pathlib import Path

import click

from mfmadsl.cli.failure import fail
from mfmadsl.cli.specs import OUTPUT, SEARCH, load_all
from mfmadsl.cli.write import write_text
from mfmadsl.language import library, library_files, microkernels
from mfmadsl.language.excerpt import entry_texts
from mfmadsl.model import Intrinsic, Microkernel


@click.command()
@click.argument("specs", nargs=-1, type=click.Path(path_type=Path))
@SEARCH
@click.option(
    "-o",
    "--output",
    type=OUTPUT,
    default=Path("mfmadsl.html"),
    metavar="FILE",
    show_default=True,
    help="Where to write it.",
)
@click.option("--open", "opened", is_flag=True, help="Show it in the browser.")
def explore(
    specs: tuple[Path, ...], search: tuple[Path, ...], output: Path, opened: bool
) -> None:  # fmt: skip
    """Write a page in which layouts are looked at: of .mfma files, or of the library."""
    if search and not specs:
        raise click.UsageError("-I needs files: where is what `use` names looked for?")
    from mfmadsl.report.explorer import explorer_page, library_exports

    described = [*library().values(), *microkernels().values()]
    if specs:
        described = [
            each for each in load_all(specs, search) if isinstance(each, Intrinsic | Microkernel)
        ]
        if not described:
            fail("the files describe no instruction: there is nothing to explore")
    texts = {}
    for path in specs or library_files():
        texts.update(entry_texts(path, search))
    text = explorer_page(
        [each for each in described if isinstance(each, Intrinsic)],
        [each for each in described if isinstance(each, Microkernel)],
        texts,
        {} if specs else library_exports(),
    )
    write_text(output, text)
    count = f"{len(described)} entr{'y' if len(described) == 1 else 'ies'}"
    click.echo(f"{output}: {count}, {len(text.encode()) / 1e6:.2f} MB")
    if opened and not webbrowser.open(output.resolve().as_uri()):
        fail(f"no browser is found: open {output} in one")

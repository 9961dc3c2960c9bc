"""`mfmadsl tune`: the tilings of a product measured, and kept for `gemm_tiling`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mfmadsl.cli.failure import fail, print_json
from mfmadsl.cli.gemm_options import gemm_of, product_options, weight_options
from mfmadsl.cli.specs import format_option, product_asked
from mfmadsl.error import ArgumentError, MfmadslError
from mfmadsl.report.trial import trial_json, trial_line

if TYPE_CHECKING:
    from mfmadsl.tune import Trial
    from mfmadsl.tune.measure import Measure


@click.command()
@product_options
@weight_options
@click.option(
    "--database",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    metavar="FOLDER",
    help="Where to keep what is measured; MFMADSL_TUNED=FOLDER makes use of it.",
)
@click.option(
    "--trials", type=click.IntRange(1), default=20, show_default=True, help="Tilings to measure."
)
@click.option(
    "--gpu", is_flag=True, help="Measure on the GPU of this machine, not in the chip's model."
)
@click.option(
    "--tracker", metavar="HOST:PORT", help="Measure on servers that this tracker of TVM's knows."
)
@click.option("--key", help="Which servers of the tracker.")
@format_option(("text", "json"))
def tune(
    folder: Path,
    trials: int,
    gpu: bool,
    tracker: str | None,
    key: str | None,
    form: str,
    arch: str,
    **product: Any,
) -> None:
    """Measure the tilings of a product that should be the fastest, and keep what was found.

    It ends with 1 if some of them could not be measured.
    """
    if (tracker is None) != (key is None):
        raise click.UsageError("--tracker and --key go together: where, and which servers?")
    if gpu and tracker is not None:
        raise click.UsageError("--gpu or --tracker: where is it to be measured?")
    from mfmadsl.tune import Database
    from mfmadsl.tune import tune as search

    problem = gemm_of(arch, **product)

    def told(trial: Trial) -> None:
        if form == "text":
            click.echo(trial_line(trial))

    try:
        measure, at_once = _measure(gpu, tracker, key)
        found = search(
            problem.workload(), Database(folder), arch, trials=trials, measure=measure,
            at_once=at_once, told=told,
        )  # fmt: skip
    except MfmadslError as error:
        fail(str(error))
    if form == "json":
        print_json([trial_json(trial) for trial in found])
    if form == "text" and found[0].seconds is not None:
        click.echo(f"best       {trial_line(found[0])}")
    if left := [trial for trial in found if trial.is_left]:
        fail(
            f"{len(left)} of {len(found)} tilings could not be measured: {left[-1].failure}; what "
            f"was measured is kept in {folder}: call it again for the rest"
        )
    if found[0].seconds is None:
        fail("no tiling could be measured: of none a kernel can be built")


def _measure(gpu: bool, tracker: str | None, key: str | None) -> tuple[Measure, int]:
    """How to measure, and how many kernels at once."""
    from mfmadsl.tune import by_model, on_gpu, on_servers
    from mfmadsl.tune.fleet import read_place
    from mfmadsl.tune.tracker import servers

    if tracker is None or key is None:
        return (on_gpu() if gpu else by_model(product_asked())), 1
    try:
        place = read_place(tracker)
    except ArgumentError as error:
        raise click.UsageError(str(error)) from None
    count = servers(place, key)
    if not count:
        fail(
            f"the tracker {tracker} knows no server of {key}: start some with `python -m "
            f"tvm.exec.rpc_server --tracker {tracker} --key {key}`"
        )
    return on_servers(place, key, lambda said: click.echo(said, err=True)), count

"""A GEMM's result beside NumPy's, from the emulator or from a GPU, as lines and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mfmadsl.report.run import caveats

if TYPE_CHECKING:
    from mfmadsl.comparison import Comparison
    from mfmadsl.gemm import Gemm
    from mfmadsl.hip.bench import Bench


def comparison_lines(how: str, comparison: Comparison, problem: Gemm) -> list[str]:
    """Whether it agrees, and how far it is off; `how` says what computed it."""
    verdict = "agrees with" if comparison.agrees else "DIFFERS from"
    return [
        f"{how:10} {verdict} NumPy in float64: largest error {comparison.error:.3g} "
        f"at C{comparison.place}, tolerance {comparison.tolerance:.3g} ({problem.tolerance.rule})",
        *(f"           {line}" for line in caveats(comparison.approximate, comparison.trusted)),
    ]


def comparison_json(comparison: Comparison) -> dict[str, Any]:
    """A comparison as JSON."""
    return {
        "largest_error": comparison.error,
        "tolerance": comparison.tolerance,
        "agrees": comparison.agrees,
        "approximate": list(comparison.approximate),
        "trusted": list(comparison.trusted),
    }


def bench_lines(bench: Bench, problem: Gemm) -> list[str]:
    """The run, and its time where it was timed."""
    lines = [
        *comparison_lines("run", bench.comparison, problem),
        f"device     {bench.ran.device}, {bench.ran.arch}",
    ]
    if bench.ran.seconds and not bench.ran.tells_time:
        lines.append(
            f"time       {bench.ran.median_seconds:.3f} s of the emulator: `mfmadsl device "
            "--profile FILE` tells the model's"
        )
    elif bench.ran.seconds:
        seconds, peak = bench.ran.median_seconds, bench.peak_flops / 1e12
        lines.append(
            f"time       {seconds * 1e6:.1f} us, the median of {len(bench.ran.seconds)}; "
            f"{bench.flops_per_second / 1e12:.1f} TFLOP/s, {bench.share_of_peak:.1%} of the "
            f"{peak:.0f} of {bench.product.name}"
        )
    return lines


def bench_json(bench: Bench) -> dict[str, Any]:
    """With `seconds`, the median, and what follows from it null where nothing was timed, or by an
    emulator that tells its own time."""
    timed = bool(bench.ran.seconds) and bench.ran.tells_time
    return {
        "device": bench.ran.device,
        "arch": bench.ran.arch,
        "largest_error": bench.comparison.error,
        "tolerance": bench.comparison.tolerance,
        "agrees": bench.comparison.agrees,
        "seconds": bench.ran.median_seconds if timed else None,
        "flops_per_second": bench.flops_per_second if timed else None,
        "share_of_peak": bench.share_of_peak if timed else None,
    }

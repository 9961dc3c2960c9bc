"""Ten GEMM kernels for B200, from one MMA to a pair of CTAs with roles; no B200 is needed.

    python examples/blackwell_gemm/run.py [--step v7] [--sms 2] [--json FILE] [--svg FILE]

All of it takes 40 seconds on two cores. Every kernel is executed by the interpreter, which checks
its numbers and its synchronisation, and is lowered for sm_100a and compiled where an nvcc is.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

# Python put this script's folder here; what it imports is named from the root on.
sys.path[0] = str(Path(__file__).resolve().parents[2])

from examples.blackwell_gemm.check import Check, check
from examples.blackwell_gemm.kernels.problem import SMS
from examples.blackwell_gemm.ladder import STEPS, Step
from examples.blackwell_gemm.lower import ARCH, Lowered, lower
from examples.blackwell_gemm.model import kib_distinct, kib_loaded, limit, share
from examples.blackwell_gemm.plot import svg
from examples.figure import NoPlotError
from examples.nvcc import TO_INSTALL, Cubin, NvccError, compile_cubin, find_nvcc
from examples.options import add_step, check_outputs
from examples.process import exit_code
from mfmadsl.output import OutputError, write_file


@dataclass(frozen=True)
class Row:
    """What the run finds of a step; without an nvcc there is no cubin."""

    step: Step
    check: Check
    lowered: Lowered
    cubin: Cubin | None
    latency: float

    def text(self) -> str:
        """A line of the table."""
        held = self.cubin
        registers = "-" if held is None else str(held.registers)
        spills = "-" if held is None else f"{held.spill_stores}+{held.spill_loads}"
        return (
            f"{self.step.name:<5}{self.step.new:<22}{'right' if self.check.right else 'WRONG':<7}"
            f"{self.lowered.threads:>5}{registers:>6}{spills:>7}{self.lowered.shared_bytes:>8}"
            f"{kib_loaded(self.step):>7.1f}{kib_distinct(self.step):>6.1f}"
            f"{share(self.step, self.latency):>7.0%}  {limit(self.step, self.latency)}"
        )

    def record(self) -> dict[str, object]:
        """For programs."""
        held = self.cubin
        return {
            "kernel": self.step.name,
            "new": self.step.new,
            "right": self.check.right,
            "checked": list(self.check.size),
            "error_of_allowed": self.check.worst,
            "faults": [str(fault) for fault in self.check.faults],
            "executed": asdict(self.check.counts),
            "compiled": list(self.step.compile),
            "threads": self.lowered.threads,
            "shared_bytes": self.lowered.shared_bytes,
            "registers": None if held is None else held.registers,
            "spill_stores": None if held is None else held.spill_stores,
            "spill_loads": None if held is None else held.spill_loads,
            "kib_loaded": kib_loaded(self.step),
            "kib_distinct": kib_distinct(self.step),
            "share": share(self.step, self.latency),
            "limit": limit(self.step, self.latency),
        }


HEAD = (
    f"{'':<5}{'new':<22}{'':<7}{'thr.':>5}{'reg.':>6}{'spills':>7}{'shared':>8}"
    f"{'loaded':>7}{'HBM':>6}{'MMA':>7}  limit"
)
LEGEND = """\
spills: bytes of stores + loads. shared: bytes a CTA. loaded: KiB into shared memory for each
128 x 128 x 64 of products. HBM: KiB of them that differ among all SMs' first tiles.
MMA: of a CTA's time, what the tensor core works in, if a trip through memory takes as long as
{latency:g} such products (a model; see README.md). limit: what it waits for otherwise."""


def rows(steps: Sequence[Step], sms: int, latency: float) -> Iterator[Row]:
    """Of each of these steps, as soon as it is known.

    Raises:
        NvccError: nvcc does not take a kernel.
        ValueError: a kernel does not handle so many SMs.
    """
    nvcc = find_nvcc()
    print(f"compiled by {nvcc}" if nvcc else f"no nvcc that knows sm_100a: {TO_INSTALL}")
    with ThreadPoolExecutor(1) as beside:  # nvcc runs beside the interpreter
        lowered = [lower(step.kernel(step.compile)) for step in steps]
        cubins = [
            beside.submit(compile_cubin, x.source, ARCH, nvcc) if nvcc else None for x in lowered
        ]
        try:
            for step, code, cubin in zip(steps, lowered, cubins, strict=True):
                checked = check(step, sms)
                yield Row(step, checked, code, cubin.result() if cubin else None, latency)
        finally:
            beside.shutdown(wait=False, cancel_futures=True)


def arguments() -> argparse.Namespace:
    """Of the command line."""
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").partition("\n")[0] + " All of it takes 40 seconds on two cores."
    )
    add_step(parser, [step.name for step in STEPS])
    parser.add_argument(
        "--sms", type=int, default=2, help="SMs of the chip in the interpreter; 2 if not given"
    )
    parser.add_argument(
        "--latency", type=float, default=4.0,
        help="of memory in the model, in MMAs of 128 x 128 x 64; 4 if not given",
    )  # fmt: skip
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what is printed as JSON")
    parser.add_argument(
        "--svg", type=Path, metavar="FILE", default=Path("blackwell_gemm.svg"),
        help="where the plot goes; blackwell_gemm.svg if not given",
    )  # fmt: skip
    given = parser.parse_args()
    if given.sms not in range(2, SMS + 1, 2):
        parser.error(
            f"--sms takes 2 to {SMS}, an even number, since v9 and v10 take pairs: {given.sms}"
        )
    if not 0 <= given.latency <= 1000:
        parser.error(f"--latency takes a number from 0 to 1000: {given.latency}")
    if given.json == given.svg:
        parser.error(f"--json and --svg are both {given.json}")
    return given


def main() -> int:
    """Execute, compile, print; 1 if a number is wrong or a kernel does not compile."""
    given = arguments()
    found: list[Row] = []
    try:
        check_outputs(given.json, given.svg)
        steps = [step for step in STEPS if not given.step or step.name in given.step]
        for row in rows(steps, given.sms, given.latency):
            if not found:
                print(HEAD)
            found.append(row)
            print(row.text(), flush=True)
            for fault in row.check.faults:
                print(f"     {fault}")
    except (NvccError, OutputError) as error:
        print(error, file=sys.stderr)
        return 1
    print(LEGEND.format(latency=given.latency))
    if given.json is not None:
        text = json.dumps([row.record() for row in found], indent=2) + "\n"
        write_file(given.json, text.encode())
    try:
        write_file(given.svg, svg(STEPS, given.latency))
        print(f"the plot is in {given.svg}")
    except NoPlotError:
        print("no plot without matplotlib: pip install matplotlib")
    return 0 if all(row.check.right for row in found) else 1


if __name__ == "__main__":
    sys.exit(exit_code(main))

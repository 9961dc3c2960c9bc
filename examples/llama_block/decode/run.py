"""Time of a token in a block of Llama 3 with weights of four bits, by kernel, in the chip model.

    python examples/llama_block/decode/run.py [--model 8b] [--arch gfx942] [--known 1024]

The block is compiled by TVM and run on the emulated GPU, and its results are compared with NumPy's.
Exit codes: 0, 1 if a number is wrong or a kernel is at fault, 2 if the call is wrong.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))  # `examples`

import tvm

import mfmadsl
from examples.llama_block.decode.model import MODELS, Sizes, module
from examples.llama_block.decode.reference import Array, arguments, expected
from examples.process import exit_code
from mfmadsl.device import Ended, Options, run_program
from mfmadsl.model import ARCHITECTURES, GpuProduct

_MOST_ERROR = 2**-7  # of the largest element: float16 between kernels


@dataclass(frozen=True)
class Line:
    """A launch: its time in seconds, and the bytes that it cannot do without."""

    kernel: str
    seconds: float
    memory: int


def main(call: Sequence[str] | None = None) -> int:
    """Compile, run, print the table; the exit code."""
    asked = _parsed(call)
    sizes = MODELS[asked.model]
    given = arguments(sizes, asked.known)
    with tempfile.TemporaryDirectory(prefix="decode-") as name:
        folder = Path(name)
        executable = tvm.compile(
            module(sizes), mfmadsl.target(asked.arch), relax_pipeline="mfmadsl",
            tir_pipeline="mfmadsl",
        )  # fmt: skip
        executable.export_library(str(folder / "rocm.so"))
        np.savez(folder / "arguments.npz", allow_pickle=False, **given)
        program = [sys.executable, str(Path(__file__).with_name("step.py")), "rocm", name]
        options = Options(asked.arch, sanitize=asked.sanitize, profile=not asked.sanitize)
        ended = run_program(program, options)
        if ended.exit_code:
            print("the program on the emulated GPU failed", file=sys.stderr)
            return 1
        with np.load(folder / "results.npz") as stored:
            errors = _errors(expected(sizes, given), [stored[n] for n in ("y", "key", "value")])
    if not asked.sanitize:
        print(_table(_lines(sizes, asked.known, ended), ended.product))
    print("errors, of the largest element: "
          + ", ".join(f"{n} {e:.1e}" for n, e in errors.items()))  # fmt: skip
    faults = sum(len(launched.faults) for launched in ended.launches)
    print(f"{len(ended.launches)} launches on the emulated {ended.product.name}, {faults} faults")
    return int(faults > 0 or not all(error <= _MOST_ERROR for error in errors.values()))


def _parsed(call: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Time of a token in a block of Llama 3.")
    parser.add_argument("--model", choices=list(MODELS), default="8b")
    parser.add_argument("--arch", choices=list(ARCHITECTURES), default="gfx942")
    parser.add_argument("--known", type=_positive, default=1024, help="tokens, with the new one")
    parser.add_argument(
        "--sanitize", action="store_true", help="look for faults instead of modelling times"
    )
    return parser.parse_args(call)


def _positive(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text} is no number of tokens: 1, 2, 3, ...")
    return int(text)


def _errors(wanted: Sequence[Array], found: Sequence[Array]) -> dict[str, float]:
    return {
        name: float(np.abs(got.astype(np.float64) - exact).max() / np.abs(exact).max())
        for name, exact, got in zip(("y", "key", "value"), wanted, found, strict=True)
    }


def _lines(sizes: Sizes, known: int, ended: Ended) -> list[Line]:
    """A line for each launch, with the bytes of the weights, keys or values that it reads. The
    second kernel of a product, which adds up parts of K, reads none."""
    cached = known * sizes.key_heads * sizes.head * 2
    memory = {"attention": 2 * cached}
    for name, (n, k) in sizes.products.items():
        memory[f"{name}_NT"] = n * k // 2 + n * k // 16
    found = []
    for launched in ended.launches:
        start = next((each for each in memory if each in launched.symbol), "")
        size = memory.pop(start, 0)
        assert launched.modelled is not None
        found.append(Line(launched.symbol, launched.modelled, size))
    return found


def _table(lines: Sequence[Line], product: GpuProduct) -> str:
    bandwidth, gap = product.reached_bandwidth * 1e9, product.launch / 1e9
    written = [f"{'us':>8} {'of HBM':>7}  kernel"]
    for line in lines:
        share = f"{line.memory / bandwidth / line.seconds:.0%}" if line.memory else ""
        written.append(f"{line.seconds * 1e6:8.2f} {share:>7}  {line.kernel}")
    kernels, gaps = sum(line.seconds for line in lines), (len(lines) - 1) * gap
    bound = sum(line.memory for line in lines) / bandwidth
    written += [
        f"{bound * 1e6:8.2f} {'':7}  all bytes from HBM",
        f"{kernels * 1e6:8.2f} {bound / kernels:7.0%}  all kernels",
        f"{(kernels + gaps) * 1e6:8.2f} {bound / (kernels + gaps):7.0%}  with the gaps between"
        f" {len(lines)} launches",
    ]
    return "\n".join(written)


if __name__ == "__main__":
    sys.exit(exit_code(main))

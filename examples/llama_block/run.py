"""A block of a Llama through TVM's own compiler, on an emulated MI300X: compiled, exported, loaded
in a new process, and run for several lengths, beside TVM's build for this CPU and float64.

    python examples/llama_block/run.py [--arch gfx942] [--dtype float16] [--keep FOLDER]

Exit codes: 0, 1 if a number is wrong or a kernel is at fault, 2 if the call is wrong.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # `examples`

import tvm

import mfmadsl
from examples.llama_block.model import Sizes, module
from examples.llama_block.reference import DTYPES, Array, expected, tokens, weights
from examples.options import check_outputs
from examples.process import exit_code
from mfmadsl.device import Options, run_program
from mfmadsl.model import ARCHITECTURES
from mfmadsl.output import OutputError, write_file

TURNS = (17, 1, 5, 1)
"""How many tokens are new in each turn; the cache holds those before."""


@dataclass(frozen=True)
class Turn:
    """A turn's largest errors beside float64: ours on the GPU, and those of TVM's CPU build.

    Each turn's float64 starts from the cache that the device itself had.
    """

    dtype: str
    new: int
    known: int
    error: float
    cpu_error: float

    @property
    def right(self) -> bool:
        return self.error <= self.cpu_error


def main(arguments: Sequence[str] | None = None) -> int:
    """Compile, run, print the table; the exit code."""
    asked = _parsed(arguments)
    sizes = Sizes()
    try:
        check_outputs(asked.json)
    except OutputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    started = time.perf_counter()
    with ExitStack() as stack:
        folder = asked.keep
        if folder is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="llama-")))
        folder.mkdir(parents=True, exist_ok=True)
        shapes = {}
        for dtype in asked.dtype:
            ours, products = _compiled(sizes, dtype, asked.arch, folder)
            shapes[dtype] = _stored(sizes, dtype, folder)
            print(f"{dtype:10} {ours} kernels, {products} of them products, by mfmadsl; the rest "
                  "by TVM's rules", flush=True)  # fmt: skip
        compiled = time.perf_counter() - started
        program = [sys.executable, str(Path(__file__).with_name("infer.py"))]
        subprocess.run([*program, "cpu", str(folder)], check=True, stdout=subprocess.DEVNULL)
        ended = run_program([*program, "rocm", str(folder)], Options(asked.arch, sanitize=True))
        if ended.exit_code:
            print("the program on the emulated GPU failed", file=sys.stderr)
            return 1
        turns = [turn for dtype in asked.dtype for turn in _turns(sizes, dtype, shapes, folder)]
    taken = time.perf_counter() - started
    print(_table(turns))
    launches = len(ended.launches)
    faults = sum(len(launched.faults) for launched in ended.launches)
    print(f"{launches} launches on the emulated {ended.product.name}, {faults} faults")
    print(f"{compiled:.0f} s to compile, {taken:.0f} s in all")
    if asked.json is not None:
        content = {
            "arch": asked.arch, "launches": launches, "faults": faults, "seconds": taken,
            "turns": [asdict(turn) for turn in turns],
        }  # fmt: skip
        try:
            write_file(asked.json, (json.dumps(content, indent=2) + "\n").encode())
        except OutputError as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
    return int(faults > 0 or not all(turn.right for turn in turns))


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="A block of a Llama on an emulated GPU.")
    parser.add_argument("--arch", choices=list(ARCHITECTURES), default="gfx942")
    parser.add_argument("--dtype", choices=list(DTYPES), action="append", help="instead of both")
    parser.add_argument(
        "--keep", type=_empty, metavar="FOLDER", help="leave the libraries there, for infer.py"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers as JSON")
    asked = parser.parse_args(arguments)
    asked.dtype = asked.dtype or list(DTYPES)
    return asked


def _empty(text: str) -> Path:
    """A folder that is not there yet, or has nothing in it."""
    folder = Path(text)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise argparse.ArgumentTypeError(f"{text} is there already: name an empty folder")
    return folder


def _compiled(sizes: Sizes, dtype: str, arch: str, folder: Path) -> tuple[int, int]:
    """Export the module for both devices; how many kernels it has, and how many are products."""
    built, _ = module(sizes, dtype)
    pipeline = mfmadsl.relax.Pipeline()
    executable = tvm.compile(
        built, mfmadsl.target(arch), relax_pipeline=pipeline, tir_pipeline="mfmadsl"
    )
    executable.export_library(str(folder / f"rocm.{dtype}.so"))
    plain = tvm.compile(built, "llvm")
    plain.export_library(str(folder / f"cpu.{dtype}.so"))
    return len(pipeline.report.functions), len(pipeline.report.ours)


def _stored(sizes: Sizes, dtype: str, folder: Path) -> dict[str, tuple[int, ...]]:
    """Write parameters and tokens for the processes that run; the shapes of the parameters."""
    _, shapes = module(sizes, dtype)
    arrays = weights(shapes, dtype)
    turns = {f"turn{n}": tokens(sizes, new, dtype, n) for n, new in enumerate(TURNS)}
    bits: dict[str, Any] = {n: array.view(np.uint16) for n, array in {**arrays, **turns}.items()}
    np.savez(folder / f"{dtype}.npz", **bits)
    return shapes


def _turns(
    sizes: Sizes, dtype: str, shapes: dict[str, dict[str, tuple[int, ...]]], folder: Path
) -> list[Turn]:
    parameters = weights(shapes[dtype], dtype)
    found = []
    results = {
        kind: {name: array.view(DTYPES[dtype])
               for name, array in np.load(folder / f"{kind}.{dtype}.results.npz").items()}
        for kind in ("rocm", "cpu")
    }  # fmt: skip
    for number, new in enumerate(TURNS):
        x = tokens(sizes, new, dtype, number)
        errors = [_error(sizes, x, parameters, number, results[kind]) for kind in ("rocm", "cpu")]
        found.append(Turn(dtype, new, sum(TURNS[:number]), *errors))
    return found


def _error(
    sizes: Sizes, x: Array, parameters: dict[str, Array], turn: int, results: dict[str, Array]
) -> float:
    """The largest of y, from the cache that there was."""
    cache = (results[f"keys{turn - 1}"], results[f"values{turn - 1}"]) if turn else None
    y, _, _ = expected(sizes, x, parameters, cache)
    return float(np.abs(results[f"y{turn}"].astype(np.float64) - y).max())


def _table(turns: Sequence[Turn]) -> str:
    lines = [f"{'type':10} {'new':>4} {'known':>6} {'error':>9} {'TVM on the CPU':>15}"]
    lines += [
        f"{t.dtype:10} {t.new:4} {t.known:6} {t.error:9.2g} {t.cpu_error:15.2g}"
        + ("" if t.right else "  WRONG")
        for t in turns
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(exit_code(main))

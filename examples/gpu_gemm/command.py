"""The command: measure the ladder, print what was found, write a plot and JSON."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence

import mfmadsl
from examples.gpu_gemm import table, tuned
from examples.gpu_gemm.cuda import CudaError
from examples.gpu_gemm.cuda_driver import Gpu, driver_library
from examples.gpu_gemm.ladder import CLASSIC, FULL, LADDER
from examples.gpu_gemm.measure import SMALL, Measured, OnGpu, Plan, measure, run_on_gpu
from examples.gpu_gemm.plot import svg
from examples.gpu_gemm.predict import main_loop
from examples.gpu_gemm.step import Step
from examples.nvcc import TO_INSTALL, NvccError, find_nvcc
from examples.options import add_outputs, add_step, check_outputs
from examples.product import Size, parsed_size
from examples.report import conclude, write_files
from mfmadsl import MfmadslError
from mfmadsl.model import ARCHITECTURES, product_of
from mfmadsl.output import OutputError


def main(arguments: Sequence[str] | None = None, ladder: Sequence[Step] = LADDER) -> int:
    """Exit code: 0 if all numbers are right, 1 if one is wrong or a file cannot be written."""
    asked = _parser(ladder).parse_args(arguments)
    steps = [step for step in ladder if not asked.step or step.name in asked.step]
    sizes = tuple(dict.fromkeys(asked.size or (CLASSIC, FULL)))
    try:
        if asked.asm:
            step = next(step for step in ladder if step.name == asked.asm)
            print(*_listing(step, sizes[0], asked.arch), sep="\n")
            return 0
        check_outputs(asked.svg, asked.json)
        plan = Plan(asked.arch, sizes, asked.cuda_arch, find_nvcc(), asked.jobs)
        return _report(measure(steps, plan), plan, asked)
    except (MfmadslError, OutputError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except MemoryError:
        print("error: the memory does not hold matrices of that size", file=sys.stderr)
        return 1


def _report(measured: Sequence[Measured], plan: Plan, asked: argparse.Namespace) -> int:
    """Print and write what was found; the exit code."""
    for number in range(len(plan.sizes)):
        print(table.predicted(measured, number, plan.arch) + "\n")
    if trials := table.tried(measured):
        print(trials + "\n")
    notes = [f"{each.step.name}: {each.refused}" for each in measured if each.refused]
    gpu = None
    if any(each.source for each in measured):
        if plan.nvcc is None:
            notes.append(f"no nvcc here, so no registers: {TO_INSTALL}")
        if asked.run:
            gpu = _on_gpu(measured, plan, notes)
        print(table.on_cuda(measured, plan.cuda_arch, gpu) + "\n")
    notes += write_files(
        asked, lambda: svg(measured, product_of(plan.arch).name),
        lambda: table.as_json(measured, plan.arch, plan.cuda_arch, gpu),
    )  # fmt: skip
    wrong = [f"{each.step.name} of {SMALL}: {each.wrong}" for each in measured if each.wrong]
    timed = gpu.timed if gpu is not None else {}
    on_gpu = [f"{name} on the GPU: {took.wrong}" for name, took in timed.items() if took.wrong]
    agreement = f"steps agree with NumPy, bit by bit, in the emulator ({SMALL})"
    return conclude(notes, len(measured), agreement, wrong, on_gpu)


def _on_gpu(measured: Sequence[Measured], plan: Plan, notes: list[str]) -> OnGpu | None:
    """What a GPU takes; a note if there is none, or no compiler for it."""
    try:
        gpu = Gpu(driver_library())
        if plan.nvcc is None:
            notes.append("nothing is run on the GPU without nvcc")
            return None
        found = run_on_gpu(measured, plan.sizes[0], gpu, plan.nvcc)
    except (CudaError, NvccError) as error:
        notes.append(f"--run: {error}")
        return None
    if found.cublas is None:
        notes.append("no cuBLAS here to compare with: pip install nvidia-cublas")
    return found


def _listing(step: Step, size: Size, arch: str) -> list[str]:
    """The main loop of a step's machine code, and what it is of."""
    if step.tuned:
        sch = tuned.schedule(size, tuned.tune(size, arch, tuned.trials_for(size))[0].tile)
    else:
        sch = step.schedule(size, arch)
    return [
        f"; {step.name} of {size} on {arch}: the main loop",
        *main_loop(mfmadsl.build(sch, arch)),
    ]


def _parser(ladder: Sequence[Step]) -> argparse.ArgumentParser:
    names = [step.name for step in ladder]
    parser = argparse.ArgumentParser(
        prog="run.py",
        description="A product of matrices on a GPU, from plain threads to matrix cores. All of it"
        " takes two to three minutes on two cores, a step (--step) some seconds.",
    )
    parser.add_argument(
        "--arch", default="gfx942", choices=sorted(ARCHITECTURES), help="the AMD chip, gfx942"
    )
    parser.add_argument(
        "--cuda-arch", default="sm_90", type=_cuda_arch, metavar="sm_NN",
        help="what CUDA source is compiled for, sm_90",
    )  # fmt: skip
    add_step(parser, names)
    parser.add_argument(
        "--size", action="append", type=_size, metavar="MxNxK",
        help=f"instead of {CLASSIC} and {FULL}; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--asm", choices=names, metavar="STEP", help="print the main loop of a step, and no more"
    )
    parser.add_argument(
        "--run", action="store_true", help="run on an NVIDIA GPU, and time beside cuBLAS"
    )
    add_outputs(parser, "gpu_gemm")
    return parser


def _size(text: str) -> Size:
    """M x N x K, of whole tiles: no step has code for the edges of a matrix."""
    size = parsed_size(text, CLASSIC)
    if not all((size.m, size.n, size.k)) or size.m % 128 or size.n % 128 or size.k % 32:
        raise argparse.ArgumentTypeError(
            f"{text}: M and N have to be multiples of 128, and K of 32: the steps have whole tiles"
        )
    return size


def _cuda_arch(text: str) -> str:
    if not re.fullmatch(r"sm_\d{2,3}[af]?", text):
        raise argparse.ArgumentTypeError(f"`{text}` is no architecture such as sm_90")
    return text

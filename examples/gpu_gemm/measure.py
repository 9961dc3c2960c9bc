"""All that is found out about a ladder: numbers, the model's time, what nvcc and a GPU say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat

from tvm.s_tir import Schedule

from examples.gpu_gemm import cuda, tuned
from examples.gpu_gemm.check import check
from examples.gpu_gemm.cuda import Source
from examples.gpu_gemm.cuda_driver import Gpu, Timed, cublas_library
from examples.gpu_gemm.predict import Prediction, predict
from examples.gpu_gemm.step import Step
from examples.gpu_gemm.tile import Tile
from examples.gpu_gemm.tuned import Trial
from examples.nvcc import Cubin, Nvcc, NvccError, compile_cubin
from examples.process import answering
from examples.product import Size

SMALL = Size(128, 128, 64)
"""Where every step is run by the emulator."""


@dataclass(frozen=True)
class Plan:
    """What to find out: on which chips, at which sizes, in how many processes.

    `cuda_arch` is what the CUDA source is for; `nvcc` is None where there is no compiler.
    """

    arch: str
    sizes: tuple[Size, ...]
    cuda_arch: str = "sm_90"
    nvcc: Nvcc | None = None
    jobs: int = 1


@dataclass(frozen=True)
class AtSize:
    """A step at a size: its time and, of a tuned step, what was tried, the fastest first."""

    prediction: Prediction
    trials: tuple[Trial, ...] = ()

    @property
    def tile(self) -> Tile | None:
        return self.trials[0].tile if self.trials else None


@dataclass(frozen=True)
class Measured:
    """What was found out about a step.

    `wrong` says what is wrong with its numbers in the emulator, and `sizes` is what it takes at
    those of the plan. `source` and `cubin` are of the first of them, None of a step for matrix
    cores; `refused` is what nvcc has against it.
    """

    step: Step
    sizes: tuple[AtSize, ...]
    wrong: str | None
    source: Source | None
    cubin: Cubin | None
    refused: str | None


@dataclass(frozen=True)
class OnGpu:
    """What an NVIDIA GPU took at a size: the steps by name, and cuBLAS, None where it is not."""

    name: str
    arch: str
    size: Size
    steps: dict[str, Timed]
    cublas: Timed | None

    @property
    def timed(self) -> dict[str, Timed]:
        """All that ran, cuBLAS among them."""
        return self.steps | ({"cuBLAS": self.cublas} if self.cublas else {})


def measure(steps: Sequence[Step], plan: Plan) -> list[Measured]:
    """Find it all out. Raises what building and profiling raise."""
    questions = [(step, size, plan.arch) for step in steps for size in plan.sizes]
    questions.sort(key=lambda question: not question[0].tuned)  # a search takes longest
    with answering(plan.jobs) as answers:
        found = answers(_at_size, questions, lambda asked: f"{asked[0].name} of {asked[1]}")
        timed = dict(zip(questions, found, strict=True))
        sizes = [tuple(timed[step, size, plan.arch] for size in plan.sizes) for step in steps]
        looked_at = list(zip(steps, sizes, repeat(plan), strict=False))
        return answers(_measured, looked_at, lambda asked: f"{asked[0].name}: its numbers")


def run_on_gpu(measured: Sequence[Measured], size: Size, gpu: Gpu, nvcc: Nvcc) -> OnGpu:
    """Run and time the steps for threads. Raises NvccError and CudaError for what is refused."""
    steps = {}
    for each in measured:
        if each.source is not None:
            made = cuda.source(_schedule(each.step, size, "", each.sizes[0].tile), gpu.arch)
            steps[each.step.name] = gpu.run(made, compile_cubin(made.text, gpu.arch, nvcc), size)
    library = cublas_library()
    reference = gpu.run_cublas(library, size) if library is not None else None
    return OnGpu(gpu.name, gpu.arch, size, steps, reference)


def _schedule(step: Step, size: Size, arch: str, tile: Tile | None) -> Schedule:
    return tuned.schedule(size, tile) if tile is not None else step.schedule(size, arch)


def _at_size(question: tuple[Step, Size, str]) -> AtSize:
    step, size, arch = question
    trials = tuple(tuned.tune(size, arch, tuned.trials_for(size))) if step.tuned else ()
    sch = _schedule(step, size, arch, trials[0].tile if trials else None)
    return AtSize(predict(sch, size, arch, step.dtype), trials)


def _measured(question: tuple[Step, tuple[AtSize, ...], Plan]) -> Measured:
    step, sizes, plan = question
    tile = sizes[0].tile
    wrong = check(_schedule(step, SMALL, plan.arch, tile), SMALL, plan.arch, step.dtype)
    if step.matrix is not None:
        return Measured(step, sizes, wrong, None, None, None)
    made = cuda.source(_schedule(step, plan.sizes[0], "", tile), plan.cuda_arch)
    if plan.nvcc is None:
        return Measured(step, sizes, wrong, made, None, None)
    try:
        return Measured(
            step, sizes, wrong, made, compile_cubin(made.text, plan.cuda_arch, plan.nvcc), None
        )
    except NvccError as error:
        return Measured(step, sizes, wrong, made, None, str(error))

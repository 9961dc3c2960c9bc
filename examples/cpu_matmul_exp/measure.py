"""Time the steps beside NumPy, in one process that has a number of threads.

    python -m examples.cpu_matmul_exp.measure < REQUEST > ANSWER

Both are JSON. The process is a new one for each number of threads, since OpenBLAS and TVM read
theirs when they start; it is started by `measured`, with what a fair measurement takes:

- OpenBLAS chooses the kernel for the CPU itself. A variable that names another one
  (OPENBLAS_CORETYPE, OPENBLAS_L2_SIZE) is taken out of the environment.
- Threads of one pool that wait actively take time from the other's: OMP_WAIT_POLICY is passive, and
  there is a pause before each contender.
- Each contender has four turns, so that a slow moment of the machine is not one contender's.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from examples.cpu_matmul_exp.chain import Size
from examples.process import tell

ROOT = Path(__file__).resolve().parents[2]
NUMPY = "NumPy"
TURNS = 4
PAUSE = 0.3
"""Seconds before each turn, in which threads of the one before go to sleep."""

_NOT_HANDED_ON = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")


@dataclass(frozen=True)
class Request:
    """What to time: `seconds` is how long a turn lasts; `trace` is what the tuned step replays."""

    size: Size
    threads: int
    steps: tuple[str, ...]
    trace: str
    seconds: float


@dataclass(frozen=True)
class Timed:
    """A contender's runs in seconds; the largest error as a part of what is allowed (None of a
    NaN); what is wrong with its numbers; and why it was refused, if it was, so that nothing ran."""

    name: str
    runs: tuple[float, ...]
    error: float | None
    wrong: str | None
    refused: str | None = None

    @property
    def seconds(self) -> float:
        return median(self.runs)


@dataclass(frozen=True)
class Answer:
    """What was found with a number of threads. `blas` tells which kernel NumPy's library took."""

    threads: int
    cpu: str
    blas: str
    steps: tuple[Timed, ...]
    numpy: Timed


class MeasureError(Exception):
    """The process that measures did not come to an end."""


def environment(threads: int, given: Mapping[str, str]) -> dict[str, str]:
    """Of the process that measures with so many threads."""
    kept = {name: value for name, value in given.items() if name not in _NOT_HANDED_ON}
    path = os.pathsep.join(filter(None, (str(ROOT), kept.get("PYTHONPATH"))))
    count = str(threads)
    return kept | {
        "PYTHONPATH": path, "OMP_WAIT_POLICY": "passive", "OMP_NUM_THREADS": count,
        "OPENBLAS_NUM_THREADS": count, "MKL_NUM_THREADS": count, "TVM_NUM_THREADS": count,
    }  # fmt: skip


def answered(module: str, threads: int, question: Mapping[str, Any]) -> Any:
    """What a module of this ladder answers, run in a process of its own with so many threads.

    It reads the question from stdin and prints the answer, both as JSON. Raises MeasureError if it
    ends otherwise.
    """
    done = subprocess.run(
        [sys.executable, "-m", f"examples.cpu_matmul_exp.{module}"],
        input=json.dumps(question), stdout=subprocess.PIPE, text=True, check=False,
        env=environment(threads, os.environ),
    )  # fmt: skip
    if done.returncode:
        raise MeasureError(
            f"the process `{module}` with {threads} threads ended with {done.returncode}"
        )
    return json.loads(done.stdout)


def measured(request: Request) -> Answer:
    """Have a process of its own answer. Raises MeasureError if that ends otherwise."""
    found = answered("measure", request.threads, asdict(request))
    steps = tuple(_timed(each) for each in found.pop("steps"))
    return Answer(**found | {"steps": steps, "numpy": _timed(found["numpy"])})


def _timed(found: dict[str, Any]) -> Timed:
    return Timed(**found | {"runs": tuple(found["runs"])})


def answer(request: Request) -> Answer:
    """Measure in this process."""
    # Not before the environment is what it has to be, which `measured` sees to.
    import numpy as np
    import tvm
    from tvm.target.codegen import llvm_get_system_cpu

    from examples.cpu_matmul_exp.chain import inputs, with_numpy
    from examples.cpu_matmul_exp.check import expected
    from examples.cpu_matmul_exp.ladder import ladder
    from examples.cpu_matmul_exp.step import compiled, this_cpu
    from examples.cpu_matmul_exp.tuned import TuningError

    size = request.size
    given = inputs(size)
    right = expected(given, exact_sums=size.k <= 2**18)
    tensors = [tvm.runtime.tensor(each) for each in given]
    e, f = np.empty((size.m, size.n), np.float32), np.empty((size.m, size.p), np.float32)

    def contender(name: str, run: Callable[[], object], result: Callable[[], Any]) -> _Contender:
        first = _seconds(run)
        found = result()
        share = right.share(found)
        return _Contender(
            name, run, first, share if share < float("inf") else None, right.difference(found)
        )

    contenders: list[_Contender | Timed] = []
    begun = time.monotonic()
    for step in ladder(Path(request.trace)):
        if step.name not in request.steps:
            continue
        try:
            code = compiled(step.make(size), this_cpu(request.threads), step.pipeline)
        except TuningError as error:
            contenders.append(Timed(step.name, (), None, None, str(error)))
            continue
        out = tvm.runtime.tensor(np.full((size.m, size.p), np.nan, np.float32))
        contenders.append(contender(step.name, partial(code, *tensors, out), out.numpy))
        tell(f"{step.name}: its numbers, {request.threads} threads", begun)
        time.sleep(PAUSE)
    contenders.append(contender(NUMPY, partial(with_numpy, given, e, f), lambda: f))
    *steps, numpy = _turns(contenders, request.seconds)
    return Answer(request.threads, llvm_get_system_cpu(), _blas(), tuple(steps), numpy)


@dataclass(frozen=True)
class _Contender:
    """What runs, and what its first run has shown."""

    name: str
    run: Callable[[], object]
    first: float
    error: float | None
    wrong: str | None


def _turns(contenders: Sequence[_Contender | Timed], seconds: float) -> list[Timed]:
    """Each in turn runs for so long. The first run is not counted, unless it took longer itself."""
    runs: dict[str, list[float]] = {each.name: [] for each in contenders}
    begun = time.monotonic()
    for turn in range(TURNS):
        tell(f"turn {turn + 1} of {TURNS} begins", begun)
        for each in contenders:
            if isinstance(each, Timed) or each.first > seconds:
                continue
            time.sleep(PAUSE)
            end = time.perf_counter() + seconds
            while not runs[each.name] or time.perf_counter() < end:
                runs[each.name].append(_seconds(each.run))
    return [
        each
        if isinstance(each, Timed)
        else Timed(each.name, tuple(runs[each.name] or [each.first]), each.error, each.wrong)
        for each in contenders
    ]


def _seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def _blas() -> str:
    """The library that NumPy multiplies with, and the kernel that it chose for this CPU."""
    try:
        from threadpoolctl import threadpool_info
    except ImportError:
        return "a BLAS of unknown kernel (threadpoolctl tells: pip install '.[ladders]')"
    found = [each for each in threadpool_info() if each["user_api"] == "blas"]
    return ", ".join(
        f"{each['internal_api']} {each['version']}, kernel {each.get('architecture', 'unknown')}, "
        f"{each['num_threads']} threads"
        for each in found
    )


def _main() -> int:
    asked = json.load(sys.stdin)
    request = Request(**asked | {"size": Size(**asked["size"]), "steps": tuple(asked["steps"])})
    print(json.dumps(asdict(answer(request))))
    return 0


if __name__ == "__main__":
    from examples.process import exit_code

    sys.exit(exit_code(_main))

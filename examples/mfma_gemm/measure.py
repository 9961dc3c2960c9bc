"""All that is found out about the steps: whether they are right, and the model's time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from examples.mfma_gemm.check import SMALL, check
from examples.mfma_gemm.predict import Prediction, predict
from examples.mfma_gemm.step import Step
from examples.process import answering
from examples.product import Size


@dataclass(frozen=True)
class Measured:
    """What was found out about a step; `wrong` says what is wrong with its numbers, if anything."""

    step: Step
    prediction: Prediction
    wrong: str | None


@dataclass(frozen=True)
class _Question:
    """A step, the size at which it is profiled, and the one at which it is run."""

    step: Step
    full: Size
    small: Size


def measure(
    steps: Sequence[Step], sizes: dict[str, Size], jobs: int = 1, small: Size = SMALL
) -> list[Measured]:
    """Find it all out, in so many processes; `sizes` are those of the chips.

    Raises what building and profiling raise.
    """
    questions = [_Question(step, sizes[step.arch], small) for step in steps]
    # Of a persistent kernel the profiler follows a workgroup over all of its tiles: first things.
    longest = sorted(questions, key=lambda each: not each.step.tiling.persistent)
    with answering(jobs) as answers:
        measured = answers(
            _measured, longest, lambda asked: f"{asked.step.name}, {asked.step.arch}"
        )
        found = {each.step: each for each in measured}
    return [found[step] for step in steps]


def _measured(question: _Question) -> Measured:
    step = question.step
    return Measured(step, predict(step, question.full), check(step, question.small))

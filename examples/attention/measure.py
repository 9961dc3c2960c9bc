"""All that is found out about the steps: whether they are right, and the model's time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from examples.attention.check import SMALL, check
from examples.attention.predict import Prediction, predict
from examples.attention.size import Size
from examples.attention.step import Step
from examples.process import answering


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
    steps: Sequence[Step], full: Size, jobs: int = 1, small: Size = SMALL
) -> list[Measured]:
    """Find it all out, in so many processes. Raises what building and profiling raise."""
    questions = [_Question(step, full, small) for step in steps]
    with answering(jobs) as answers:
        return answers(_measured, questions, lambda asked: f"{asked.step.name}, {asked.step.arch}")


def _measured(question: _Question) -> Measured:
    step = question.step
    return Measured(step, predict(step, question.full), check(step, question.small))

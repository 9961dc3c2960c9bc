"""A child process tells what it can, and how it ended."""

from __future__ import annotations

import pytest

from mfmadsl.doctor.child import Answer, ask


def test_what_is_told_arrives_whatever_else_is_printed() -> None:
    program = "print('noise', end=''); tell(a=1); print('{}'); tell(b=sys.argv[2])"
    assert ask(program, ["x y"]) == Answer(({"a": 1}, {"b": "x y"}))


@pytest.mark.parametrize(
    ("program", "trouble"),
    [
        ("tell(a=1); raise ValueError('no such\\nluck')", "luck"),
        ("tell(a=1); sys.exit(3)", "ends the process with 3"),
        ("tell(a=1); import os; os.abort()", "ends the process by SIGABRT"),
        ("tell(a=1); import os; os.kill(os.getpid(), 50)", "ends the process by signal 50"),
    ],
)
def test_a_bad_end_is_told_with_what_came_before(program: str, trouble: str) -> None:
    assert ask(program) == Answer(({"a": 1},), trouble)


def test_one_that_hangs_is_ended() -> None:
    answer = ask("import time; time.sleep(60)", seconds=1)
    assert answer.trouble == "gives no answer in 1 seconds"

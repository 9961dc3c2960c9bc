"""What nothing orders, nobody wrote, or is freed: told of a program, case by case."""

from __future__ import annotations

import re
import sys

import pytest

from tests.device.kernels import code_object
from tests.device.test_programs import on_device

pytestmark = pytest.mark.xdist_group("streams")  # which share what is told

NOT_ORDERED = "no event, stream or wait of the host orders the two"


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """What is told of each case."""
    folder = tmp_path_factory.mktemp("streams")
    stored = [folder / name for name in ("scaled", "jumped", "followed", "copied")]
    for path in stored:
        path.write_bytes(code_object(path.name))
    command = sys.executable, "-m", "tests.device.programs.streams", *stored
    done = on_device(*command, options=("--sanitize",))
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    cases = re.split(r"^case (\w+)\n", done.stderr, flags=re.MULTILINE)[1:]
    return {name: said.splitlines() for name, said in zip(cases[::2], cases[1::2], strict=True)}


def test_races_are_told_once_and_nothing_else(told: dict[str, list[str]]) -> None:
    races = {name: said for name, said in told.items() if name.startswith("race_")}
    assert len(races) == 10
    for name, said in races.items():
        assert len(said) == 1, (name, said)
        assert "error[race]: " in said[0], (name, said)
        assert NOT_ORDERED in said[0]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("race_of_a_read", "scaled: error[race]: line|reads offset 0 of `x`, which has 768 bytes; "
         "kernel `scaled` on stream|writes it, and no event|lane 0"),
        ("race_of_a_write_after_a_read", "error[race]: a fill on stream|writes offset 0 of the "
         "allocation at|kernel `scaled` on stream|reads it"),
        ("race_of_the_hosts_copy", "a copy on the stream of all reads"),
        ("touch_of_a_result", "error[race]: the host accesses offset 4104 of the allocation at|a "
         "copy on stream|writes it, and the host has not waited"),
        ("touch_of_a_source", "the host accesses offset 8 of|reads it, and the host has not wait"),
        ("race_with_a_free", "a free on stream|writes offset 0"),
        ("race_with_an_allocation", "an allocation on stream|writes it"),
        ("freed", "error[out-of-bounds]|of an allocation of 768 bytes that is freed"),
        ("foreign", "error[out-of-bounds]|writes offset 0 of `the allocation at|no argument leads"),
        ("unwritten", "error[uninitialized]|reads v|loaded from offset 0 of `x`, which has 768 "
         "bytes, which nobody wrote"),
        ("unwritten_by_a_kernel", "scaled: error[uninitialized]|loaded from offset 0 of `x`"),
        ("unwritten_by_a_copy", "loaded from offset 384 of `x`, which has 768 bytes, which nobody"),
    ],
)  # fmt: skip
def test_what_is_told(told: dict[str, list[str]], name: str, words: str) -> None:
    (said,) = told[name]
    assert [word for word in words.split("|") if word not in said] == [], said


def test_what_is_in_order_and_written_is_not_accused(told: dict[str, list[str]]) -> None:
    right = {name: said for name, said in told.items() if name.startswith(("right_", "written_"))}
    assert len(right) == 18
    assert {name: said for name, said in right.items() if said} == {}

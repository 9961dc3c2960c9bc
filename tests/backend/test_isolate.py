"""A child process that may die without taking ours along."""

from __future__ import annotations

import os
import signal
import sys
import threading
from functools import partial

import pytest

from mfmadsl.backend.isolate import ProcessEndedError, run_isolated


def test_the_result_comes_back() -> None:
    assert run_isolated(lambda: {"answer": [1, 2]}) == {"answer": [1, 2]}


def test_so_does_an_exception() -> None:
    with pytest.raises(ZeroDivisionError):
        run_isolated(lambda: 1 // 0)


def test_an_exception_that_cannot_be_pickled_comes_back_as_its_message() -> None:
    class LocalError(Exception):
        pass

    def fail() -> None:
        raise LocalError("what happened")

    with pytest.raises(RuntimeError, match="LocalError: what happened"):
        run_isolated(fail)


def test_an_abort_is_an_error_with_the_last_words() -> None:
    def abort() -> None:
        os.write(2, b"LLVM ERROR: Cannot select: that\nPLEASE submit a bug report\n")
        os.abort()

    with pytest.raises(ProcessEndedError, match=r"^LLVM ERROR: Cannot select: that$"):
        run_isolated(abort)


def test_a_silent_end_names_the_signal_or_the_status() -> None:
    with pytest.raises(ProcessEndedError, match="SIGKILL"):
        run_isolated(lambda: os.kill(os.getpid(), signal.SIGKILL))
    for status in (3, 0):
        with pytest.raises(ProcessEndedError, match=f"exit status {status}"):
            run_isolated(partial(os._exit, status))


def test_nothing_that_the_child_prints_or_changes_is_seen(
    capfd: pytest.CaptureFixture[str],
) -> None:
    changed: list[int] = []

    def noisy() -> int:
        print("noise")
        print("noise", file=sys.stderr)
        changed.append(1)
        return 1

    assert run_isolated(noisy) == 1
    assert capfd.readouterr() == ("", "")
    assert changed == []


def test_a_large_result_does_not_block() -> None:
    assert len(run_isolated(lambda: bytes(10_000_000))) == 10_000_000


def test_threads_may_ask_at_the_same_time() -> None:
    results: list[int] = []
    threads = [
        threading.Thread(target=lambda i=i: results.append(run_isolated(lambda: i * i)))
        for i in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [i * i for i in range(8)]

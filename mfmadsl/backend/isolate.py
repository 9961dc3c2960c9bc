"""Running code that may end its process, in a process of its own.

LLVM answers some inputs ("Cannot select", too much LDS) by ending the process, past any `except`.
A forked child inherits the loaded TVM, so it costs milliseconds where a new interpreter would
cost the seconds of importing TVM again; what it registers and prints stays in it, too.
"""

from __future__ import annotations

import faulthandler
import gc
import os
import pickle
import re
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Sequence
from select import poll
from threading import Lock
from typing import IO, Generic, TypeVar

from mfmadsl.error import MfmadslError

Result = TypeVar("Result")

_one_at_a_time = Lock()  # a child must not inherit a lock that a sibling's thread holds in LLVM


class ProcessEndedError(MfmadslError, RuntimeError):
    """The child ended before it could answer; the message is what it printed last."""


def run_isolated(function: Callable[[], Result]) -> Result:
    """`function()`, computed in a child process; its result is pickled back.

    Raises whatever exception `function` raised, or ProcessEndedError, with the last words on
    the child's standard error, if the child was ended.
    """
    with _one_at_a_time:
        return _Child(function).result()


def run_side_by_side(functions: Sequence[Callable[[], Result]]) -> list[Result]:
    """What the functions give, each in a child process of its own, as many at once as there are
    cores; the last ones start first. Raises as `run_isolated` does, for the first that raises."""
    with _one_at_a_time:
        pending, running = list(enumerate(functions)), dict[int, tuple[int, _Child[Result]]]()
        answering = poll()  # `select` takes no file whose number is above 1023
        found: dict[int, Result] = {}
        failed: dict[int, Exception] = {}
        try:
            while pending or running:
                while pending and len(running) < _cores():
                    place, function = pending.pop()
                    child = _Child(function)
                    running[child.answers] = place, child
                    answering.register(child.answers)
                for ready, _ in answering.poll():
                    place, child = running.pop(ready)
                    answering.unregister(ready)
                    try:
                        found[place] = child.result()
                    except Exception as error:
                        failed[place] = error
        finally:
            for _, child in running.values():
                child.end()
    if failed:
        raise failed[min(failed)]
    return [found[place] for place in range(len(functions))]


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1


class _Child(Generic[Result]):
    """A process that computes a function; the file `answers` is ready when it is done."""

    def __init__(self, function: Callable[[], Result]) -> None:
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115  # `result` or `end` closes it
        self.answers, write_end = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        with warnings.catch_warnings():
            # Python 3.12 warns of threads; the child takes no lock of theirs.
            warnings.simplefilter("ignore", DeprecationWarning)
            self._process = os.fork()
        if self._process == 0:
            os.close(self.answers)
            _answer(function, write_end, self._stderr)  # never returns
        os.close(write_end)

    def result(self) -> Result:
        """What the function gives, once it has ended."""
        with self._stderr as stderr:
            try:
                with os.fdopen(self.answers, "rb") as answers:
                    answer = answers.read()
            except BaseException:
                os.kill(self._process, signal.SIGKILL)
                raise
            finally:
                _, status = os.waitpid(self._process, 0)
            if os.waitstatus_to_exitcode(status) or not answer:
                stderr.seek(0)
                raise ProcessEndedError(_last_words(stderr.read().decode(errors="replace"), status))
        succeeded, value = pickle.loads(answer)
        if not succeeded:
            raise value
        return value  # type: ignore[no-any-return]

    def end(self) -> None:
        """End the process: nobody waits for what it gives."""
        os.kill(self._process, signal.SIGKILL)
        os.close(self.answers)
        os.waitpid(self._process, 0)
        self._stderr.close()


def _answer(function: Callable[[], object], write_end: int, stderr: IO[bytes]) -> None:
    global _one_at_a_time  # noqa: PLW0603  # a lock that is held cannot be given back here
    _one_at_a_time = Lock()  # the parent holds its own; the child has no other thread
    gc.disable()  # it would copy the pages of all that the parent has, for garbage that soon goes
    try:
        os.dup2(stderr.fileno(), 1)
        os.dup2(stderr.fileno(), 2)
        # A notebook or a test runner may have put something else in their place.
        sys.stdout = sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
        faulthandler.disable()  # it would report an abort as if it were the parent's
        try:
            answer = pickle.dumps((True, function()))
        except Exception as error:
            answer = pickle.dumps((False, _picklable(error)))
        with os.fdopen(write_end, "wb") as answers:
            answers.write(answer)
        os._exit(0)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


def _picklable(error: Exception) -> Exception:
    try:
        pickle.loads(pickle.dumps(error))
        return error
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")


def _last_words(text: str, status: int) -> str:
    """The lines that say why, without the stack dump that LLVM adds."""
    if lacking := re.search(r"Cannot select: intrinsic %(llvm\.[\w.]+)", text):
        return f"the chip has no `{lacking[1]}`: schedule for this chip"
    lines = [line.strip() for line in text.splitlines()]
    said = [line for line in lines if "error" in line.lower() or "cannot" in line.lower()]
    code = os.waitstatus_to_exitcode(status)
    how = signal.Signals(-code).name if code < 0 else f"exit status {code}"
    return " ".join(dict.fromkeys(said)) or f"the code generator ended with {how}"

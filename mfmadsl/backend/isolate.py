"""Running code that may end its process, in a process of its own.

LLVM answers some inputs ("Cannot select", too much LDS) by ending the process, past any `except`.
A forked child inherits the loaded TVM, so it costs milliseconds where a new interpreter would
cost the seconds of importing TVM again; what it registers and prints stays in it, too.
"""

from __future__ import annotations

import faulthandler
import os
import pickle
import re
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable
from threading import Lock
from typing import IO, TypeVar

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
    with tempfile.TemporaryFile() as stderr, _one_at_a_time:
        read_end, write_end = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        with warnings.catch_warnings():
            # Python 3.12 warns of threads; the child takes no lock of theirs.
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            os.close(read_end)
            _answer(function, write_end, stderr)  # never returns
        os.close(write_end)
        try:
            with os.fdopen(read_end, "rb") as answers:
                answer = answers.read()
        except BaseException:
            os.kill(child, signal.SIGKILL)
            raise
        finally:
            _, status = os.waitpid(child, 0)
        if os.waitstatus_to_exitcode(status) or not answer:
            stderr.seek(0)
            raise ProcessEndedError(_last_words(stderr.read().decode(errors="replace"), status))
    succeeded, value = pickle.loads(answer)
    if not succeeded:
        raise value
    return value  # type: ignore[no-any-return]


def _answer(function: Callable[[], object], write_end: int, stderr: IO[bytes]) -> None:
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

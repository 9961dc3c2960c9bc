"""Running many cases in a process of their own, so that a crash or a hang is a failed test."""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import traceback
import warnings
from collections.abc import Callable
from typing import NoReturn

CPU_SECONDS: float = 30
"""What a case may take; processor time, so that a busy machine fails no test."""

_SILENCE = 600  # seconds after which a case that waits for something is given up
_MEMORY = 8 << 30  # bytes of address space: a case that wants more gets a MemoryError


def failures(
    count: int, case: Callable[[int], str | None], told: Callable[[int], str]
) -> list[str]:
    """What is wrong with the cases 0 to `count`: `case` says it, or ends its process.

    `told` says what a case does, for a reader who wants to do it again.
    """
    found: dict[int, str] = {}
    first = 0
    while first < count:
        first = _run(first, count, case, found)
    return [f"case {number}, {told(number)}: {wrong}" for number, wrong in found.items()]


def _run(first: int, count: int, case: Callable[[int], str | None], found: dict[int, str]) -> int:
    """The cases from `first` on, until one ends the process; what is wrong, and where to go on."""
    read_end, write_end = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking where there are threads
        child = os.fork()
    if child == 0:
        os.close(read_end)
        _work(first, count, case, write_end)
    os.close(write_end)
    last, pending = first, b""
    while True:
        ready, _, _ = select.select([read_end], [], [], _SILENCE)
        data = os.read(read_end, 1 << 16) if ready else b""
        if not data:
            break
        *lines, pending = (pending + data).split(b"\n")
        for line in lines:
            last, wrong = json.loads(line)
            if wrong:
                found[last] = wrong
    os.close(read_end)
    if not ready:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if os.waitstatus_to_exitcode(status):
        code = os.waitstatus_to_exitcode(status)
        found[last] = f"ended with {signal.Signals(-code).name if code < 0 else code}"
        if not ready:
            found[last] = "waits forever"
        return last + 1
    return count


def _work(first: int, count: int, case: Callable[[int], str | None], write_end: int) -> NoReturn:
    try:
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        for number in range(first, count):
            os.write(write_end, json.dumps([number, None]).encode() + b"\n")
            # Without a handler it ends the process, wherever that is.
            signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
            try:
                wrong = case(number)
            except Exception:
                wrong = traceback.format_exc()
            signal.setitimer(signal.ITIMER_PROF, 0)
            if wrong:
                os.write(write_end, json.dumps([number, wrong]).encode() + b"\n")
        os._exit(0)
    finally:
        os._exit(1)

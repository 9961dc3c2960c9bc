"""Python in a process of its own, which may crash, hang, or write what it likes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_MARK = "mfmadsl doctor: "  # begins each line that is ours
_LONGEST = 300  # letters of a message that are shown

_START = f"""
import json, sys
sys.path[:] = json.loads(sys.argv[1])
def tell(**values):
    print("\\n{_MARK}" + json.dumps(values), flush=True)
def reason(error):
    return f"{{type(error).__name__}}: {{error}}"
"""


@dataclass(frozen=True)
class Answer:
    """What a program told before it ended, and how it ended, if that was no good end."""

    told: tuple[dict[str, Any], ...]
    trouble: str = ""


def ask(program: str, arguments: Sequence[str] = (), seconds: float = 120) -> Answer:
    """Run a program that calls `tell(name=value, ...)`, with this process's `sys.path`.

    It has `reason(error)`, one line about an exception, and its arguments from `sys.argv[2]` on.
    """
    path = json.dumps([str(folder) for folder in sys.path])
    command = [sys.executable, "-W", "ignore", "-c", _START + program, path, *arguments]
    try:
        done = subprocess.run(
            command, capture_output=True, check=False, timeout=seconds, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        return Answer((), f"gives no answer in {seconds:.0f} seconds")
    except OSError as error:
        return Answer((), f"{sys.executable}: {error.strerror}")
    lines = done.stdout.decode(errors="replace").splitlines()
    told = tuple(json.loads(line[len(_MARK) :]) for line in lines if line.startswith(_MARK))
    return Answer(told, _trouble(done.returncode, done.stderr.decode(errors="replace")))


def _trouble(code: int, words: str) -> str:
    if code == 0:
        return ""
    if code < 0:
        try:
            return f"ends the process by {signal.Signals(-code).name}"
        except ValueError:
            return f"ends the process by signal {-code}"
    return shortened(words) or f"ends the process with {code}"


def shortened(words: str) -> str:
    """The last line that says something, where programs and Python say what is wrong."""
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    return lines[-1][:_LONGEST] if lines else ""

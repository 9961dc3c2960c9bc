"""What the examples' commands do where a pipe is closed (`| head`) or Ctrl-C is pressed."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable

INTERRUPTED = 130


def exit_code(main: Callable[[], int]) -> int:
    """That of `main`; 1 without a word if nobody reads any more, 130 after an interrupt."""
    try:
        code = main()
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # Python would flush once more at its end, and complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED


def leave_interrupts() -> None:
    """For a process of a pool: the one that waits for it tells of an interrupt."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

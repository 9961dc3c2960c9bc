"""Running a program with the emulated GPU in the place of a real one."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mfmadsl.device.gpu import Gpu, Options
from mfmadsl.device.launch import LaunchRecord
from mfmadsl.device.library import hip_library
from mfmadsl.device.server import listening
from mfmadsl.emulator.error import Fault
from mfmadsl.error import ArgumentError
from mfmadsl.model import GpuProduct


@dataclass(frozen=True)
class Ended:
    """How a program ended: its exit code (128 and the signal's number, if one ended it), what it
    launched on which product, and whether anything was found wrong with that."""

    exit_code: int
    product: GpuProduct
    launches: tuple[LaunchRecord, ...]
    faulty: bool
    calls: tuple[Fault, ...] = ()
    """What calls of HIP did wrong."""


def run_program(command: Sequence[str], options: Options | None = None) -> Ended:
    """Start a program, and wait for its end; whatever it starts has the same device.

    The program finds the library by LD_LIBRARY_PATH, and its socket by MFMADSL_DEVICE. Raises
    ArgumentError for a chip, a product or a program that there is not, and RuntimeBuildError where
    the library cannot be made.
    """
    if not command or shutil.which(command[0]) is None:
        raise ArgumentError(f"there is no program `{command[0] if command else ''}` to start")
    options = options or Options()
    gpu = Gpu(options)
    library = hip_library()
    with tempfile.TemporaryDirectory(prefix="mfmadsl-") as folder:
        place = Path(folder, "device")
        with listening(gpu, place):
            environment = _environment(library, place, options.log)
            exit_code = _ended(subprocess.Popen(list(command), env=environment))
    return Ended(exit_code, gpu.product, tuple(gpu.launches), gpu.faulty, tuple(gpu.calls))


def _environment(library: Path, place: Path, log: bool) -> dict[str, str]:
    """The program's, which finds the library by its name, or in the folder of a ROCm where there is
    no other."""
    given = os.environ.get("LD_LIBRARY_PATH")
    return {
        "ROCM_PATH": str(library),
        **{name: value for name, value in os.environ.items() if name != "MFMADSL_DEVICE_LOG"},
        "LD_LIBRARY_PATH": f"{library}:{given}" if given else str(library),
        "MFMADSL_DEVICE": str(place),
        **({"MFMADSL_DEVICE_LOG": "1"} if log else {}),
    }


def _ended(process: subprocess.Popen[bytes]) -> int:
    """The exit code of a program. An interrupt is the program's to answer: it has it as well. What
    would end this process is handed on."""
    with _handed_on(process):
        while True:
            try:
                code = process.wait()
            except KeyboardInterrupt:
                continue
            return code if code >= 0 else 128 - code


@contextmanager
def _handed_on(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Signals that end a process go to the program, as far as this thread may say so."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {
        number: signal.signal(number, lambda number, _: process.send_signal(number))
        for number in (signal.SIGTERM, signal.SIGHUP)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

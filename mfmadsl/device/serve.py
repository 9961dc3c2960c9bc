"""An emulated GPU in a process of its own, for programs that are running already: tests.

    python -m mfmadsl.device.serve SOCKET ARCH FAULTS

It writes a line when it is ready. Of each fault it writes a line of JSON into a file, before the
program goes on. It ends with its standard input.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TextIO

from mfmadsl.device.gpu import Gpu, Options
from mfmadsl.device.launch import LaunchRecord
from mfmadsl.device.server import listening
from mfmadsl.emulator.error import Fault


class _Telling(Gpu):
    """Writes its faults where whoever started it reads."""

    faults: TextIO

    def record(self, launched: LaunchRecord) -> None:
        """Keep what a launch did."""
        super().record(launched)
        for fault in launched.faults:
            self._write(launched.symbol, fault)

    def accuse(self, fault: Fault) -> None:
        """Keep what a call did wrong."""
        super().accuse(fault)
        self._write("HIP", fault)

    def tell(self, message: str) -> None:
        """What is no fault goes to standard error."""
        if "error[" not in message:
            super().tell(message)

    def _write(self, where: str, fault: Fault) -> None:
        told = {"where": where, "kind": fault.kind, "text": str(fault)}
        print(json.dumps(told), file=self.faults, flush=True)


def main(place: str, arch: str, faults: str) -> None:
    """Serve until standard input ends."""
    gpu = _Telling(Options(arch, sanitize=True))
    with open(faults, "w") as gpu.faults, listening(gpu, Path(place)):
        print("ready", flush=True)
        sys.stdout = sys.stderr  # for what kernels print
        sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])

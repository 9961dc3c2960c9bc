"""The emulated GPU's door: a socket that programs connect to, each served by a thread."""

from __future__ import annotations

import errno
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mfmadsl.device.gpu import Gpu
from mfmadsl.device.session import served

_FULL = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_PAUSE = 1.0  # seconds until the system may have room again


@contextmanager
def listening(gpu: Gpu, place: Path) -> Iterator[None]:
    """Serve programs that connect to a socket at `place`."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
        door.bind(str(place))
        door.listen()
        threading.Thread(target=_accept, args=(gpu, door), daemon=True).start()
        try:
            yield
        finally:
            door.shutdown(socket.SHUT_RDWR)  # ends the thread's wait


def _accept(gpu: Gpu, door: socket.socket) -> None:
    while True:
        try:
            channel, _ = door.accept()
        except OSError as error:
            if error.errno not in _FULL:  # it was closed
                return
            gpu.tell(f"a program has to wait for the device: {error.strerror}")
            time.sleep(_PAUSE)
            continue
        threading.Thread(target=served, args=(gpu, channel), daemon=True).start()

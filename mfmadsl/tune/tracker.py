"""Measuring on many machines: servers of TVM's RPC, which a tracker knows.

A server is TVM's own, started where mfmadsl is installed: `python -m tvm.exec.rpc_server --tracker
HOST:PORT --key KEY`. It finds `mfmadsl.measure` as it finds the device, by TVM's entry points.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Sequence
from typing import Any

from mfmadsl.backend.kernel import Kernel
from mfmadsl.error import ArgumentError, MfmadslError
from mfmadsl.tune.extra import needs_extra
from mfmadsl.tune.job import job_of
from mfmadsl.tune.measure import Measure

MEASURE = "mfmadsl.measure"
"""The function of a server: a job as JSON and how often to repeat it, to an answer as JSON."""

_REPEAT = 20
_TRIES = 3  # a server that dies takes its job with it, which another one gets
_ANSWER = 10  # seconds until a tracker does not answer
_SECONDS = 600  # of a job, after which its server counts as dead


class RpcError(MfmadslError, RuntimeError):
    """No server could measure a kernel; the message says why."""


def servers(tracker: tuple[str, int], key: str) -> int:
    """How many servers a tracker has of a key. Raises RpcError where it does not answer."""
    summary = _tracker(tracker).summary()
    return sum(key == each["key"].removeprefix("server:") for each in summary["server_info"])


def on_servers(tracker: tuple[str, int], key: str) -> Measure:
    """A measurement by whatever server of the key is free.

    Raises RpcError if the tracker does not answer.
    """
    _tracker(tracker)

    def seconds(kernel: Kernel, args: Sequence[Any]) -> float:
        job, failures = job_of(kernel, args), []
        for _ in range(_TRIES):
            try:
                # A connection is a thread's own.
                remote = _tracker(tracker).request(key, session_timeout=_SECONDS)
                answer = json.loads(remote.get_function(MEASURE)(job, _REPEAT))
            except Exception as error:  # TVM's RPC raises many kinds, where a server has died
                failures.append(str(error).strip().splitlines()[-1])
                continue
            if "seconds" in answer:
                return float(answer["seconds"])
            raise RpcError(str(answer.get("error", "the server gives no answer")))
        raise RpcError(f"no server of {key} has measured it: {failures[-1]}")

    return Measure(f"{key} of a tracker", seconds)


def _tracker(place: tuple[str, int]) -> Any:
    needs_extra()
    from tvm import rpc

    host, port = place
    try:
        with socket.create_connection(place, _ANSWER):  # TVM would try for a minute
            pass
        return rpc.connect_tracker(host, port)
    except (OSError, RuntimeError) as error:
        reason = str(error).strip().splitlines()[-1]
        raise RpcError(f"tracker: {host}:{port} does not answer: {reason}") from None


def read_place(text: str) -> tuple[str, int]:
    """HOST:PORT. Raises ArgumentError for anything else."""
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdigit() or not 0 < int(port) < 1 << 16:
        raise ArgumentError(f"tracker: {text!r} is not HOST:PORT, such as 10.0.0.1:9190")
    return host, int(port)

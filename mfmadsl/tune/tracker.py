"""Measuring on many machines: servers of TVM's RPC, which a tracker knows.

A server is TVM's own, started where mfmadsl is installed: `python -m tvm.exec.rpc_server --tracker
HOST:PORT --key KEY`. It finds `mfmadsl.measure` as it finds the device, by TVM's entry points.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mfmadsl.backend.gpu.kernel import Kernel
from mfmadsl.tune.fleet import Fleet, Place, RpcError, connected, last_line, places
from mfmadsl.tune.job import job_of
from mfmadsl.tune.measure import Measure

_REPEAT = 20
_REFUSALS = 2  # by as many servers that are well, and the kernel is at fault
_DEATHS = 3  # a server that dies takes its job with it, which another one gets


def servers(tracker: Place, key: str) -> int:
    """How many servers a tracker has of a key. Raises RpcError where it does not answer."""
    return len(places(tracker, key))


def on_servers(tracker: Place, key: str, told: Callable[[str], None] | None = None) -> Measure:
    """A measurement by whatever server of the key is free and well; `told` hears of the others.

    A kernel goes from server to server until one has measured it, or two that are well refuse it.

    Raises RpcError if the tracker does not answer.
    """
    connected(tracker)
    fleet = Fleet(tracker, key, told or (lambda _: None))

    def seconds(kernel: Kernel, args: Sequence[Any]) -> float:
        job = job_of(kernel, args)
        refused_by: list[Place] = []
        refusals: list[str] = []
        deaths: list[str] = []
        while len(refusals) < _REFUSALS and len(deaths) < _DEATHS:
            server = fleet.server(kernel.arch, refused_by)
            place = server.place
            try:
                answer = server.asked(job, _REPEAT)
            except Exception as error:  # TVM's RPC raises many kinds, where a server has died
                deaths.append(last_line(error))
                fleet.lost(place)
                continue
            finally:
                del server  # who waits for another one keeps none from those who wait for it
            if "seconds" in answer:
                return float(answer["seconds"])
            refused_by.append(place)
            refusals.append(str(answer.get("error", "the server gives no answer")))
        raise RpcError(f"no server of {key} has measured it: {(refusals or deaths)[-1]}")

    return Measure(f"{key} of a tracker", seconds)

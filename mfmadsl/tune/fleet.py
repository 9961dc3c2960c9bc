"""The servers of a tracker: whoever is free and well is asked, and a sick one is set aside.

A sick server would be free most of the time, since it answers at once, and so be given job after
job. It is kept busy instead: the session with it stays open, and the tracker gives others.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from math import inf
from typing import Any

from mfmadsl.error import ArgumentError, MfmadslError
from mfmadsl.runtime import MEASURE
from mfmadsl.tune.extra import needs_extra
from mfmadsl.tune.job import probe_of
from mfmadsl.tune.measure import MeasureError

Place = tuple[str, int]

_ANSWER = 10  # seconds until a tracker does not answer
_SECONDS = 600  # of a session, after which its server counts as dead
_WAIT = 2  # seconds between looks at whether there is still a server to wait for
_AGAIN = 0.2  # seconds until a server that was not wanted is asked for again
_BACK = 20  # seconds in which a server is to be back whose session has ended by itself


class RpcError(MfmadslError, RuntimeError):
    """No server could measure a kernel; the message says why."""


@dataclass(frozen=True)
class Server:
    """One that is well and ours alone, until this is dropped."""

    place: Place
    remote: Any

    def asked(self, job: str, repeat: int) -> dict[str, Any]:
        """Its answer. Raises what TVM's RPC raises, which is of many kinds."""
        answer = json.loads(self.remote.get_function(MEASURE)(job, repeat))
        if not isinstance(answer, dict):
            return {}
        if "seconds" in answer and not _is_time(seconds := answer["seconds"]):
            return {"error": f"the server says {seconds!r}, which is no time"}
        return answer


def _is_time(seconds: Any) -> bool:
    return type(seconds) in (int, float) and 0 <= seconds < inf


class Fleet:
    """The servers of a key, as a tracker knows them; several threads may ask at once.

    `told` hears of each server that is set aside.
    """

    def __init__(self, tracker: Place, key: str, told: Callable[[str], None]) -> None:
        self.tracker, self.key, self._told = tracker, key, told
        self._lock = threading.Lock()
        self._sick: dict[Place, str] = {}
        self._lost: dict[Place, float] = {}
        self._kept: list[Any] = []  # sessions with sick servers

    def server(self, arch: str, but: Collection[Place] = ()) -> Server:
        """One that is free and can measure kernels for a chip; waits for it.

        It is one of `but` only where there are no others.
        Raises MeasureError if there is none, and none to wait for.
        """
        while True:
            place, matchkey = self._free()
            if (remote := self._connected(place, matchkey)) is None:
                continue
            if place in but and self._left() - set(but):
                del remote  # others may have it meanwhile
                time.sleep(_AGAIN)
                continue
            server = Server(place, remote)
            try:
                answer = server.asked(probe_of(arch), 1)
                reason = None if "seconds" in answer else str(answer.get("error", "no answer"))
            except Exception as error:  # TVM's RPC raises many kinds
                reason = last_line(error)
            if reason is None:
                return server
            self._set_aside(server, reason)

    def lost(self, place: Place) -> None:
        """The session with a server has ended by itself; it may come back."""
        with self._lock:
            self._lost[place] = time.monotonic()

    def _set_aside(self, server: Server, reason: str) -> None:
        with self._lock:
            new = server.place not in self._sick
            self._sick[server.place] = reason
            self._kept.append(server.remote)
        if new:
            self._told(f"server {_name(server.place)} is set aside: {reason}")

    def _free(self) -> tuple[Place, str]:
        """The place of a free server, and the word that it wants to hear."""
        from tvm.rpc import base

        while True:
            self._check_that_some_are_left()
            session = connected(self.tracker)
            session._sock.settimeout(_WAIT)
            try:
                base.sendjson(session._sock, [base.TrackerCode.REQUEST, self.key, "", 1])
                status, (host, port, matchkey) = base.recvjson(session._sock)
            except OSError:  # it has none that is free, or is gone
                continue
            finally:
                session.close()
            if status == base.TrackerCode.SUCCESS:
                return (host, port), matchkey

    def _check_that_some_are_left(self) -> None:
        if self._left():
            return
        with self._lock:
            gone = self._gone()
            reasons = [f"{_name(place)}: {why}" for place, why in self._sick.items()]
        raise MeasureError(
            f"no server of {self.key} is left: "
            + "; ".join([*reasons, *(f"{_name(place)}: it ended" for place in sorted(gone))])
        )

    def _left(self) -> set[Place]:
        """The servers that are not sick, and not gone. Raises MeasureError without a tracker."""
        try:
            there = set(places(self.tracker, self.key))
        except RpcError as error:
            raise MeasureError(str(error)) from None
        with self._lock:
            return there - self._sick.keys() - self._gone()

    def _gone(self) -> set[Place]:
        now = time.monotonic()
        return {place for place, since in self._lost.items() if now - since > _BACK}

    def _connected(self, place: Place, matchkey: str) -> Any | None:
        from tvm import rpc

        try:
            remote = rpc.connect(*place, matchkey, _SECONDS)
        except (OSError, RuntimeError):
            self.lost(place)
            return None
        with self._lock:
            self._lost.pop(place, None)
        return remote


def connected(place: Place) -> Any:
    """A tracker, asked for the first time. Raises RpcError where it does not answer."""
    needs_extra()
    from tvm import rpc

    host, port = place
    try:
        with socket.create_connection(place, _ANSWER):  # TVM would try for a minute
            pass
        return rpc.connect_tracker(host, port)
    except (OSError, RuntimeError) as error:
        raise RpcError(f"tracker: {host}:{port} does not answer: {last_line(error)}") from None


def places(tracker: Place, key: str) -> list[Place]:
    """Where the servers of a key are. Raises RpcError where the tracker does not answer."""
    try:
        summary = connected(tracker).summary()
    except (OSError, RuntimeError) as error:
        if isinstance(error, RpcError):
            raise
        raise RpcError(f"tracker: {_name(tracker)} does not answer: {last_line(error)}") from None
    found = (each for each in summary["server_info"] if each["key"] == f"server:{key}")
    return [(each["addr"][0], each["addr"][1]) for each in found]


def last_line(error: Exception) -> str:
    """The last line of an error's text."""
    return (str(error).strip().splitlines() or [type(error).__name__])[-1]


def read_place(text: str) -> Place:
    """HOST:PORT. Raises ArgumentError for anything else."""
    host, colon, port = text.rpartition(":")
    digits = port.isascii() and port.isdigit()
    if not colon or not host or not digits or not 0 < int(port) < 1 << 16:
        raise ArgumentError(f"tracker: {text!r} is not HOST:PORT, such as 10.0.0.1:9190")
    return host, int(port)


def _name(place: Place) -> str:
    return f"{place[0]}:{place[1]}"

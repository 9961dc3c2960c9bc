"""Tuning on servers that a tracker knows, each with an emulated GPU of its own."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from json import dumps
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import mfmadsl
from mfmadsl.schedule.matrix_core.gemm import tuning_key
from mfmadsl.tune import Database
from mfmadsl.tune.fleet import Fleet, Server, read_place
from mfmadsl.tune.job import probe_of
from mfmadsl.tune.tracker import on_servers, servers
from tests.cli.command import run

KEY = "mi300x"
GEMM = ("tune", "--arch", "gfx942", "-m", 64, "-n", 128, "-k", 256, "--trans-b")
DEADLINE = 60  # seconds until servers are there


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def started(*command: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process with children, all of which end with it."""
    process = subprocess.Popen(
        [sys.executable, "-m", *command],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        kill(process)


def kill(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@contextmanager
def fleet(*options: tuple[str, ...]) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A tracker's place and process, and a server for each tuple of options of its emulated GPU."""
    port = free_port()
    place = f"127.0.0.1:{port}"
    tracker = ("tvm.exec.rpc_tracker", "--host", "127.0.0.1", "--port", str(port),
               "--port-end", str(port + 1))  # fmt: skip
    server = ("--", sys.executable, "-m", "tvm.exec.rpc_server", "--host", "127.0.0.1",
              "--tracker", place, "--key", KEY)  # fmt: skip
    with ExitStack() as stack:
        processes = [stack.enter_context(started(*tracker))]
        for each in options:
            processes.append(stack.enter_context(started("mfmadsl", "device", *each, *server)))
        until = time.monotonic() + DEADLINE
        while time.monotonic() < until:
            try:
                if servers(("127.0.0.1", port), KEY) == len(options):
                    break
            except mfmadsl.RpcError:
                pass  # the tracker itself is on its way
            time.sleep(0.2)
        yield place, processes


WELL = ("--profile", os.devnull)
SICK = ()  # its GPU tells its own time, which no kernel is measured by


def tuning(place: str, folder: Path, trials: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "mfmadsl", *map(str, GEMM), "--trials", str(trials)]
    command += ["--database", str(folder), "--tracker", place, "--key", KEY]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.thorough
def test_a_sick_server_and_one_that_dies_in_the_middle_take_no_result_with_them(
    tmp_path: Path,
) -> None:
    with fleet(SICK, WELL, WELL) as (place, (_, _, first, _)):
        process = tuning(place, tmp_path, 6)
        assert process.stdout is not None
        line = process.stdout.readline()  # the first result
        kill(first)
        rest, said = process.communicate()
    assert process.returncode == 0, said
    assert "best" in rest, line + rest + said
    assert re.search(r"^server 127.0.0.1:\d+ is set aside: ", said, re.MULTILINE), said
    workload = mfmadsl.matmul(64, 128, 256, "float16", "float32", b_transposed=True)
    source = f"{KEY} of a tracker"
    found = Database(tmp_path).measured(tuning_key(workload, "gfx942"), source)
    assert len(found) == 6
    assert min(found.values()) > 0


class Sick:
    """A session with a server that can measure nothing."""

    def get_function(self, name: str) -> Any:
        assert name == "mfmadsl.measure"
        return lambda job, repeat: '{"error": "no HIP"}'


def test_with_sick_servers_alone_there_is_nowhere_to_measure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    there = [("a", 1), ("b", 2)]
    turns = iter(there)
    monkeypatch.setattr("mfmadsl.tune.fleet.places", lambda *_: there)
    said: list[str] = []
    fleet = Fleet(("127.0.0.1", 9190), KEY, said.append)

    def free() -> tuple[tuple[str, int], str]:
        fleet._check_that_some_are_left()
        return next(turns), "word"

    monkeypatch.setattr(fleet, "_free", free)
    monkeypatch.setattr(fleet, "_connected", lambda *_: Sick())
    for _ in range(2):
        with pytest.raises(
            mfmadsl.MeasureError, match=r"no server of mi300x is left: a:1: no HIP; b:2: n"
        ):
            fleet.server("gfx942")
    assert said == ["server a:1 is set aside: no HIP", "server b:2 is set aside: no HIP"]


def test_a_server_that_does_not_come_back_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("mfmadsl.tune.fleet.places", lambda *_: [("a", 1)])
    now = [100.0]
    monkeypatch.setattr("mfmadsl.tune.fleet.time.monotonic", lambda: now[0])
    fleet = Fleet(("127.0.0.1", 9190), KEY, print)
    fleet.lost(("a", 1))
    now[0] += 10
    fleet._check_that_some_are_left()  # it may be on its way
    now[0] += 3600
    with pytest.raises(mfmadsl.MeasureError, match="a:1: it ended"):
        fleet._check_that_some_are_left()


def test_with_a_dead_tracker_there_is_nowhere_to_measure() -> None:
    place = ("127.0.0.1", free_port())
    with pytest.raises(
        mfmadsl.MeasureError, match=rf"tracker: 127.0.0.1:{place[1]} does not answer"
    ):
        Fleet(place, KEY, print).server("gfx942")


@dataclass
class Answers:
    """Servers that are well, and what each says of the kernel, one after another."""

    answers: list[dict[str, Any] | Exception]
    place: tuple[str, int] = ("127.0.0.1", 9091)
    lost_ones: int = 0

    def server(self, arch: str, but: Sequence[tuple[str, int]]) -> Answers:
        assert arch == "gfx942"
        assert set(but) <= {self.place}
        return self

    def asked(self, job: str, repeat: int) -> dict[str, Any]:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def lost(self, place: tuple[str, int]) -> None:
        assert place == self.place
        self.lost_ones += 1


REFUSED = {"error": "hipModuleLaunchKernel: hipErrorOutOfMemory"}
DEAD = RuntimeError("Traceback\nSocket has been closed")
DONE = {"seconds": 1e-6}


@pytest.mark.parametrize(
    ("answers", "result"),
    [
        ([DONE], 1e-6),
        ([REFUSED, DONE], 1e-6),
        ([DEAD, REFUSED, DEAD, DONE], 1e-6),
        ([REFUSED, REFUSED, DONE], "hipErrorOutOfMemory"),
        ([DEAD, DEAD, DEAD, DONE], "Socket has been closed"),
        ([{}, {}], "the server gives no answer"),
    ],
)
def test_a_kernel_goes_to_another_server_until_it_is_at_fault_itself(
    answers: list[dict[str, Any] | Exception],
    result: float | str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = Answers(list(answers))
    monkeypatch.setattr("mfmadsl.tune.tracker.connected", lambda _: None)
    monkeypatch.setattr("mfmadsl.tune.tracker.Fleet", lambda *_: asked)
    monkeypatch.setattr("mfmadsl.tune.tracker.job_of", lambda *_: "{}")
    seconds = on_servers(("127.0.0.1", 9190), KEY).seconds
    kernel: Any = SimpleNamespace(arch="gfx942")
    if isinstance(result, float):
        assert seconds(kernel, []) == result
        assert not asked.answers
    else:
        with pytest.raises(mfmadsl.RpcError, match=result):
            seconds(kernel, [])
        assert len(asked.answers) == (DONE in answers)
    assert asked.lost_ones == answers.count(DEAD) - asked.answers.count(DEAD)


@pytest.mark.parametrize("seconds", ["NaN", "null", "-1", "Infinity", "true", '"1"', "[1]"])
def test_what_is_no_time_is_no_measurement(seconds: str) -> None:
    says = SimpleNamespace(get_function=lambda _: lambda *_: f'{{"seconds": {seconds}}}')
    answer = Server(("127.0.0.1", 9091), says).asked("{}", 20)
    assert set(answer) == {"error"}
    assert answer["error"].endswith("which is no time")


@dataclass
class Session:
    """With a server that is well, and refuses all kernels."""

    place: tuple[str, int]

    def get_function(self, name: str) -> Any:
        assert name == "mfmadsl.measure"
        return lambda job, repeat: dumps(DONE if job == probe_of("gfx942") else REFUSED)


class Places:
    """What a tracker does: it gives each server to one session at a time, the first one first."""

    def __init__(self, *there: tuple[str, int]) -> None:
        self.there = there
        self.sessions: dict[tuple[str, int], weakref.ref[Session]] = {}
        self.given: list[tuple[str, int]] = []

    def free(self) -> tuple[tuple[str, int], str]:
        for place in self.there:
            if place not in self.sessions or self.sessions[place]() is None:
                return place, "word"
        raise AssertionError("who asks for a server still has them all: it would wait for ever")

    def connected(self, place: tuple[str, int], _: str) -> Session:
        session = Session(place)
        self.sessions[place] = weakref.ref(session)
        self.given.append(place)
        return session


@pytest.mark.parametrize("count", [1, 2])
def test_whoever_was_refused_keeps_no_server_and_asks_another_one_if_there_is_one(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = [("a", 1), ("b", 2)][:count]
    tracker = Places(*there)
    monkeypatch.setattr("mfmadsl.tune.tracker.connected", lambda _: None)
    monkeypatch.setattr("mfmadsl.tune.tracker.job_of", lambda *_: "{}")
    monkeypatch.setattr("mfmadsl.tune.fleet.places", lambda *_: there)
    monkeypatch.setattr(Fleet, "_free", lambda _: tracker.free())
    monkeypatch.setattr(Fleet, "_connected", lambda _, *to: tracker.connected(*to))

    def slept(_: float) -> None:
        tracker.there = tracker.there[::-1]  # the other one is free first now

    monkeypatch.setattr("mfmadsl.tune.fleet.time.sleep", slept)
    kernel: Any = SimpleNamespace(arch="gfx942")
    with pytest.raises(mfmadsl.RpcError, match="hipErrorOutOfMemory"):
        on_servers(("127.0.0.1", 9190), KEY).seconds(kernel, [])
    assert set(tracker.given) == set(there)
    assert all(session() is None for session in tracker.sessions.values())


def test_no_tracker_and_no_server_are_told(tmp_path: Path) -> None:
    to = ("--database", tmp_path, "--trials", 1)
    place = f"127.0.0.1:{free_port()}"
    result = run(*GEMM, *to, "--tracker", place, "--key", KEY)
    assert result.exit_code == 1
    assert f"tracker: {place} does not answer" in result.stderr
    result = run(*GEMM, *to, "--tracker", place)
    assert result.exit_code == 2
    assert "--tracker and --key go together" in result.stderr
    result = run(*GEMM, *to, "--tracker", "nowhere", "--key", KEY)
    assert result.exit_code == 2
    assert "'nowhere' is not HOST:PORT" in result.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("text", ["", ":1", "a:", "a:b", "a:0", "a:70000", "a", "a:²", "a:٣"])
def test_what_is_no_place_is_refused(text: str) -> None:
    with pytest.raises(mfmadsl.ArgumentError, match="is not HOST:PORT"):
        read_place(text)

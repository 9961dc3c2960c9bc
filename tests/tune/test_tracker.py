"""Tuning on servers that a tracker knows, each with an emulated GPU of its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import mfmadsl
from mfmadsl.schedule.gemm import tuning_key
from mfmadsl.tune import Database
from mfmadsl.tune.tracker import read_place, servers
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


@pytest.fixture
def fleet() -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A tracker's place, and two servers."""
    port = free_port()
    place = f"127.0.0.1:{port}"
    tracker = ("tvm.exec.rpc_tracker", "--host", "127.0.0.1", "--port", str(port),
               "--port-end", str(port + 1))  # fmt: skip
    server = (
        "mfmadsl",
        "device",
        "--profile",
        os.devnull,
        "--",
        sys.executable,
        "-m",
        "tvm.exec.rpc_server",
        "--host",
        "127.0.0.1",
        "--tracker",
        place,
        "--key",
        KEY,
    )
    with started(*tracker), started(*server) as one, started(*server) as other:
        until = time.monotonic() + DEADLINE
        while time.monotonic() < until:
            try:
                if servers(("127.0.0.1", port), KEY) == 2:
                    break
            except mfmadsl.RpcError:
                pass  # the tracker itself is on its way
            time.sleep(0.2)
        yield place, [one, other]


def test_a_server_that_dies_in_the_middle_takes_no_result_with_it(
    fleet: tuple[str, list[subprocess.Popen[bytes]]], tmp_path: Path
) -> None:
    place, (first, _) = fleet
    command = [sys.executable, "-m", "mfmadsl", *map(str, GEMM), "--trials", "5"]
    command += ["--database", str(tmp_path), "--tracker", place, "--key", KEY]
    tuning = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert tuning.stdout is not None
    line = tuning.stdout.readline()  # the first result
    kill(first)
    rest, said = tuning.communicate()
    assert tuning.returncode == 0, said
    assert "best" in rest, line + rest + said
    workload = mfmadsl.matmul(64, 128, 256, "float16", "float32", b_transposed=True)
    source = f"{KEY} of a tracker"
    found = Database(tmp_path).measured(tuning_key(workload, "gfx942"), source)
    assert len(found) == 5
    assert min(found.values()) > 0


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


@pytest.mark.parametrize("text", ["", ":1", "a:", "a:b", "a:0", "a:70000", "a"])
def test_what_is_no_place_is_refused(text: str) -> None:
    with pytest.raises(mfmadsl.ArgumentError, match="is not HOST:PORT"):
        read_place(text)

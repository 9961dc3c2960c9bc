"""Work on several streams, in order and not: writes the name of each case on standard error, where
the emulated GPU tells its faults.

    mfmadsl device --sanitize -- python -m tests.device.programs.streams SCALED JUMPED ...

These are code objects of kernels with y[i] = a * x[i] + i for i < n, with x[6 * stride] = 6, with
list[i][0] += 1, and with y[i] = x[i].
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from hip import hip

from tests.device.programs.calls import call

COUNT = 192
BYTES = 4 * COUNT
WITHOUT_OTHERS = 1
TO_DEVICE, TO_HOST, BETWEEN = (
    getattr(hip.hipMemcpyKind, f"hipMemcpy{name}")
    for name in ("HostToDevice", "DeviceToHost", "DeviceToDevice")
)
RELAXED = hip.hipStreamCaptureMode.hipStreamCaptureModeRelaxed
CASES: list[Callable[[Any], None]] = []
modules = [call(hip.hipModuleLoadData(Path(path).read_bytes())) for path in sys.argv[1:]]
function, jumped, followed, copied = (
    call(hip.hipModuleGetFunction(module, name))
    for module, name in zip(modules, (b"scaled", b"jumped", b"followed", b"copied"), strict=True)
)


@dataclass(frozen=True)
class Here:
    """What each case has: arrays of which x is written, pinned memory, streams, and an event."""

    x: Any
    y: Any
    z: Any
    pinned: Any
    one: Any
    two: Any
    event: Any


def case(body: Callable[[Here], None]) -> Callable[[Here], None]:
    CASES.append(body)
    return body


def scale(x: Any, y: Any, stream: Any, count: int = COUNT, skip: int = 0) -> None:
    at = 4 * skip
    values = (
        ctypes.c_void_p(int(x) + at), ctypes.c_void_p(int(y) + at), ctypes.c_float(2),
        ctypes.c_int(count),
    )  # fmt: skip
    call(
        hip.hipModuleLaunchKernel(
            function, -(-count // 64), 1, 1, 64, 1, 1, 0, stream, None, values
        )
    )


def copy(to: Any, source: Any, kind: Any, stream: Any, size: int = BYTES) -> None:
    call(hip.hipMemcpyAsync(to, source, size, kind, stream))


# Nothing orders these.


@case
def race_of_a_read(here: Here) -> None:
    scale(here.x, here.y, here.one)
    scale(here.y, here.z, here.two)


@case
def race_of_two_writes(here: Here) -> None:
    scale(here.x, here.y, here.one)
    scale(here.x, here.y, here.two)


@case
def race_of_a_write_after_a_read(here: Here) -> None:
    scale(here.x, here.y, here.one)
    call(hip.hipMemsetAsync(here.x, 0, 4, here.two))


@case
def race_of_a_copy(here: Here) -> None:
    scale(here.x, here.y, here.one)
    copy(here.pinned, here.y, TO_HOST, here.two)


@case
def race_of_the_hosts_copy(here: Here) -> None:
    free = call(hip.hipStreamCreateWithFlags(WITHOUT_OTHERS))
    scale(here.x, here.y, free)
    call(hip.hipMemcpy(np.empty(COUNT, np.float32), here.y, BYTES, TO_HOST))
    call(hip.hipStreamDestroy(free))


@case
def race_with_pinned_memory(here: Here) -> None:
    copy(here.pinned, here.x, TO_HOST, here.one)
    scale(here.pinned, here.y, here.two)


@case
def race_with_an_event_before_it(here: Here) -> None:
    call(hip.hipEventRecord(here.event, here.one))
    scale(here.x, here.y, here.one)
    call(hip.hipStreamWaitEvent(here.two, here.event, 0))
    scale(here.y, here.z, here.two)


@case
def race_with_a_free(here: Here) -> None:
    pool = call(hip.hipMallocAsync(BYTES, here.one))
    scale(here.x, pool, here.one)
    call(hip.hipFreeAsync(pool, here.two))


@case
def race_with_an_allocation(here: Here) -> None:
    pool = call(hip.hipMallocAsync(BYTES, here.one))
    scale(here.x, pool, here.two)
    call(hip.hipDeviceSynchronize())
    call(hip.hipFreeAsync(pool, here.one))


def branched(here: Here, joined: bool) -> None:
    """A graph of two kernels, captured on two streams."""
    call(hip.hipStreamBeginCapture(here.one, RELAXED))
    call(hip.hipEventRecord(here.event, here.one))
    call(hip.hipStreamWaitEvent(here.two, here.event, 0))
    scale(here.x, here.y, here.one)
    if joined:
        call(hip.hipEventRecord(here.event, here.one))
        call(hip.hipStreamWaitEvent(here.two, here.event, 0))
    scale(here.y, here.z, here.two)
    call(hip.hipEventRecord(here.event, here.two))
    call(hip.hipStreamWaitEvent(here.one, here.event, 0))
    graph = call(hip.hipStreamEndCapture(here.one))
    runs = call(hip.hipGraphInstantiateWithFlags(graph, 0))
    call(hip.hipGraphLaunch(runs, here.one))
    scale(here.z, here.y, here.one)
    call(hip.hipStreamSynchronize(here.one))
    call(hip.hipGraphExecDestroy(runs))
    call(hip.hipGraphDestroy(graph))


@case
def race_in_a_graph(here: Here) -> None:
    branched(here, joined=False)


# These are in order.


@case
def right_in_a_graph(here: Here) -> None:
    branched(here, joined=True)


@case
def right_on_one_stream(here: Here) -> None:
    scale(here.x, here.y, here.one)
    scale(here.y, here.z, here.one)
    copy(here.pinned, here.z, TO_HOST, here.one)


@case
def right_by_an_event(here: Here) -> None:
    scale(here.x, here.y, here.one)
    call(hip.hipEventRecord(here.event, here.one))
    call(hip.hipStreamWaitEvent(here.two, here.event, 0))
    scale(here.y, here.z, here.two)


@case
def right_by_events_of_events(here: Here) -> None:
    third, other = call(hip.hipStreamCreate()), call(hip.hipEventCreate())
    scale(here.x, here.y, here.one)
    call(hip.hipEventRecord(here.event, here.one))
    call(hip.hipStreamWaitEvent(here.two, here.event, 0))
    call(hip.hipEventRecord(other, here.two))
    call(hip.hipStreamWaitEvent(third, other, 0))
    scale(here.y, here.z, third)
    call(hip.hipStreamDestroy(third))
    call(hip.hipEventDestroy(other))


@case
def right_by_a_wait(here: Here) -> None:
    scale(here.x, here.y, here.one)
    call(hip.hipStreamSynchronize(here.one))
    scale(here.y, here.z, here.two)


@case
def right_by_a_wait_for_an_event(here: Here) -> None:
    scale(here.x, here.y, here.one)
    call(hip.hipEventRecord(here.event, here.one))
    call(hip.hipEventSynchronize(here.event))
    scale(here.y, here.z, here.two)


@case
def right_by_the_stream_of_all(here: Here) -> None:
    scale(here.x, here.y, here.one)
    scale(here.y, here.z, None)
    scale(here.z, here.y, here.two)


@case
def right_by_the_hosts_copy(here: Here) -> None:
    scale(here.x, here.y, here.one)
    call(hip.hipMemcpy(np.empty(COUNT, np.float32), here.y, BYTES, TO_HOST))


@case
def right_with_parts(here: Here) -> None:
    half = COUNT // 2
    scale(here.x, here.y, here.one, half)
    scale(here.x, here.y, here.two, half, half)


@case
def right_with_a_free(here: Here) -> None:
    pool = call(hip.hipMallocAsync(BYTES, here.one))
    scale(here.x, pool, here.one)
    call(hip.hipFreeAsync(pool, here.one))
    again = call(hip.hipMallocAsync(BYTES, here.two))
    scale(here.x, again, here.two)
    call(hip.hipFree(again))


@case
def right_by_a_call_of_the_host(here: Here) -> None:
    called: list[int] = []
    body = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(called.append)
    scale(here.x, here.y, here.one)
    library = ctypes.CDLL("libamdhip64.so")
    assert not library.hipLaunchHostFunc(ctypes.c_void_p(int(here.one)), body, None)
    assert called
    scale(here.y, here.z, here.two)


# The host's own accesses to memory that it shares, by whole pages.

PAGE = 4096


def pages(name: str, to_host: bool, size: int, touched: int, writes: bool, waits: bool) -> None:
    """A copy of some pages, and an access of the host to a byte of them behind it."""

    def body(here: Here) -> None:
        memory, pinned = call(hip.hipMalloc(4 * PAGE)), call(hip.hipHostMalloc(4 * PAGE, 0))
        call(hip.hipMemset(memory, 5, 4 * PAGE))
        if to_host:
            copy(pinned, memory, TO_HOST, here.one, size)
        else:
            copy(memory, pinned, TO_DEVICE, here.one, size)
        if waits:
            call(hip.hipStreamSynchronize(here.one))
        byte = ctypes.c_ubyte.from_address(int(pinned) + touched)
        if writes:
            byte.value = 7
        else:
            assert byte.value == (5 if to_host and touched < size else 0)
        call(hip.hipFree(memory))
        call(hip.hipHostFree(pinned))

    body.__name__ = name
    CASES.append(body)


pages("touch_of_a_result", True, 2 * PAGE, PAGE + 8, False, False)
pages("touch_of_a_source", False, 2 * PAGE, 8, True, False)
pages("right_touch_of_a_result", True, 2 * PAGE, 8, False, True)
pages("right_touch_of_another_part", True, 2 * PAGE, 3 * PAGE, True, False)
pages("right_look_at_a_source", False, 2 * PAGE, 8, False, False)


# What nobody has written, and what is freed.


@case
def unwritten(here: Here) -> None:
    scale(here.y, here.z, None)


@case
def unwritten_by_a_copy(here: Here) -> None:
    call(hip.hipMemset(here.y, 0, BYTES // 2))
    copy(here.z, here.y, BETWEEN, None)
    scale(here.z, here.y, None)


def copy_by_a_kernel(x: Any, y: Any) -> None:
    values = (ctypes.c_void_p(int(x)), ctypes.c_void_p(int(y)))
    call(hip.hipModuleLaunchKernel(copied, 3, 1, 1, 64, 1, 1, 0, None, None, values))


@case
def right_to_move_what_nobody_wrote(here: Here) -> None:
    copy_by_a_kernel(here.y, here.z)


@case
def unwritten_by_a_kernel(here: Here) -> None:
    copy_by_a_kernel(here.y, here.z)
    scale(here.z, here.x, None)


@case
def written_by_a_copy(here: Here) -> None:
    call(hip.hipMemset(here.y, 0, BYTES))
    copy(here.z, here.y, BETWEEN, None)
    scale(here.z, here.y, None)


@case
def written_by_the_host(here: Here) -> None:
    scale(here.pinned, here.y, None)
    scale(here.y, here.z, None)


@case
def freed(here: Here) -> None:
    pool = call(hip.hipMalloc(BYTES))
    call(hip.hipFree(pool))
    scale(here.x, pool, None)


def jump(here: Here, to: Any) -> None:
    """From one allocation to another, six times as far as the kernel is told."""
    values = (ctypes.c_void_p(int(here.x)), ctypes.c_int((int(to) - int(here.x)) // 24))
    call(hip.hipModuleLaunchKernel(jumped, 1, 1, 1, 64, 1, 1, 0, None, None, values))


@case
def foreign(here: Here) -> None:
    further = [call(hip.hipMalloc(BYTES)) for _ in range(6)]
    jump(here, next(each for each in further if (int(each) - int(here.x)) % 24 == 0))
    for each in further:
        call(hip.hipFree(each))


@case
def right_to_follow_a_list(here: Here) -> None:
    call(hip.hipMemset(here.y, 0, BYTES))
    pointers = np.array([int(here.y)] * (COUNT // 2), np.uint64)
    call(hip.hipMemcpy(here.x, pointers, BYTES, TO_DEVICE))
    values = (ctypes.c_void_p(int(here.x)),)
    call(hip.hipModuleLaunchKernel(followed, 1, 1, 1, 1, 1, 1, 0, None, None, values))


def main() -> None:
    for body in CASES:
        x, y, z = (call(hip.hipMalloc(BYTES)) for _ in range(3))
        call(hip.hipMemcpy(x, np.ones(COUNT, np.float32), BYTES, TO_DEVICE))
        pinned = call(hip.hipHostMalloc(BYTES, 0))
        streams = [call(hip.hipStreamCreate()) for _ in range(2)]
        here = Here(x, y, z, pinned, streams[0], streams[1], call(hip.hipEventCreate()))
        print(f"case {body.__name__}", file=sys.stderr, flush=True)
        body(here)
        for stream in streams:
            call(hip.hipStreamDestroy(stream))
        for each in (x, y, z):
            call(hip.hipFree(each))
        call(hip.hipHostFree(pinned))


main()

"""Graphs by their nodes and by capture, each compared with what it should leave: prints what is
wrong.

    mfmadsl device -- python -m tests.device.programs.graphs SCALED

SCALED is the code object of a kernel with y[i] = a * x[i] + i for i < n. The calls are
hip-python's, whose structures are those of HIP's own headers.
"""

from __future__ import annotations

import ctypes
import sys
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from hip import hip

from tests.device.programs.calls import E, call, check, fails, tell

COUNT = 192
BYTES = 4 * COUNT
MODE = hip.hipStreamCaptureMode


class Dim3(ctypes.Structure):
    _fields_ = (("x", ctypes.c_uint32), ("y", ctypes.c_uint32), ("z", ctypes.c_uint32))


class KernelParams(ctypes.Structure):
    """hipKernelNodeParams, whose arguments hip-python cannot write."""

    _fields_ = (
        ("block", Dim3), ("extra", ctypes.c_void_p), ("function", ctypes.c_void_p), ("grid", Dim3),
        ("values", ctypes.c_void_p), ("lds_bytes", ctypes.c_uint),
    )  # fmt: skip


class Arguments:
    """Of the kernel; the addresses of its values are those of a launch."""

    def __init__(self, x: int, y: int, a: float, n: int) -> None:
        self.values = (
            ctypes.c_void_p(x), ctypes.c_void_p(y), ctypes.c_float(a), ctypes.c_int(n)
        )  # fmt: skip
        self.addresses = (ctypes.c_void_p * 4)(*map(ctypes.addressof, self.values))


library = ctypes.CDLL("libamdhip64.so")
library.hipGraphAddKernelNode.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_size_t, ctypes.c_void_p]
library.hipGraphExecKernelNodeSetParams.argtypes = [ctypes.c_void_p] * 3
for name in ("hipGraphAddDependencies", "hipGraphRemoveDependencies"):
    getattr(library, name).argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_size_t]

module = call(hip.hipModuleLoadData(Path(sys.argv[1]).read_bytes()))
function = call(hip.hipModuleGetFunction(module, b"scaled"))
x, y, z = (call(hip.hipMalloc(BYTES)) for _ in range(3))
numbers = np.arange(COUNT, dtype=np.float32) ** 2


def expected(values: Any, a: float) -> Any:
    return np.float32(a) * values + np.arange(COUNT, dtype=np.float32)


def params(source: Any, target: Any, a: float) -> tuple[KernelParams, Arguments]:
    arguments = Arguments(int(source), int(target), a, COUNT)
    made = KernelParams(
        Dim3(64, 1, 1), None, int(function), Dim3(COUNT // 64, 1, 1),
        ctypes.addressof(arguments.addresses), 0,
    )  # fmt: skip
    return made, arguments


def kernel_node(graph: Any, source: Any, target: Any, a: float) -> Any:
    made, kept = params(source, target, a)
    node = ctypes.c_void_p()
    error = library.hipGraphAddKernelNode(
        ctypes.byref(node), int(graph), None, 0, ctypes.byref(made)
    )
    check(f"a kernel node: error {error}", error == 0)
    del kept  # its arguments are in the node
    return hip.hipGraphNode(node.value)


def edge(graph: Any, first: Any, then: Any, change: str = "hipGraphAddDependencies") -> Any:
    """hip-python takes no lists of nodes."""
    one, other = (ctypes.c_void_p(int(each)) for each in (first, then))
    return E(getattr(library, change)(int(graph), ctypes.byref(one), ctypes.byref(other), 1))


def launch(stream: Any, source: Any, target: Any, a: float) -> None:
    arguments = (source, target, ctypes.c_float(a), ctypes.c_int(COUNT))
    call(
        hip.hipModuleLaunchKernel(
            function,
            COUNT // 64,
            1,
            1,
            64,
            1,
            1,
            sharedMemBytes=0,
            stream=stream,
            kernelParams=None,
            extra=arguments,
        )
    )


TO_DEVICE, TO_HOST = (
    hip.hipMemcpyKind.hipMemcpyHostToDevice,
    hip.hipMemcpyKind.hipMemcpyDeviceToHost,
)


def by_nodes() -> None:
    """Bytes go in, two kernels follow each other, bytes come out; a function looks at them."""
    host, result = numbers.copy(), np.zeros(COUNT, np.float32)
    seen: list[float] = []
    look = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: seen.append(float(result[3])))
    graph = call(hip.hipGraphCreate(0))
    wanted = (ctypes.c_void_p * 2)(ctypes.cast(look, ctypes.c_void_p), None)  # and its argument
    looked = call(hip.hipGraphAddHostNode(graph, 0, ctypes.addressof(wanted)))[0]
    out = call(hip.hipGraphAddMemcpyNode1D(graph, 0, result, z, BYTES, TO_HOST))[0]
    second = kernel_node(graph, y, z, 3.0)
    first = kernel_node(graph, x, y, 2.0)
    into = call(hip.hipGraphAddMemcpyNode1D(graph, 0, x, host, BYTES, TO_DEVICE))[0]
    order = [into, first, second, out, looked]
    for pair in pairwise(order):
        call(edge(graph, *pair))
    stream = call(hip.hipStreamCreate())
    exec_ = call(hip.hipGraphInstantiateWithFlags(graph, 0))
    for start in (0, 5):
        host[:] = numbers + start
        call(hip.hipGraphLaunch(exec_, stream))
        call(hip.hipStreamSynchronize(stream))
        want = expected(expected(numbers + start, 2.0), 3.0)
        check(f"nodes, from {start}", (result == want).all() and seen[-1] == want[3])
    # The graph that runs takes other arguments; the one that it was made of does not.
    made, kept = params(y, z, 4.0)
    error = library.hipGraphExecKernelNodeSetParams(int(exec_), int(second), ctypes.byref(made))
    check("other arguments", error == 0)
    call(hip.hipGraphLaunch(exec_, stream))
    check("other arguments count", (result == expected(expected(host, 2.0), 4.0)).all())
    del kept
    call(hip.hipGraphNodeSetEnabled(exec_, first, 0))
    check("a node that is off", call(hip.hipGraphNodeGetEnabled(exec_, first)) == 0)
    host[:] = 0
    before = expected(numbers + 5, 2.0)
    call(hip.hipGraphLaunch(exec_, stream))
    check("a node that is off does nothing", (result == expected(before, 4.0)).all())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "graph.dot")
        call(hip.hipGraphDebugDotPrint(graph, str(path).encode(), 0))
        check("drawn", path.read_text().count("->") == 4)
    fails(E.hipErrorInvalidValue, edge(graph, first, second))
    call(edge(graph, out, into))
    fails(E.hipErrorInvalidValue, hip.hipGraphInstantiateWithFlags(graph, 0))
    call(edge(graph, out, into, "hipGraphRemoveDependencies"))
    call(hip.hipGraphDestroy(graph))
    host[:] = numbers
    call(hip.hipGraphNodeSetEnabled(exec_, first, 1))
    call(hip.hipGraphLaunch(exec_, stream))
    want = expected(expected(numbers, 2.0), 4.0)
    check("its graph may be gone", (result == want).all())
    call(hip.hipGraphExecDestroy(exec_))
    fails(E.hipErrorInvalidValue, hip.hipGraphLaunch(exec_, stream))
    call(hip.hipStreamDestroy(stream))


def by_capture() -> None:
    """A second stream joins, and the first one waits for it; nothing runs before the launch."""
    one, other = (call(hip.hipStreamCreate()) for _ in range(2))
    fork, join = (call(hip.hipEventCreate()) for _ in range(2))
    host, result = numbers.copy(), np.zeros((2, COUNT), np.float32)
    call(hip.hipMemset(y, 0, BYTES))
    call(hip.hipStreamBeginCapture(one, MODE.hipStreamCaptureModeGlobal))
    call(hip.hipMemcpyAsync(x, host, BYTES, TO_DEVICE, one))
    call(hip.hipEventRecord(fork, one))
    call(hip.hipStreamWaitEvent(other, fork, 0))
    launch(one, x, y, 2.0)
    launch(other, x, z, 5.0)
    call(hip.hipEventRecord(join, other))
    call(hip.hipStreamWaitEvent(one, join, 0))
    call(hip.hipMemcpyAsync(result[0], y, BYTES, TO_HOST, one))
    call(hip.hipMemcpyAsync(result[1], z, BYTES, TO_HOST, one))
    scratch = call(hip.hipMallocAsync(BYTES, one))
    call(hip.hipMemsetAsync(scratch, 7, BYTES, one))
    call(hip.hipFreeAsync(scratch, one))
    graph = call(hip.hipStreamEndCapture(one))
    check("nothing ran", not result.any())
    exec_ = call(hip.hipGraphInstantiateWithFlags(graph, 0))
    for start in (1, 2):
        host[:] = numbers * start
        call(hip.hipGraphLaunch(exec_, one))
        wants = [expected(host, a) for a in (2.0, 5.0)]
        check(f"captured, {start}", (result == np.stack(wants)).all())
    call(hip.hipGraphExecDestroy(exec_))
    call(hip.hipGraphDestroy(graph))


def refused() -> None:
    one, other = (call(hip.hipStreamCreate()) for _ in range(2))
    event = call(hip.hipEventCreate())

    def begin(mode: Any) -> None:
        call(hip.hipStreamBeginCapture(one, mode))

    fails(E.hipErrorIllegalState, hip.hipStreamEndCapture(one))
    fails(
        E.hipErrorStreamCaptureUnsupported,
        hip.hipStreamBeginCapture(None, MODE.hipStreamCaptureModeRelaxed),
    )
    begin(MODE.hipStreamCaptureModeGlobal)
    fails(E.hipErrorIllegalState, hip.hipStreamBeginCapture(one, MODE.hipStreamCaptureModeRelaxed))
    fails(E.hipErrorStreamCaptureUnsupported, hip.hipStreamSynchronize(one))
    fails(E.hipErrorStreamCaptureInvalidated, hip.hipMemsetAsync(x, 0, BYTES, one))
    fails(E.hipErrorStreamCaptureInvalidated, hip.hipStreamEndCapture(one))
    begin(MODE.hipStreamCaptureModeGlobal)
    fails(E.hipErrorStreamCaptureImplicit, hip.hipMemset(x, 0, BYTES))
    fails(E.hipErrorStreamCaptureInvalidated, hip.hipStreamEndCapture(one))
    begin(MODE.hipStreamCaptureModeGlobal)
    fails(E.hipErrorStreamCaptureUnsupported, hip.hipDeviceSynchronize())
    fails(E.hipErrorStreamCaptureInvalidated, hip.hipStreamEndCapture(one))
    begin(MODE.hipStreamCaptureModeRelaxed)
    call(hip.hipDeviceSynchronize())
    call(hip.hipEventRecord(event, one))
    fails(E.hipErrorCapturedEvent, hip.hipEventQuery(event))
    call(hip.hipStreamWaitEvent(other, event, 0))
    launch(other, x, y, 1.0)
    fails(E.hipErrorStreamCaptureUnmatched, hip.hipStreamEndCapture(other))
    fails(E.hipErrorStreamCaptureInvalidated, hip.hipStreamEndCapture(one))
    begin(MODE.hipStreamCaptureModeRelaxed)
    call(hip.hipEventRecord(event, one))
    call(hip.hipStreamWaitEvent(other, event, 0))
    launch(other, x, y, 1.0)
    fails(E.hipErrorStreamCaptureUnjoined, hip.hipStreamEndCapture(one))
    launch(other, x, y, 1.0)  # which has left the capture
    call(hip.hipDeviceSynchronize())


def inner() -> None:
    """A graph within a graph; and a graph that takes the work of another one of the same form."""
    graphs = []
    for value in (1, 2):
        child = call(hip.hipGraphCreate(0))
        rows = hip.hipMemsetParams(
            dst=y, elementSize=4, height=1, pitch=0, value=value, width=COUNT
        )
        call(hip.hipGraphAddMemsetNode(child, 0, rows))
        whole = call(hip.hipGraphCreate(0))
        node = call(hip.hipGraphAddChildGraphNode(whole, 0, child))[0]
        check("its own graph", int(call(hip.hipGraphChildGraphNodeGetGraph(node))) != int(child))
        call(hip.hipGraphDestroy(child))
        graphs.append(whole)
    exec_ = call(hip.hipGraphInstantiateWithFlags(graphs[0], 0))
    found = np.zeros(COUNT, np.uint32)
    for graph, value in zip(graphs, (1, 2), strict=True):
        call(hip.hipGraphExecUpdate(exec_, graph))
        call(hip.hipGraphLaunch(exec_, None))
        call(hip.hipMemcpy(found, y, BYTES, TO_HOST))
        check(f"inner, {value}", (found == value).all())
    empty = call(hip.hipGraphCreate(0))
    fails(E.hipErrorGraphExecUpdateFailure, hip.hipGraphExecUpdate(exec_, empty))
    copy = call(hip.hipGraphClone(graphs[1]))
    nodes = (ctypes.c_void_p * 4)()
    count = ctypes.c_size_t(4)
    library.hipGraphGetNodes(ctypes.c_void_p(int(copy)), nodes, ctypes.byref(count))
    check("nodes of a clone", count.value == 1 and nodes[0] and not nodes[1])


def memory_of_its_own() -> None:
    """Freed outside of the graph, it is there again in the next run, at the same place."""
    stream = call(hip.hipStreamCreate())
    call(hip.hipStreamBeginCapture(stream, MODE.hipStreamCaptureModeRelaxed))
    own = call(hip.hipMallocAsync(BYTES, stream))
    call(hip.hipMemsetAsync(own, 1, BYTES, stream))
    runs = call(hip.hipGraphInstantiateWithFlags(call(hip.hipStreamEndCapture(stream)), 0))
    found = np.zeros(BYTES, np.uint8)
    for _ in range(3):
        call(hip.hipGraphLaunch(runs, stream))
        call(hip.hipMemcpyAsync(found, own, BYTES, TO_HOST, stream))
        check("memory of a graph", (found == 1).all())
        call(hip.hipFreeAsync(own, stream))
        fails(E.hipErrorInvalidValue, hip.hipFreeAsync(own, stream))
        fails(E.hipErrorInvalidValue, hip.hipMemcpy(found, own, BYTES, TO_HOST))
        other = call(hip.hipMalloc(BYTES))
        check("its place is kept", int(other) != int(own))
        call(hip.hipFree(other))


def of_a_module_that_is_gone() -> None:
    loaded = call(hip.hipModuleLoadData(Path(sys.argv[1]).read_bytes()))
    kernel = call(hip.hipModuleGetFunction(loaded, b"scaled"))
    stream = call(hip.hipStreamCreate())
    call(hip.hipStreamBeginCapture(stream, MODE.hipStreamCaptureModeRelaxed))
    values = (ctypes.c_void_p(int(x)), ctypes.c_void_p(int(y)), ctypes.c_float(1), ctypes.c_int(1))
    call(hip.hipModuleLaunchKernel(kernel, 1, 1, 1, 64, 1, 1, 0, stream, None, values))
    graph = call(hip.hipStreamEndCapture(stream))
    call(hip.hipModuleUnload(loaded))
    fails(E.hipErrorInvalidDeviceFunction, hip.hipGraphInstantiateWithFlags(graph, 0))
    fails(E.hipErrorInvalidDeviceFunction, hip.hipGraphClone(graph))


for part in (by_nodes, by_capture, refused, inner, memory_of_its_own, of_a_module_that_is_gone):
    part()
tell("graphs")

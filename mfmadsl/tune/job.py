"""A kernel with what it takes, as text that goes to a server: what to load, launch and time."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import ml_dtypes  # noqa: F401  the types that NumPy lacks: bfloat16 and the eight-bit floats
import numpy as np

from mfmadsl.backend.kernel import Kernel
from mfmadsl.backend.linker import LinkError
from mfmadsl.emulator.text.metadata import read_metadata
from mfmadsl.error import ArgumentError, MfmadslError
from mfmadsl.hip.binding import hip
from mfmadsl.hip.timing import Ready, median_seconds

_SEED = 20240229


def job_of(kernel: Kernel, args: Sequence[Any]) -> str:
    """All launches of a kernel; of arrays the sizes go along, and the server fills them.

    Raises LinkError where there is no linker.
    """
    sizes: list[int] = []
    places: dict[int, int] = {}
    launches = []
    for each, launch in zip(kernel.chain(), kernel.launches(args), strict=True):
        code = each.code_object
        if code is None:
            raise LinkError("no linker found for a code object: install lld, or the pip package "
                            "ziglang")  # fmt: skip
        taken = [
            a
            for a in read_metadata(each.assembly, each.symbol).arguments
            if not a.kind.startswith("hidden_")
        ]
        segment = []
        for argument, value in zip(taken, launch.args, strict=True):
            if not isinstance(value, np.ndarray):
                segment.append([argument.offset, "value", value.tobytes().hex()])
                continue
            if id(value) not in places:
                places[id(value)] = len(sizes)
                sizes.append(value.nbytes)
            segment.append([argument.offset, "array", places[id(value)]])
        launches.append(
            {
                "symbol": each.symbol, "grid": launch.grid, "block": launch.block,
                "arguments": segment, "code_object": base64.b64encode(code).decode(),
            }
        )  # fmt: skip
    return json.dumps({"arch": kernel.arch, "sizes": sizes, "launches": launches})


def timed(text: str, repeat: int) -> float:
    """Run a job on the GPU of this machine: the median seconds of all its launches.

    Raises HipError where there is none or it refuses, and ArgumentError for one of another chip.
    """
    job = json.loads(text)
    runtime = hip()
    device = runtime.device()
    if device.arch != job["arch"]:
        raise ArgumentError(f"the kernel is for {job['arch']}, but {device.name} is {device.arch}")
    device.check_times()
    generator = np.random.default_rng(_SEED)
    with ExitStack() as stack:
        pointers = []
        for size in job["sizes"]:
            pointer = stack.enter_context(runtime.allocated(size))
            # Halves of about 1: what switches costs power.
            content = generator.standard_normal(-(-size // 2), np.float32).astype(np.float16)
            runtime.to_device(pointer, content.ctypes.data, size)
            pointers.append(pointer)
        ready = []
        for launch in job["launches"]:
            code = base64.b64decode(launch["code_object"])
            function = stack.enter_context(runtime.function(code, launch["symbol"]))
            arguments = _segment(launch["arguments"], pointers)
            ready.append(Ready(function, launch["grid"], launch["block"], arguments))
        return median_seconds(stack, runtime, ready, repeat)


def answered(text: str, repeat: int) -> str:
    """`timed`, with its answer as JSON, whether seconds or an error."""
    try:
        return json.dumps({"seconds": timed(text, repeat)})
    except MfmadslError as error:
        return json.dumps({"error": str(error)})


def _segment(arguments: Sequence[Sequence[Any]], pointers: Sequence[int]) -> bytes:
    segment = bytearray()
    for offset, kind, value in arguments:
        content = bytes.fromhex(value) if kind == "value" else pointers[value].to_bytes(8, "little")
        segment.extend(bytes(max(0, offset + len(content) - len(segment))))
        segment[offset : offset + len(content)] = content
    return bytes(segment)

"""A kernel with what it takes, as text that goes to a server: what to load, launch and time."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np

from mfmadsl.backend.gpu.kernel import Kernel
from mfmadsl.error import ArgumentError, MfmadslError
from mfmadsl.hip.binding import hip
from mfmadsl.hip.call import Call, calls_of
from mfmadsl.hip.timing import median_seconds

_SEED = 20240229


def job_of(kernel: Kernel, args: Sequence[Any]) -> str:
    """All launches of a kernel; of arrays the sizes go along, and the server fills them.

    Raises LinkError where there is no linker.
    """
    calls, arrays = calls_of(kernel, kernel.launches(args))
    launches = [
        {
            "symbol": call.symbol, "grid": call.grid, "block": call.block,
            "arguments": [_as_json(*argument) for argument in call.arguments],
            "code_object": base64.b64encode(call.code_object).decode(),
        }
        for call in calls
    ]  # fmt: skip
    sizes = [array.nbytes for array in arrays]
    return json.dumps({"arch": kernel.arch, "sizes": sizes, "launches": launches})


def probe_of(arch: str) -> str:
    """A job that launches nothing: whoever cannot do it can do none for this chip."""
    return json.dumps({"arch": arch, "sizes": [4], "launches": []})


def _as_json(offset: int, value: bytes | int) -> list[Any]:
    return [offset, value.hex() if isinstance(value, bytes) else value]


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
        ready = [_call(each).ready(stack, runtime, pointers) for each in job["launches"]]
        return median_seconds(stack, runtime, ready, repeat)


def _call(launch: Mapping[str, Any]) -> Call:
    arguments = [
        (offset, bytes.fromhex(value) if isinstance(value, str) else value)
        for offset, value in launch["arguments"]
    ]
    code = base64.b64decode(launch["code_object"])
    return Call(code, launch["symbol"], launch["grid"], launch["block"], tuple(arguments))


def answered(text: str, repeat: int) -> str:
    """`timed`, with its answer as JSON, whether seconds or an error."""
    try:
        return json.dumps({"seconds": timed(text, repeat)})
    except MfmadslError as error:
        return json.dumps({"error": str(error)})

"""The launches of a program in time, in the trace event format that ui.perfetto.dev opens."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mfmadsl.device.launch import LaunchRecord


def program_timeline_json(launches: Sequence[LaunchRecord], between: float) -> str:
    """One track for each stream; launches come one after another, as they were made, and each takes
    the time that it takes in the model of the chip. `between` two of them the product needs so many
    nanoseconds; times in the timeline are in microseconds."""
    streams = sorted({launched.stream for launched in launches})
    tracks = {stream: number for number, stream in enumerate(streams)}
    rows: list[dict[str, Any]] = [
        {"ph": "M", "pid": 0, "tid": track, "name": "thread_name",
         "args": {"name": "the null stream" if stream == 0 else f"stream {track}"}}
        for stream, track in tracks.items()
    ]  # fmt: skip
    now = 0.0
    for launched in launches:
        takes = (launched.modelled or 0.0) * 1e6
        rows.append(
            {
                "ph": "X", "pid": 0, "tid": tracks[launched.stream], "ts": now, "dur": takes,
                "name": launched.symbol,
                "args": {
                    "grid": launched.grid, "block": launched.block,
                    "lds_bytes": launched.lds_bytes, "instructions": launched.instructions,
                    "faults": [str(fault) for fault in launched.faults],
                },
            }
        )  # fmt: skip
        now += takes + between / 1e3
    return json.dumps({"displayTimeUnit": "ns", "traceEvents": rows}, separators=(",", ":"))

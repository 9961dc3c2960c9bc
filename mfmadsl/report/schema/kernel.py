"""What `gemm --emit json` writes."""

from __future__ import annotations

from typing import Any

from mfmadsl.model import OVERLAPS
from mfmadsl.report.schema.forms import (
    BOOLEAN,
    CHIP,
    NATURAL,
    NUMBER,
    POSITIVE,
    REGISTERS,
    STRING,
    array,
    exactly,
    one_of,
    or_null,
    ref,
    several,
)


def kernel() -> dict[str, Any]:
    """What `gemm --emit json` writes; an extent that is known at run time only is a formula."""
    extent = {"anyOf": [NATURAL, STRING]}
    three = several(3, extent)
    names = array(STRING)
    launch: dict[str, Any] = {
        "symbol": STRING,
        "parameters": names,
        "kernel_arguments": array(
            exactly(
                name=STRING,
                offset=NATURAL,
                bytes=POSITIVE,
                kind=one_of("global_buffer", "by_value"),
            )
        ),
        "grid": three,
        "block": three,
        "lds_bytes": NATURAL,
        "registers": REGISTERS,
        "spills": NATURAL,
        "scratch_bytes": NATURAL,
        "files": names,
        "next": or_null(ref("launch")),
    }
    argument = exactly(name=STRING, dtype=STRING, shape=array(extent))
    arrays = array(argument)
    argument["properties"]["values"] = STRING
    argument["properties"]["zero"] = BOOLEAN
    whole = exactly(
        **launch,
        arch=CHIP,
        code_object_version=POSITIVE,
        arguments=arrays,
        workspaces=arrays,
        symbols=array(exactly(name=STRING, dtype=STRING)),
    )
    whole["properties"]["tiling"] = or_null(_tiling())
    whole["properties"]["remarks"] = names
    whole["properties"]["emulation"] = exactly(
        largest_error=NUMBER,
        tolerance=NUMBER,
        agrees=BOOLEAN,
        approximate=names,
        trusted=names,
    )
    whole["properties"]["run"] = exactly(
        device=STRING,
        arch=CHIP,
        largest_error=NUMBER,
        tolerance=NUMBER,
        agrees=BOOLEAN,
        seconds=or_null(NUMBER),
        flops_per_second=or_null(NUMBER),
        share_of_peak=or_null(NUMBER),
    )
    return {"kernel": whole, "launch": exactly(**launch)}


def _tiling() -> dict[str, Any]:
    """The fields of `Tiling`, and where they are from."""
    pair = several(2, POSITIVE)
    numbers = ("k_step", "k_pack", "split_k", "group", "k_waves")
    flags = ("swizzle", "persistent", "transposing_reads", "one_launch")
    return exactly(
        block=pair,
        waves=pair,
        instruction=STRING,
        overlap=one_of(*OVERLAPS),
        source=one_of("formula", "tuned", "given"),
        stages=NATURAL,
        **dict.fromkeys(numbers, POSITIVE),
        **dict.fromkeys(flags, BOOLEAN),
    )

"""What `gemm --emit json` writes."""

from __future__ import annotations

from typing import Any

from mfmadsl.model import ARCHITECTURES, OVERLAPS
from mfmadsl.report.schema.forms import NATURAL, POSITIVE, STRING, exactly, or_null


def kernel() -> dict[str, Any]:
    """What `gemm --emit json` writes; an extent that is known at run time only is a formula."""
    extent = {"anyOf": [NATURAL, STRING]}
    three = {"type": "array", "items": extent, "minItems": 3, "maxItems": 3}
    names = {"type": "array", "items": STRING}
    launch: dict[str, Any] = {
        "symbol": STRING,
        "parameters": names,
        "kernel_arguments": {
            "type": "array",
            "items": exactly(
                name=STRING,
                offset=NATURAL,
                bytes=POSITIVE,
                kind={"enum": ["global_buffer", "by_value"]},
            ),
        },
        "grid": three,
        "block": three,
        "lds_bytes": NATURAL,
        "registers": exactly(vector=NATURAL, accumulation=NATURAL, scalar=NATURAL),
        "spills": NATURAL,
        "scratch_bytes": NATURAL,
        "files": names,
        "next": or_null({"$ref": "#/$defs/launch"}),
    }
    array = exactly(name=STRING, dtype=STRING, shape={"type": "array", "items": extent})
    arrays = {"type": "array", "items": array}
    number = {"type": "number"}
    whole = exactly(
        **launch,
        arch={"enum": list(ARCHITECTURES)},
        code_object_version=POSITIVE,
        arguments=arrays,
        workspaces=arrays,
        symbols={"type": "array", "items": exactly(name=STRING, dtype=STRING)},
    )
    whole["properties"]["tiling"] = or_null(_tiling())
    whole["properties"]["remarks"] = names
    whole["properties"]["emulation"] = exactly(
        largest_error=number,
        tolerance=number,
        agrees={"type": "boolean"},
        approximate=names,
        trusted=names,
    )
    whole["properties"]["run"] = exactly(
        device=STRING,
        arch={"enum": list(ARCHITECTURES)},
        largest_error=number,
        tolerance=number,
        agrees={"type": "boolean"},
        seconds=or_null(number),
        flops_per_second=or_null(number),
        share_of_peak=or_null(number),
    )
    return {"kernel": whole, "launch": exactly(**launch)}


def _tiling() -> dict[str, Any]:
    """The fields of `Tiling`, and where they are from."""
    pair = {"type": "array", "items": POSITIVE, "minItems": 2, "maxItems": 2}
    numbers = ("k_step", "k_pack", "stages", "split_k", "group", "k_waves")
    flags = ("swizzle", "persistent", "transposing_reads")
    return exactly(
        block=pair,
        waves=pair,
        instruction=STRING,
        overlap={"enum": list(OVERLAPS)},
        source={"enum": ["formula", "tuned", "given"]},
        **dict.fromkeys(numbers, POSITIVE),
        **{name: {"type": "boolean"} for name in flags},
    )

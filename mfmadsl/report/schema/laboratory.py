"""What `sanitize` and `profile` print."""

from __future__ import annotations

from typing import Any

from mfmadsl.model import ARCHITECTURES, PRODUCTS
from mfmadsl.report.schema.forms import COUNTS, NATURAL, POSITIVE, SHARE, STRING, exactly, or_null


def laboratory() -> dict[str, Any]:
    """Faults, and the profile of a kernel with its sections."""
    return {
        "fault": exactly(
            kind=STRING,
            message=STRING,
            line=or_null(POSITIVE),
            instruction=or_null(STRING),
            workgroup=or_null({"type": "array", "items": NATURAL, "minItems": 3, "maxItems": 3}),
            wave=or_null(NATURAL),
            lane=or_null(NATURAL),
            earlier=or_null(exactly(line=POSITIVE, instruction=STRING, wave=NATURAL)),
            count=POSITIVE,
        ),
        "profile": exactly(
            kernel=STRING,
            arch={"enum": list(ARCHITECTURES)},
            launch=exactly(place=NATURAL, count=POSITIVE),
            registers=exactly(vector=NATURAL, accumulation=NATURAL, scalar=NATURAL),
            spills=NATURAL,
            scratch_bytes=NATURAL,
            allocated=POSITIVE,
            lds_bytes=NATURAL,
            occupancy=exactly(waves_per_simd=POSITIVE, workgroups=POSITIVE, limit=STRING),
            modelled=exactly(workgroups=POSITIVE, waves=POSITIVE),
            whole={"$ref": "#/$defs/section"},
            loop=or_null({"$ref": "#/$defs/section"}),
            lds_instructions={
                "type": "array",
                "items": exactly(
                    line=POSITIVE,
                    instruction=STRING,
                    cycles={"type": "number"},
                    least_cycles={"type": "number"},
                ),
            },
            timing=exactly(
                cycles=NATURAL,
                matrix_bound=NATURAL,
                matrix_use={"type": "number", "minimum": 0, "maximum": 1},
                busy=COUNTS,
                stalls=COUNTS,
            ),
            limits={"type": "array", "items": STRING},
            chip=exactly(
                product={"enum": list(PRODUCTS)},
                modelled={"const": True},
                clock_mhz=POSITIVE,
                cycles=NATURAL,
                seconds=SHARE,
                tflops=SHARE,
                limit=STRING,
                shares={"type": "object", "additionalProperties": SHARE},
                rounds=POSITIVE,
                launches=POSITIVE,
                bytes=exactly(from_l2=NATURAL, into_l2=NATURAL, from_hbm=NATURAL, stored=NATURAL),
            ),
        ),
        "section": exactly(
            lines={"type": "array", "items": POSITIVE, "minItems": 2, "maxItems": 2},
            instructions=COUNTS,
            matrix_cycles=NATURAL,
            lds_cycles=NATURAL,
            lds_conflict_cycles=NATURAL,
            memory_bytes=NATURAL,
            line_bytes=NATURAL,
            l2_bytes=NATURAL,
        ),
    }

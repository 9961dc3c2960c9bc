"""What `sanitize` and `profile` print."""

from __future__ import annotations

from typing import Any

from mfmadsl.model import PRODUCTS
from mfmadsl.report.schema.forms import (
    CHIP,
    COUNTS,
    NATURAL,
    NUMBER,
    POSITIVE,
    REGISTERS,
    SHARE,
    STRING,
    array,
    exactly,
    one_of,
    or_null,
    ref,
    several,
)


def laboratory() -> dict[str, Any]:
    """Faults, and the profile of a kernel with its sections."""
    return {
        "fault": exactly(
            kind=STRING,
            message=STRING,
            line=or_null(POSITIVE),
            instruction=or_null(STRING),
            source=or_null(STRING),
            workgroup=or_null(several(3, NATURAL)),
            wave=or_null(NATURAL),
            lane=or_null(NATURAL),
            earlier=or_null(exactly(line=POSITIVE, instruction=STRING, wave=NATURAL)),
            count=POSITIVE,
        ),
        "profile": exactly(
            kernel=STRING,
            arch=CHIP,
            launch=exactly(place=NATURAL, count=POSITIVE),
            registers=REGISTERS,
            spills=NATURAL,
            scratch_bytes=NATURAL,
            allocated=POSITIVE,
            lds_bytes=NATURAL,
            occupancy=exactly(waves_per_simd=POSITIVE, workgroups=POSITIVE, limit=STRING),
            modelled=exactly(workgroups=POSITIVE, waves=POSITIVE),
            whole=ref("section"),
            loop=or_null(ref("section")),
            lds_instructions=array(
                exactly(
                    line=POSITIVE,
                    instruction=STRING,
                    cycles=NUMBER,
                    least_cycles=NUMBER,
                )
            ),
            timing=exactly(
                cycles=NATURAL,
                matrix_bound=NATURAL,
                matrix_use={"type": "number", "minimum": 0, "maximum": 1},
                busy=COUNTS,
                stalls=COUNTS,
            ),
            limits=array(STRING),
            advice=array(exactly(rule=STRING, text=STRING)),
            chip=exactly(
                product=one_of(*PRODUCTS),
                modelled={"const": True},
                clock_mhz=POSITIVE,
                cycles=NATURAL,
                seconds=SHARE,
                end_to_end_seconds=SHARE,
                tflops=SHARE,
                useful_tflops=SHARE,
                limit=STRING,
                shares={"type": "object", "additionalProperties": SHARE},
                rounds=POSITIVE,
                launches=POSITIVE,
                bytes=exactly(from_l2=NATURAL, into_l2=NATURAL, from_hbm=NATURAL, stored=NATURAL),
            ),
        ),
        "section": exactly(
            lines=several(2, POSITIVE),
            instructions=COUNTS,
            matrix_cycles=NATURAL,
            lds_cycles=NATURAL,
            lds_conflict_cycles=NATURAL,
            memory_bytes=NATURAL,
            line_bytes=NATURAL,
            l2_bytes=NATURAL,
        ),
    }

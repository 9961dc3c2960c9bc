"""The JSON schema of what the command line prints as JSON."""

from __future__ import annotations

from typing import Any

from mfmadsl.doctor.finding import STATES
from mfmadsl.model import (
    ARCHITECTURES,
    ELEMENT_TYPES,
    FEATURES,
    INDEX,
    MODIFIERS,
    OVERLAPS,
    PRODUCTS,
)


def json_schema() -> dict[str, Any]:
    """JSON Schema 2020-12; `$defs` has each form by itself."""
    types = [*ELEMENT_TYPES, INDEX.name]
    definitions = {
        "intrinsic": _object(
            kind={"const": "intrinsic"},
            name=_STRING,
            m=_POSITIVE,
            n=_POSITIVE,
            k=_POSITIVE,
            blocks=_POSITIVE,
            types=_object(**{operand: {"enum": types} for operand in "abc"}),
            sparse={"type": "boolean"},
            scaled={"type": "boolean"},
            modifiers={"type": "array", "items": {"enum": list(MODIFIERS)}},
            cycles={
                "type": "object",
                "propertyNames": {"enum": list(ARCHITECTURES)},
                "additionalProperties": _POSITIVE,
                "minProperties": 1,
            },
            call=_STRING,
            in_llvm={"type": "boolean"},
            aliases={"type": "array", "items": _STRING},
        ),
        "layout": _object(
            name=_STRING,
            operand={"enum": ["a", "b", "c", "index", "scale_a", "scale_b"]},
            shape={"type": "array", "items": _POSITIVE, "minItems": 2, "maxItems": 2},
            blocks=_POSITIVE,
            wave=_POSITIVE,
            elements={"type": "array", "items": {"$ref": "#/$defs/element"}},
        ),
        "element": _object(
            block=_NATURAL,
            row=_NATURAL,
            column=_NATURAL,
            lane=_NATURAL,
            register=_NATURAL,
            bits={"type": "array", "items": _NATURAL, "minItems": 2, "maxItems": 2},
        ),
        "microkernel": _object(
            kind={"const": "microkernel"},
            name=_STRING,
            m=_POSITIVE,
            n=_POSITIVE,
            k=_POSITIVE,
            types=_object(**{operand: {"enum": types} for operand in "abc"}),
            call=_or_null(_STRING),
            features={"type": "array", "items": {"enum": list(FEATURES)}, "minItems": 1},
            register_bits=_POSITIVE,
            registers=_POSITIVE,
            tiles={"type": "boolean"},
        ),
        "vectors": _object(
            kind={"const": "microkernel"},
            name=_STRING,
            operand={"enum": ["a", "b", "c"]},
            shape={"type": "array", "items": _POSITIVE, "minItems": 2, "maxItems": 2},
            registers=_POSITIVE,
            elements_per_register=_POSITIVE,
            broadcast={"type": "boolean"},
            elements={
                "type": "array",
                "items": _object(
                    row=_NATURAL, column=_NATURAL, register=_NATURAL, element=_NATURAL
                ),
            },
        ),
        "read": _object(
            kind={"const": "read"},
            name=_STRING,
            bits=_POSITIVE,
            lanes=_POSITIVE,
            registers=_POSITIVE,
            call=_STRING,
            chips={"type": "array", "items": {"enum": list(ARCHITECTURES)}, "minItems": 1},
            elements={
                "type": "array",
                "items": _object(
                    lane=_NATURAL, register=_NATURAL, from_lane=_NATURAL, element=_NATURAL
                ),
            },
        ),
        "doctor": _object(
            works={"type": "boolean"},
            findings={
                "type": "array",
                "items": _object(
                    name=_STRING,
                    state={"enum": list(STATES)},
                    needed={"type": "boolean"},
                    found=_STRING,
                    remedy=_STRING,
                ),
            },
        ),
        "check": _object(
            intrinsics=_NATURAL,
            microkernels=_NATURAL,
            diagnostics={"type": "array", "items": {"$ref": "#/$defs/diagnostic"}},
        ),
        "fault": _object(
            kind=_STRING,
            message=_STRING,
            line=_or_null(_POSITIVE),
            instruction=_or_null(_STRING),
            workgroup=_or_null({"type": "array", "items": _NATURAL, "minItems": 3, "maxItems": 3}),
            wave=_or_null(_NATURAL),
            lane=_or_null(_NATURAL),
            earlier=_or_null(_object(line=_POSITIVE, instruction=_STRING, wave=_NATURAL)),
            count=_POSITIVE,
        ),
        "profile": _object(
            kernel=_STRING,
            arch={"enum": list(ARCHITECTURES)},
            launch=_object(place=_NATURAL, count=_POSITIVE),
            registers=_object(vector=_NATURAL, accumulation=_NATURAL, scalar=_NATURAL),
            spills=_NATURAL,
            scratch_bytes=_NATURAL,
            allocated=_POSITIVE,
            lds_bytes=_NATURAL,
            occupancy=_object(waves_per_simd=_POSITIVE, workgroups=_POSITIVE, limit=_STRING),
            modelled=_object(workgroups=_POSITIVE, waves=_POSITIVE),
            whole={"$ref": "#/$defs/section"},
            loop=_or_null({"$ref": "#/$defs/section"}),
            lds_instructions={
                "type": "array",
                "items": _object(
                    line=_POSITIVE,
                    instruction=_STRING,
                    cycles={"type": "number"},
                    least_cycles={"type": "number"},
                ),
            },
            timing=_object(
                cycles=_NATURAL,
                matrix_bound=_NATURAL,
                matrix_use={"type": "number", "minimum": 0, "maximum": 1},
                busy=_COUNTS,
                stalls=_COUNTS,
            ),
            limits={"type": "array", "items": _STRING},
            chip=_object(
                product={"enum": list(PRODUCTS)},
                modelled={"const": True},
                clock_mhz=_POSITIVE,
                cycles=_NATURAL,
                seconds=_SHARE,
                tflops=_SHARE,
                limit=_STRING,
                shares={"type": "object", "additionalProperties": _SHARE},
                rounds=_POSITIVE,
                launches=_POSITIVE,
                bytes=_object(
                    from_l2=_NATURAL, into_l2=_NATURAL, from_hbm=_NATURAL, stored=_NATURAL
                ),
            ),
        ),
        "section": _object(
            lines={"type": "array", "items": _POSITIVE, "minItems": 2, "maxItems": 2},
            instructions=_COUNTS,
            matrix_cycles=_NATURAL,
            lds_cycles=_NATURAL,
            lds_conflict_cycles=_NATURAL,
            memory_bytes=_NATURAL,
            line_bytes=_NATURAL,
            l2_bytes=_NATURAL,
        ),
        "diagnostic": _object(
            file=_STRING,
            line=_POSITIVE,
            column=_POSITIVE,
            end_line=_POSITIVE,
            end_column=_POSITIVE,
            severity={"const": "error"},
            code=_STRING,
            message=_STRING,
            hint=_STRING,
        ),
    }
    definitions |= _kernel() | _layouts()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What mfmadsl prints as JSON",
        "anyOf": [
            {"$ref": "#/$defs/layout"},
            {"$ref": "#/$defs/vectors"},
            {"$ref": "#/$defs/read"},
            {
                "type": "array",
                "items": {
                    "anyOf": [{"$ref": "#/$defs/intrinsic"}, {"$ref": "#/$defs/microkernel"}]
                },
            },
            {"$ref": "#/$defs/check"},
            {"$ref": "#/$defs/doctor"},
            {"type": "array", "items": {"$ref": "#/$defs/fault"}},
            {"$ref": "#/$defs/profile"},
            {"$ref": "#/$defs/kernel"},
            {"$ref": "#/$defs/export"},
            {"$ref": "#/$defs/difference"},
        ],
        "$defs": definitions,
    }


def _layouts() -> dict[str, Any]:
    """What `export --as json` and `diff` print."""
    operand = {"enum": ["a", "b", "c", "index", "scale_a", "scale_b"]}
    verdict = {"enum": ["equal", "equal up to the order of k", "different"]}
    place = _or_null(_object(lane=_NATURAL, element=_NATURAL))
    element = _object(
        block=_NATURAL,
        row=_NATURAL,
        column=_NATURAL,
        lane=_NATURAL,
        element=_NATURAL,
        register=_NATURAL,
        bits={"type": "array", "items": _NATURAL, "minItems": 2, "maxItems": 2},
    )
    exported = _object(
        operand=operand,
        type={"enum": [*ELEMENT_TYPES, INDEX.name]},
        rows=_POSITIVE,
        columns=_POSITIVE,
        stored={"type": "boolean"},
        elements={"type": "array", "items": element},
    )
    compared = _object(
        operand=operand,
        verdict=verdict,
        element=_or_null(_object(block=_NATURAL, row=_NATURAL, column=_NATURAL)),
        ours=place,
        theirs=place,
        reason=_STRING,
    )
    return {
        "export": _object(
            name=_STRING,
            m=_POSITIVE,
            n=_POSITIVE,
            k=_POSITIVE,
            blocks=_POSITIVE,
            wave=_POSITIVE,
            operands={"type": "array", "items": exported},
        ),
        "difference": _object(
            name=_STRING,
            other=_STRING,
            verdict=verdict,
            operands={"type": "array", "items": compared, "minItems": 1},
        ),
    }


def _kernel() -> dict[str, Any]:
    """What `gemm --emit json` writes; an extent that is known at run time only is a formula."""
    extent = {"anyOf": [_NATURAL, _STRING]}
    three = {"type": "array", "items": extent, "minItems": 3, "maxItems": 3}
    names = {"type": "array", "items": _STRING}
    launch: dict[str, Any] = {
        "symbol": _STRING,
        "parameters": names,
        "kernel_arguments": {
            "type": "array",
            "items": _object(
                name=_STRING,
                offset=_NATURAL,
                bytes=_POSITIVE,
                kind={"enum": ["global_buffer", "by_value"]},
            ),
        },
        "grid": three,
        "block": three,
        "lds_bytes": _NATURAL,
        "registers": _object(vector=_NATURAL, accumulation=_NATURAL, scalar=_NATURAL),
        "spills": _NATURAL,
        "scratch_bytes": _NATURAL,
        "files": names,
        "next": _or_null({"$ref": "#/$defs/launch"}),
    }
    array = _object(name=_STRING, dtype=_STRING, shape={"type": "array", "items": extent})
    arrays = {"type": "array", "items": array}
    number = {"type": "number"}
    kernel = _object(
        **launch,
        arch={"enum": list(ARCHITECTURES)},
        code_object_version=_POSITIVE,
        arguments=arrays,
        workspaces=arrays,
        symbols={"type": "array", "items": _object(name=_STRING, dtype=_STRING)},
    )
    kernel["properties"]["tiling"] = _or_null(_tiling())
    kernel["properties"]["remarks"] = names
    kernel["properties"]["emulation"] = _object(
        largest_error=number,
        tolerance=number,
        agrees={"type": "boolean"},
        approximate=names,
        trusted=names,
    )
    kernel["properties"]["run"] = _object(
        device=_STRING,
        arch={"enum": list(ARCHITECTURES)},
        largest_error=number,
        tolerance=number,
        agrees={"type": "boolean"},
        seconds=_or_null(number),
        flops_per_second=_or_null(number),
        share_of_peak=_or_null(number),
    )
    return {"kernel": kernel, "launch": _object(**launch)}


def _tiling() -> dict[str, Any]:
    """The fields of `Tiling`, and where they are from."""
    pair = {"type": "array", "items": _POSITIVE, "minItems": 2, "maxItems": 2}
    numbers = ("k_step", "k_pack", "stages", "split_k", "group", "k_waves")
    flags = ("swizzle", "persistent", "transposing_reads")
    return _object(
        block=pair,
        waves=pair,
        instruction=_STRING,
        overlap={"enum": list(OVERLAPS)},
        source={"enum": ["formula", "tuned", "given"]},
        **dict.fromkeys(numbers, _POSITIVE),
        **{name: {"type": "boolean"} for name in flags},
    )


_STRING = {"type": "string"}
_NATURAL = {"type": "integer", "minimum": 0}
_POSITIVE = {"type": "integer", "minimum": 1}
_SHARE = {"type": "number", "minimum": 0}
_COUNTS = {"type": "object", "additionalProperties": {"type": "integer", "minimum": 0}}


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]}


def _object(**properties: Any) -> dict[str, Any]:
    """An object with exactly these properties."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }

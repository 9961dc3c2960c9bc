"""An instruction's module: dense, scaled or sparse, each with a template of its own."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import Any

from mfmadsl.codegen.limits import ModuleError, check_expressible
from mfmadsl.codegen.names import LoadedOperand, tensor_intrins
from mfmadsl.codegen.render import rendered
from mfmadsl.model import (
    ClosedForm,
    ElementType,
    Intrinsic,
    Layout,
    NoClosedFormError,
    Packed,
    closed_form,
    lane_sources,
    numbered_up,
    packed,
)
from mfmadsl.model.signature import formats, register_type


def intrinsic_text(described: Intrinsic, k_pack: int) -> str:
    """The source of the module of a tile of `k_pack` instructions.

    Raises ModuleError for an intrinsic that the templates do not cover, and ArgumentError for one
    of which `k_pack` make no tile.
    """
    check_expressible(described)
    tile = packed(described, k_pack)
    try:
        return _tile_text(tile)
    except NoClosedFormError as error:
        raise ModuleError(f"{described.name}: {error}") from None


def _tile_text(tile: Packed) -> str:
    intrinsic = tile.intrinsic
    if intrinsic.sparse:
        template, values = "sparse.py.jinja", _sparse(intrinsic)
    elif intrinsic.scales:
        template, values = "scaled.py.jinja", _scaled(intrinsic)
    else:
        template, values = "module.py.jinja", _dense(tile)
    loaded: list[LoadedOperand] = values["loaded"]
    return rendered(
        template,
        tensor_intrins(tile.name, loaded),
        [*_NAMES, *values["own"], *chain.from_iterable(x.names for x in loaded)],
        intrinsic=intrinsic,
        name=tile.name,
        c=intrinsic.c,
        m=intrinsic.m,
        n=intrinsic.n,
        k=tile.k,
        blocks=intrinsic.blocks,
        wave=intrinsic.wave_size,
        **values,
    )


_NAMES = (
    "M", "N", "K", "A_DTYPE", "B_DTYPE", "OUT_DTYPE", "CHIPS", "LLVM_INTRINSIC", "CYCLES", "NAMES",
    "c_slot", "index_map_C", "fill", "compute", "store", "register",
)  # fmt: skip
"""What the module of every instruction exports, besides its TensorIntrins."""


def _dense(tile: Packed) -> dict[str, Any]:
    """What the template of dense instructions takes besides."""
    intrinsic, several = tile.intrinsic, tile.intrinsic.blocks > 1
    broadcast = "cbsz_abid" in intrinsic.modifiers
    flags = next((x for x in ("blgp", "neg") if x in intrinsic.modifiers), "")
    # Modifiers know the lanes of B by what they are, and not as descriptions number them.
    turned = _turned(tile.b.layout)
    modifiers = [*(("cbsz", "abid") if broadcast else ()), *([flags] if flags else ())]
    return {
        "a": tile.a,
        "b": tile.b,
        "loaded": [LoadedOperand(tile.a, transposed=True), LoadedOperand(tile.b, transposed=True)],
        "own": ["IN_DTYPE"] + several * ["BLOCKS"] + bool(modifiers) * ["compute_with"],
        "pack": tile.count,
        "broadcast": broadcast,
        "flags": flags,
        "modifiers": modifiers,
        "bfloat": register_type(intrinsic, intrinsic.a).element == "bfloat",
        "formats": formats(intrinsic) if intrinsic.unscaled else (),
        "b_sources": [str(source) for source in lane_sources(intrinsic.wave_size)],
        "b_turned": turned if flags == "blgp" else None,
    }


def _turned(layout: Layout) -> ClosedForm | None:
    """The number in descriptions of a lane, where it is another than the lane's own."""
    numbered = numbered_up(layout)
    lanes = {lane: own for (lane, _), (own, _) in zip(layout.slots, numbered.slots, strict=True)}
    if all(lane == own for lane, own in lanes.items()):
        return None
    return closed_form(lanes.__getitem__, {"lane": layout.lanes})


_BYTE = ElementType("uint8", "u8", 8, "integer")

# Bits of exponent and of mantissa, and the exponent's bias (OCP, MX formats).
_FORMATS = {
    "fp8": (4, 3, 7),
    "bf8": (5, 2, 15),
    "fp6": (2, 3, 1),
    "bf6": (3, 2, 3),
    "fp4": (2, 1, 1),
}


def _scaled(intrinsic: Intrinsic) -> dict[str, Any]:
    """What the template of scaled instructions takes besides: operands as bytes."""
    a, b = intrinsic.a, intrinsic.b
    scale_a, scale_b = (replace(scale, type=_BYTE) for scale in intrinsic.scales)
    octets_a = replace(a, type=_BYTE, layout=a.layout.packed(a.type.bits))
    octets_b = replace(b, type=_BYTE, layout=b.layout.packed(b.type.bits, along_rows=True))
    return {
        "a": octets_a,
        "b": octets_b,
        "scale_a": scale_a,
        "scale_b": scale_b,
        "loaded": [
            LoadedOperand(octets_a, transposed=False),
            LoadedOperand(octets_b, transposed=True),
            LoadedOperand(scale_a, transposed=False),
            LoadedOperand(scale_b, transposed=True),
        ],
        "own": ["GROUP", "A_BITS", "B_BITS", "SCALE_DTYPE", "compute_with", "matmul"],
        "group": intrinsic.k // scale_a.layout.columns,
        "types": [a.type, b.type],
        "bits": [a.type.bits, b.type.bits],
        "formats": [_FORMATS[operand.type.short] for operand in (a, b)],
        "numbers": formats(intrinsic),
    }


def _sparse(intrinsic: Intrinsic) -> dict[str, Any]:
    """What the template of sparse instructions takes besides: the index as bytes."""
    a, index = intrinsic.a, intrinsic.index
    assert index is not None
    octets = replace(index, type=_BYTE, layout=index.layout.packed(index.type.bits), sparse=False)
    count = octets.layout.elements_per_lane
    taken = f"INDEX[lane, T.ramp(0, 1, {count})]" if count > 1 else "INDEX[lane, 0]"
    word = {1: taken, 2: f'T.reinterpret("uint16", {taken})', 4: f'T.reinterpret("int32", {taken})'}
    return {
        "a": a,
        "b": intrinsic.b,
        "index": octets,
        "loaded": [
            LoadedOperand(a, transposed=False),
            LoadedOperand(octets, transposed=False),
            LoadedOperand(intrinsic.b, transposed=True),
        ],
        "own": ["INDEX_DTYPE", "compute_with", "matmul"],
        "places": word[count] if count == 4 else f'T.Cast("int32", {word[count]})',
        "bfloat": register_type(intrinsic, a).element == "bfloat",
    }

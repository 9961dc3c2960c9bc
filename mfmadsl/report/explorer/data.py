"""What the explorer's page knows of each entry, as JSON.

A layout goes along as the matrix of its bits: a script on the page computes the place of each
element from it, as `Layout` does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from mfmadsl.export import FORMATS, ExportError, export_layouts
from mfmadsl.model import (
    ARCHITECTURES,
    INDICES,
    Intrinsic,
    Layout,
    Microkernel,
    Operand,
    VectorOperand,
    lane_sources,
    product_names,
)
from mfmadsl.report.intrinsic import intrinsic_json, operand_line
from mfmadsl.report.microkernel import microkernel_json, vector_line

_FIRST = "mfma_f32_16x16x16_f16"  # what the page opens with, as README does
_COMPUTED = ("json", "csv")  # element by element: a script on the page makes them


Exports = Mapping[str, Mapping[str, str]]
"""In the words of each project the text of an entry, or why there is none."""


def explorer_data(
    intrinsics: Iterable[Intrinsic],
    microkernels: Iterable[Microkernel],
    texts: Mapping[str, str],
    exports: Mapping[str, Exports] = MappingProxyType({}),
) -> dict[str, Any]:
    """All that the page shows; `texts` are the entries as they are written, by name, and `exports`
    those that are known already."""
    dense, kernels = list(intrinsics), list(microkernels)
    names = [*(each.name for each in dense), *(each.name for each in kernels)]
    waves = sorted({each.wave_size for each in dense})
    return {
        "first": _FIRST if _FIRST in names else names[0],
        "chips": list(ARCHITECTURES),
        "products": {chip: product_names(chip) for chip in ARCHITECTURES},
        "laneSources": {str(lanes): _lane_sources(lanes) for lanes in waves},
        "entries": [
            *(_intrinsic(each, texts.get(each.name, ""), exports.get(each.name)) for each in dense),
            *(_microkernel(each, texts.get(each.name, "")) for each in kernels),
        ],
    }


def operations_per_cycle(intrinsic: Intrinsic) -> dict[str, float]:
    """Multiplications and additions that a compute unit of each chip does in a cycle, all of its
    matrix cores busy; those with the zeros of a sparse A count, too."""
    work = intrinsic.operations
    return {chip: work / cycles * ARCHITECTURES[chip].simds for chip, cycles in intrinsic.cycles}


def _intrinsic(intrinsic: Intrinsic, text: str, exports: Exports | None) -> dict[str, Any]:
    return {
        **intrinsic_json(intrinsic),
        "doc": intrinsic.doc,
        "chips": list(intrinsic.chips),
        "spellings": sorted(intrinsic.spellings),
        "operations": {
            chip: int(each) if each.is_integer() else each
            for chip, each in operations_per_cycle(intrinsic).items()
        },
        "text": text,
        "exports": exports or exports_of(intrinsic),
        "operands": [
            {
                **_layout(operand),
                "registers": operand.register_count,
                "sparse": operand.sparse,
                "line": operand_line(operand, intrinsic),
            }
            for operand in intrinsic.operands.values()
        ],
    }


def exports_of(intrinsic: Intrinsic) -> dict[str, dict[str, str]]:
    """What is copied in the words of each project. Each text is read back, which takes a while."""
    found = {}
    for form in FORMATS:
        if form not in _COMPUTED:
            try:
                found[form] = {"text": export_layouts(intrinsic, form) + "\n"}
            except ExportError as error:
                found[form] = {"refused": str(error)}
    return found


def _microkernel(microkernel: Microkernel, text: str) -> dict[str, Any]:
    return {
        **microkernel_json(microkernel),
        "doc": microkernel.doc,
        "blocks": 1,
        "chips": ["CPU"],
        "modifiers": [],
        "text": text,
        "operands": [
            {
                **_layout(operand),
                "registers": operand.registers,
                "broadcast": operand.broadcast,
                "line": vector_line(operand, microkernel),
            }
            for operand in microkernel.operands.values()
        ],
    }


def _layout(operand: Operand | VectorOperand) -> dict[str, Any]:
    layout = operand.layout
    return {
        "name": operand.name,
        "axes": list(INDICES[operand.name]),
        "type": operand.type.name,
        "bits": operand.type.bits,
        "shape": list(operand.shape),
        "stored": layout.columns,
        "blocks": layout.blocks,
        "lanes": layout.lanes,
        "slots": layout.elements_per_lane,
        **_map(layout),
    }


def _map(layout: Layout) -> dict[str, list[int]]:
    """The number of an element's slot: as a matrix of bits where it is one, else one by one."""
    if layout.matrix is not None:
        return {"bases": list(layout.matrix.columns)}
    return {"places": [lane * layout.elements_per_lane + slot for lane, slot in layout.slots]}


def _lane_sources(lanes: int) -> list[list[int]]:
    """For each blgp the lane from which B is read in place of another."""
    return [[source.of(lane) for lane in range(lanes)] for source in lane_sources(lanes)]

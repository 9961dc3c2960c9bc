"""Triton's own bindings are the witness: no GPU, but its compiler, says where elements lie."""

from __future__ import annotations

import builtins
import sys
from typing import Any

import pytest

from mfmadsl import ExportError, diff_layouts, export_layouts
from mfmadsl.export import EQUAL
from mfmadsl.export.triton import SHAPES
from mfmadsl.language import find, library
from mfmadsl.model import Intrinsic
from tests.export.layouts import HALF

triton = pytest.importorskip("triton")

EXPRESSIBLE = [
    i for i in library().values() if not i.sparse and i.blocks == 1 and (i.m, i.n) in SHAPES
]


def test_most_of_the_library_can_be_expressed() -> None:
    assert len(EXPRESSIBLE) == 87
    assert {chip for i in EXPRESSIBLE for chip in i.chips} == {
        "gfx908",
        "gfx90a",
        "gfx942",
        "gfx950",
    }


@pytest.mark.parametrize("intrinsic", EXPRESSIBLE, ids=lambda i: i.name)
def test_triton_says_the_same_of_every_operand(intrinsic: Intrinsic) -> None:
    found = diff_layouts(intrinsic, "triton")
    assert [(each.operand, each.verdict) for each in found.operands] == [
        (name, EQUAL) for name in intrinsic.operands
    ]


@pytest.mark.parametrize("intrinsic", EXPRESSIBLE, ids=lambda i: i.name)
def test_the_names_that_are_written_are_the_bases_that_are_written(intrinsic: Intrinsic) -> None:
    """Triton makes of AMDMFMALayout and DotOperandLayout the linear layouts beside them."""
    from triton._C.libtriton import amd, gluon_ir, ir

    context = ir.context()
    ir.load_dialects(context)
    amd.load_dialects(context)
    builder = gluon_ir.GluonOpBuilder(context)
    names: dict[str, Any] = {}
    exec(export_layouts(intrinsic, "triton"), names)
    for name in "abc":
        linear = names[f"{name}_linear"]
        asked = builder.to_linear_layout(names[name]._to_ir(builder), list(linear.shape))
        assert (asked.reg_bases, asked.lane_bases) == (linear.reg_bases, linear.lane_bases), name


@pytest.mark.parametrize("name", ["mfma_f32_4x4x4_16b_f16", "smfmac_f32_16x16x32_f16"])
def test_of_others_triton_has_no_layout(name: str) -> None:
    with pytest.raises(ExportError, match="dense instructions of one block"):
        diff_layouts(find(name), "triton")


def test_without_triton_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "triton", None)
    with pytest.raises(ExportError, match=r"Triton is not installed.*pip install 'triton==3\.8"):
        diff_layouts(find(HALF), "triton")


def test_a_triton_with_other_bindings_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == "triton._C.libtriton":
            raise ImportError("cannot import name 'gluon_ir'")
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ExportError, match=r"does not answer as Triton 3\.8 does \(ImportError"):
        diff_layouts(find(HALF), "triton")

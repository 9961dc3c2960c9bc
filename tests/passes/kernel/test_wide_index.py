"""Indices and extents of large buffers have 64 bits, and no others."""

from __future__ import annotations

from typing import Any

import pytest
import tvm
from tvm import s_tir, te, tirx
from tvm.tirx import BufferLoad, BufferStore, PrimFunc

from mfmadsl.passes.kernel.wide_index import wide_indices
from mfmadsl.passes.tir.expression import loads_of

I = tirx.Var("i", "int32")  # noqa: E741 - an index


@pytest.mark.parametrize(
    ("shape", "scope", "kind"),
    [
        ((1 << 16, 1 << 15), "global", "int64"),
        (((1 << 16) - 1, 1 << 15), "global", "int32"),
        ((te.var("n"), 1 << 30, 2), "global", "int64"),
        ((te.var("n"), 1 << 20), "global", "int32"),
        ((1 << 16, 1 << 15), "shared", "int32"),
    ],
)
def test_indices(shape: tuple[Any, ...], scope: str, kind: str) -> None:
    large = tirx.decl_buffer(shape, "int8", "large", scope=scope)
    places = [I] * len(shape)
    store: Any = BufferStore(large, BufferLoad(large, places), places)
    found: Any = wide_indices(PrimFunc([I], store)).body
    indices = [*found.indices, *found.value.indices]
    assert [str(index.ty.dtype) for index in indices] == [kind] * len(indices)
    assert found.buffer.same_as(found.value.source)
    for before, after in zip(shape, found.buffer.shape, strict=True):
        symbolic = not isinstance(before, int)
        assert str(after.ty.dtype) == ("int32" if symbolic else kind)
        assert symbolic or int(after) == before


@pytest.mark.parametrize("rows", [1 << 15, 1 << 16, (1 << 17) + 1])
def test_a_flat_buffer_has_all_elements(rows: int) -> None:
    """Of 2^16 to a row: TVM multiplies extents in their type, and 2^31 of 32 bits are none."""
    a = te.placeholder((rows, 1 << 16), "int8", name="A")
    c = te.compute((1,), lambda i: a[i + rows - 1, i], name="C")
    function = te.create_prim_func([a, c])
    module = tvm.IRModule({"main": wide_indices(lowered(function))})
    flat = tirx.transform.FlattenBuffer()(module)["main"]
    (load,) = loads_of(flat.body)
    assert int(load.source.shape[0]) == rows << 16


def lowered(function: PrimFunc) -> PrimFunc:
    """Without blocks, as `wide_indices` finds a function."""
    module = tvm.IRModule({"main": function})
    for change in (s_tir.transform.ConvertBlocksToOpaque(), s_tir.transform.LowerOpaqueBlock()):
        module = change(module)
    return module["main"]


def test_an_array_keeps_where_it_begins() -> None:
    offset = tirx.Var("offset", "int32")
    large = tirx.decl_buffer((1 << 16, 1 << 15), "int8", "large", elem_offset=offset)
    store: Any = BufferStore(large, BufferLoad(large, [I, I]), [I, I])
    found = wide_indices(PrimFunc([large, I], store))
    assert found.params[0].elem_offset.same_as(offset)
    assert str(found.params[0].shape[0].ty.dtype) == "int64"

"""Indices of large buffers have 64 bits, and no others."""

from __future__ import annotations

from typing import Any

import pytest
from tvm import te, tirx
from tvm.tirx import BufferLoad, BufferStore, PrimFunc

from mfmadsl.passes.kernel.wide_index import wide_indices

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

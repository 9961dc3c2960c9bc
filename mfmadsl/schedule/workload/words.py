"""Scales and indices of which words of four bytes lie together for all rows."""

from __future__ import annotations

from collections.abc import Collection

from tvm import tirx
from tvm.tirx import PrimFunc

from mfmadsl.schedule.product.added_nest import element_wise, replaced
from mfmadsl.schedule.product.described import axes_of
from mfmadsl.schedule.product.nest import nests

WORD = 4
"""The bytes of a row that lie together."""


def by_words(workload: PrimFunc, names: Collection[str]) -> PrimFunc:
    """The workload with blocks before it that take some parameters, [rows, bytes], from where they
    lie as [bytes / 4, rows, 4]."""
    (nest,) = nests(workload)
    before, given, taken = [], [], []
    for rows in workload.params:
        if rows.name not in names:
            given.append(rows)
            continue
        *batches, count, octets = rows.shape
        words = tirx.decl_buffer(
            [*batches, octets // WORD, count, WORD], rows.dtype, str(rows.name)
        )
        axes = list(axes_of(rows.shape))
        places = [axis.var for axis in axes]
        *which, i, octet = places
        value = tirx.BufferLoad(words, [*which, octet // WORD, i, octet % WORD])
        before.append(element_wise(f"{rows.name}_rows", axes, rows, places, value))
        given.append(words)
        taken.append(rows)
    function = replaced(workload, nest, [*before, nest.statement], taken)
    return PrimFunc(given, function.body, function.ret_type, attrs=function.attrs)

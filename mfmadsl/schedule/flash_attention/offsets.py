"""Places that are read of memory once for a batch: where its keys begin, for one."""

from __future__ import annotations

from dataclasses import replace

import tvm_ffi
from tvm import tirx
from tvm.ir import TensorLoad
from tvm.tirx import Expr

from mfmadsl.passes.tir.expression import depends, loads_of
from mfmadsl.schedule.flash_attention.described import Attention, Offset
from mfmadsl.schedule.product.nest import same


def with_offsets(found: Attention) -> Attention:
    """The attention with variables in place of what its elements' places read for a batch."""
    axes = found.axes
    inner = [axes.row.var, axes.key.var, axes.depth.var, axes.column.var]
    elements: list[Expr] = [found.q, found.k, found.v, found.score]
    offsets: list[Offset] = []
    for load in (load for each in elements for load in loads_of(each)):
        for read in (read for index in load.indices for read in loads_of(index)):
            known = any(same(read, offset.load) for offset in offsets)
            if not known and not any(depends(read, variable) for variable in inner):
                variable = tirx.Var(f"{read.source.name}_{len(offsets)}", str(read.ty.dtype))
                offsets.append(Offset(variable, read))

    def variable_of(load: TensorLoad) -> Expr:
        return next((each.variable for each in offsets if same(load, each.load)), load)

    def index(load: TensorLoad) -> TensorLoad:
        indices = [tvm_ffi.structural_map(each, (TensorLoad, variable_of)) for each in load.indices]
        return tirx.BufferLoad(load.source, indices)

    if not offsets:
        return found
    q, k, v, score = (tvm_ffi.structural_map(each, (TensorLoad, index)) for each in elements)
    return replace(found, q=q, k=k, v=v, score=score, offsets=tuple(offsets))

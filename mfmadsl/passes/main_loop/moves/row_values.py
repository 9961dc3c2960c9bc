"""What copies take from the LDS beside memory, and the loop does not change: read ahead of it.

The scale of a row that is normalised on its way is an example: all threads of the workgroup have
added up its squares before the loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import tvm_ffi
from tvm import tirx
from tvm.ir import TensorLoad
from tvm.tirx import Bind, Buffer, BufferStore, Expr, For, IfThenElse, Var

from mfmadsl.passes.main_loop.analysis.unrolled import store_of
from mfmadsl.passes.tir.expression import constant, depends, loads_of, scope_of
from mfmadsl.passes.tir.walk import mapped

Copy = BufferStore | IfThenElse


def values_ahead(copies: Sequence[Copy], loop: For) -> tuple[list[Copy], list[Bind]]:
    """The copies with a variable for each such value, and the statements that read them.

    A row past the last of those that are there, which nobody asks for, has the value of that one.
    """
    reader = _Reader(loop, [store_of(copy).buffer for copy in copies])
    changed = [mapped(copy, (TensorLoad, reader.read)) for copy in copies]
    return changed, [Bind(variable, value) for variable, value in reader.found]


@dataclass
class _Reader:
    loop: For
    tiles: Sequence[Buffer]
    found: list[tuple[Var, Expr]] = field(default_factory=list)

    def read(self, load: TensorLoad) -> Expr:
        if scope_of(load.source) != "shared" or any(map(load.source.same_as, self.tiles)):
            return load
        (place,), (shape,) = load.indices, load.source.shape
        extent = constant(shape)
        if depends(place, self.loop.loop_var) or loads_of(place) or extent is None:
            return load
        last = tirx.const(extent - 1, place.ty.dtype)
        value = tirx.BufferLoad(load.source, [tirx.min(place, last)])
        for variable, known in self.found:
            if tvm_ffi.structural_equal(known, value):
                return variable
        variable = Var(f"{load.source.name}.{len(self.found)}", load.ty.dtype)
        self.found.append((variable, value))
        return variable

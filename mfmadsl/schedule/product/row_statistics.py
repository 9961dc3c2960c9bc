"""What the rows of a factor are normalised with, which each workgroup adds up ahead of its product.

RMSNorm before a linear layer is an example: `scale[i]` is made of the squares of a row of x, and
the product multiplies `x[i, k] * weight[k] * scale[i]`. Of few rows it is cheaper to add up the
squares in every workgroup than to launch a kernel that does it once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import tvm
from tvm import s_tir
from tvm.s_tir import SBlockRealize
from tvm.tirx import Buffer, IterVar, PrimFunc

from mfmadsl.passes.tir.block import in_sequence, statements, with_parts, with_root
from mfmadsl.passes.tir.expression import constant
from mfmadsl.schedule.product.dataflow import BufferAccess, accesses, holds
from mfmadsl.schedule.product.inline import inline_producers
from mfmadsl.schedule.product.nest import Nest, function_of, is_sum, nests

MOST_ROWS = 4
"""Of which statistics are worth their time: each row has a turn of its own in all workgroups."""


@dataclass(frozen=True)
class RowStatistics:
    """The product of a function, with what it is normalised with as parameters behind its own, and
    the nests that compute these, in their order."""

    workload: PrimFunc
    nests: tuple[Nest, ...]

    @property
    def buffers(self) -> list[Buffer]:
        """The statistics."""
        return [region.source for nest in self.nests for region in nest.block.writes]

    @property
    def rows(self) -> int:
        """How many rows each workgroup adds up, of those of several statistics each."""
        return sum(prod(constant(extent) or 1 for extent in each.shape) for each in self.buffers)


def row_statistics(function: PrimFunc) -> RowStatistics | None:
    """The statistics that a function computes before its product, None where it computes none.

    These are all sums, maxima and the like that the last sum is made of, each along one axis, of up
    to `MOST_ROWS` rows. Integers are no statistics, but where rows lie.
    """
    if not isinstance(function.body, SBlockRealize):
        return None
    names = [nest.name for nest in nests(function) if is_sum(nest)]
    if len(names) < 2 or not _all_lead_to(function, names):
        return None
    sch = s_tir.Schedule(tvm.IRModule({"main": function}))
    for name in names[:-1]:
        inline_producers(sch, sch.get_sblock(name))
    changed = function_of(sch)
    found = tuple(nest for nest in nests(changed) if nest.name in names[:-1])
    written = [region.source for nest in found for region in nest.block.writes]
    if any(holds(function.params, each) for each in written):
        return None
    if not all(map(_is_small, written)) or not all(map(_is_along_last, found)):
        return None
    assert isinstance(changed.body, SBlockRealize)
    root = changed.body.block
    rest = [
        each for each in statements(changed) if not any(each.same_as(n.statement) for n in found)
    ]
    left = [buffer for buffer in root.alloc_buffers if not holds(written, buffer)]
    body = with_root(changed, with_parts(root, body=in_sequence(rest), allocated=left)).body
    workload = PrimFunc([*changed.params, *written], body, changed.ret_type, attrs=changed.attrs)
    return RowStatistics(workload, found)


def _all_lead_to(function: PrimFunc, names: Sequence[str]) -> bool:
    """Whether the last of these blocks is made of what all the others compute."""
    every = accesses(function)
    own = {nest.name: nest for nest in nests(function)}
    wanted = [region.source for region in own[names[-1]].block.reads]
    made: list[BufferAccess] = []
    for access in every[::-1]:
        if any(holds(wanted, buffer) for buffer in access.writes):
            wanted += access.reads
            made.append(access)
    return all(
        any(access.statement.same_as(own[name].statement) for access in made) for name in names[:-1]
    )


def _is_small(buffer: Buffer) -> bool:
    extents = [constant(extent) for extent in buffer.shape]
    is_real = "float" in str(buffer.dtype)
    return is_real and None not in extents and prod(each or 0 for each in extents) <= MOST_ROWS


def _is_along_last(nest: Nest) -> bool:
    """Whether a block reduces along its last axis alone, of several elements."""
    axes = nest.block.iter_vars
    reduced = [axis.iter_type == IterVar.CommReduce for axis in axes]
    return reduced[-1] and sum(reduced) == 1 and constant(axes[-1].dom.extent) != 1

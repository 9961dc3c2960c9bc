"""What a function makes of groups of neighbouring columns of its product."""

from __future__ import annotations

from tvm.tirx import PrimFunc

from mfmadsl.schedule.product.column_groups import GroupOutput
from mfmadsl.schedule.product.compared_columns import compared_output
from mfmadsl.schedule.product.paired_columns import paired_output


def group_output(function: PrimFunc, of_pairs: bool = True) -> GroupOutput | None:
    """The results of groups of columns that a function has, None where it has none; groups of what
    is made of pairs, as far as those may be `of_pairs`.

    Raises ScheduleError, with the name of the block, for a comparison that only looks like one.
    """
    return compared_output(function, of_pairs) or paired_output(function)
